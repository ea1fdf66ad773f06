// What a pipeline is made of, and with: all its parts read it, none changes it.
//
// Threads:  constant after construction, so safe from any thread; HighWater has locks of its own.
// Owns:     the plan that the pipeline began with. `files` must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/file.h"
#include "base/memory_account.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/writer.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/run/executor.h"
#include "server/service/pipeline/checked_pipeline.h"
#include "server/service/pipeline/user_quotas.h"
#include "server/service/socket/asker.h"
#include "server/service/state/high_water.h"
#include "server/service/state/split_file.h"
#include "server/service/stream/leftovers.h"
#include "server/service/stream/memory_budget.h"
#include "server/service/stream/within_deadline.h"

namespace penstock {

// What a pipeline is besides its spec: it comes back so after a restart of the daemon.
struct KeptState {
  std::vector<v1::Change> history;
  bool paused = false;
  // What groups were given, by name.
  std::map<std::string, std::pair<ring::SlowPolicy, uint32_t>> slow_policies;
  // ring::Writer::CompleteGroups(); absent: not known.
  std::optional<std::set<std::string>> complete_groups = std::set<std::string>();
  // Timeline::MeaningsOfPhases(); absent: there was none of this history before.
  std::optional<std::vector<v1::Meanings>> meanings = std::nullopt;
};

// Where a pipeline is to begin, and what it needs for that. `files` of Create() must outlive it.
struct PipelineOptions {
  std::string cursor;  // "": at its beginning
  ChangedWork changed_work = ChangedWork::kRefuse;
  // For which of how many hosts it makes the rows of each batch.
  World world = {};
  // As of CheckPipeline().
  uint32_t fewest_hosts = 0;
  v1::WorkerDefaults defaults;
  // How far it has been handed out; null: nobody wants to know when the daemon has ended.
  std::shared_ptr<HighWater> high_water = nullptr;
  // Where its split groups are remembered; null: nowhere.
  std::shared_ptr<SplitFiles> split_files;
  // It was there before a restart: it begins when StartAgain() says who has come back.
  bool returns = false;
  // Of an earlier run, or of this one before a restart.
  KeptState state;
  // Keeps a state, a history before it takes effect; null: it is not kept.
  std::function<absl::Status(const KeptState& state)> write_state = nullptr;
  std::string state_path = {};  // where, for who is told
  // Told of what is done to it; may be null.
  std::function<void(v1::Event event)> on_event = nullptr;
  // Whose it is, and what its ring's memory is taken from; null: there is no limit.
  MemoryOwner owner = {};
  std::shared_ptr<MemoryBudget> memory = nullptr;
  // What its workers are taken from; null: there is no limit.
  std::shared_ptr<UserQuotas> quotas = nullptr;
  // Who asked for it, for events and the log.
  Asker created_by = {};
  // What it computes and keeps is charged to; null: there is no limit.
  std::shared_ptr<MemoryAccount> work_memory = nullptr;
  // Says why nobody wants it any more, while it is being made; may be null. Not called afterwards.
  Unwanted unwanted = nullptr;
  // Where it finds work that other pipelines do too; null: nowhere.
  std::shared_ptr<SharedPrefixes> prefixes = nullptr;
  // What maps of its files are taken from; null: none are kept.
  std::shared_ptr<SharedMaps> maps = nullptr;
  // Who makes some of its steps; null: nobody else does.
  std::shared_ptr<StepLenders> helpers = nullptr;
  // Of the request that made it; "": it had none.
  std::string request_id;
  // Where what hangs in a read is left; null: it is waited for.
  std::shared_ptr<Leftovers> leftovers = nullptr;
};

struct PipelineBasis {
  PipelineBasis(CheckedPipeline checked_spec, const PipelineOptions& all_options,
                FileSystem& file_system)
      : name(checked_spec.plan->spec().name()),
        checked(std::move(checked_spec)),
        options(WithoutCaller(all_options)),
        files(file_system),
        high_water(options.high_water != nullptr ? options.high_water
                                                 : HighWater::Create({.pipeline = name})) {}
  PipelineBasis(const PipelineBasis&) = delete;
  PipelineBasis& operator=(const PipelineBasis&) = delete;

  ReadDeadline read_deadline() const { return {checked.read_deadline_ns, options.leftovers}; }

  const std::string name;
  const CheckedPipeline checked;
  const PipelineOptions options;
  FileSystem& files;
  const std::shared_ptr<HighWater> high_water;

 private:
  // What holds beyond the call that makes the pipeline.
  static PipelineOptions WithoutCaller(PipelineOptions options) {
    options.unwanted = nullptr;
    return options;
  }
};

}  // namespace penstock
