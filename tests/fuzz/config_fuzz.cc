// The loader of the daemon's configuration (fault 54): what it takes is complete and in range, and
// is taken again, unchanged, from its own text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "google/protobuf/text_format.h"
#include "server/service/daemon/daemon_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = penstock::ParseDaemonConfig(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config.ok()) {
    if (config.status().message().substr(0, 4) != "fuzz") abort();
    return 0;
  }
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(*config, &text)) abort();
  const auto again = penstock::ParseDaemonConfig(text, "again");
  if (!again.ok() || again->SerializeAsString() != config->SerializeAsString()) abort();
  return 0;
}
