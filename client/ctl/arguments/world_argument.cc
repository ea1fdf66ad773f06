#include "client/ctl/arguments/world_argument.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock::ctl {
namespace {

bool Parse(const std::string& word, uint32_t* hosts, uint32_t* host) {
  const size_t colon = word.find(':');
  return colon != std::string::npos && absl::SimpleAtoi(word.substr(0, colon), hosts) &&
         absl::SimpleAtoi(word.substr(colon + 1), host);
}

std::string Check(const std::string& word) {
  uint32_t hosts = 0, host = 0;
  if (!Parse(word, &hosts, &host)) {
    return absl::StrCat("expected HOSTS:HOST, such as 8:3, found \"", word, "\"");
  }
  if (hosts == 0) return absl::StrCat("expected one host at least, found \"", word, "\"");
  if (host < hosts) return "";
  return absl::StrCat("of ", hosts, " hosts there is no host ", host,
                      ": they are counted from 0 on");
}

}  // namespace

Option WorldArgument::Add(Command command, WorldArgument* argument) {
  return command
      .Add("--world", &argument->text,
           "HOSTS:HOST, such as 8:3: this host's rows of batches that several hosts make together")
      .Checked(Check);
}

void WorldArgument::AddFewest(Command command, const Option& world, WorldArgument* argument) {
  command
      .Add("--fewest-hosts", &argument->fewest_hosts,
           "Of --world: the ring has room for the rows of one of as few hosts (update --world)")
      .InRange(1, 65536)
      .Needs(world);
}

v1::World WorldArgument::Read() const {
  v1::World world;
  uint32_t hosts = 0, host = 0;
  Parse(text, &hosts, &host);
  world.set_hosts(hosts);
  world.set_host(host);
  world.set_fewest_hosts(static_cast<uint32_t>(fewest_hosts));
  return world;
}

std::string DescribeWorld(const v1::World& world) {
  return absl::StrCat("host ", world.host(), " of ", world.hosts());
}

}  // namespace penstock::ctl
