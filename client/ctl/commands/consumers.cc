// `penstock consumers`, `detach` and `slow`: who reads a pipeline, and what happens to them.

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

struct DetachArguments {
  std::string name;
  uint32_t id = 0;
  int pid = 0;
};

struct SlowArguments {
  std::string name;
  std::string group;
  std::string policy;
  double lag_s = 60;
};

const std::map<std::string, v1::SlowPolicy>& Policies() {
  static const auto& policies =
      *new std::map<std::string, v1::SlowPolicy>{{"block", v1::SLOW_POLICY_BLOCK},
                                                 {"detach", v1::SLOW_POLICY_DETACH},
                                                 {"skip", v1::SLOW_POLICY_SKIP}};
  return policies;
}

absl::Status Consumers(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::ListConsumersRequest request;
  request.set_name(name);
  const auto answer = daemon->Consumers(request);
  if (!answer.ok()) return answer.status();
  std::printf("%-8s  %-16s  %-12s  %8s  %10s  %6s  %6s  %s\n", "CONSUMER", "GROUP", "NAME", "PID",
              "STEP", "READY", "HOLDS", "");
  for (const v1::ConsumerStats& consumer : answer->consumers()) {
    std::printf("%-8u  %-16s  %-12s  %8d  %10llu  %6llu  %6u  %s\n", consumer.id(),
                consumer.group().c_str(), consumer.name().c_str(), consumer.pid(),
                static_cast<unsigned long long>(consumer.position()),
                static_cast<unsigned long long>(consumer.lag()), consumer.leases(),
                consumer.replay() ? "catches up by itself" : "");
  }
  return absl::OkStatus();
}

absl::Status Detach(const std::string& socket, const DetachArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::DetachConsumerRequest request;
  request.set_name(arguments.name);
  request.set_id(arguments.id);
  request.set_pid(arguments.pid);
  absl::Status status = daemon->Detach(request);
  if (status.ok())
    std::printf("detached consumer %u of %s\n", arguments.id, arguments.name.c_str());
  return status;
}

absl::Status Slow(const std::string& socket, const SlowArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::UpdateGroupRequest request;
  request.set_name(arguments.name);
  request.set_group(arguments.group);
  request.set_slow(Policies().at(arguments.policy));
  request.set_lag_ms(static_cast<uint32_t>(arguments.lag_s * 1000));
  absl::Status status = daemon->UpdateGroup(request);
  if (status.ok()) {
    std::printf("group %s of %s: %s\n", arguments.group.c_str(), arguments.name.c_str(),
                arguments.policy.c_str());
  }
  return status;
}

std::string CheckPolicy(const std::string& word) {
  return Policies().contains(word) ? "" : "expected block, detach or skip, found " + word;
}

}  // namespace

void AddConsumers(Command root, const std::string& socket) {
  Command command = root.AddCommand("consumers", "Who reads a pipeline");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("consumers", Consumers(socket, *name)); });
}

void AddDetach(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("detach", "Send a consumer away: its next call raises DETACHED");
  auto arguments = std::make_shared<DetachArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("CONSUMER", &arguments->id, "Its number, as `penstock consumers` shows it")
      .Required();
  command.Add("--pid", &arguments->pid, "Its process, if several consumers have that number");
  command.Runs([&socket, arguments] { return Report("detach", Detach(socket, *arguments)); });
}

void AddSlow(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("slow", "Say what happens to consumers of a group that hold up others");
  auto arguments = std::make_shared<SlowArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("GROUP", &arguments->group, "The group").Required();
  command.Add("POLICY", &arguments->policy, "block, detach or skip")
      .Required()
      .Checked(CheckPolicy);
  command.Add("--lag", &arguments->lag_s, "With block: seconds that the others wait")
      .InRange(0.001, 86400.0)
      .WithDefault();
  command.Runs([&socket, arguments] { return Report("slow", Slow(socket, *arguments)); });
}

}  // namespace penstock::ctl
