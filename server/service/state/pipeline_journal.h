// What a daemon has to know of its pipelines to bring them back after its death: their specs with
// drawn seeds, where they began, and who read them.
//
//   NAME.pipeline    a KeptPipeline
//   NAME.consumers   a line for each consumer that goes on: its identity and its process
//   NAME.split-N     the split groups (split_file.h)
//   NAME.high-water  how far it has been handed out (high_water_file.h)
//
// Threads:  safe from any thread for different pipelines.
// Owns:     the folder.
// Cost:     Put() and Remove() wait for the disk; PutConsumers() does not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"
#include "penstock/v1/steering.pb.h"
#include "ring/consumer_spec.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/tensor/world.h"
#include "server/service/state/high_water.h"
#include "server/service/state/split_file.h"
#include "server/service/state/state_folder.h"

namespace penstock {

class PipelineJournal {
 public:
  struct Entry {
    v1::PipelineSpec spec;
    std::string cursor;
    ChangedWork changed_work = ChangedWork::kRefuse;
    std::vector<v1::Change> history;
    // How it stood besides, and what its groups were told.
    bool paused = false;
    std::map<std::string, std::pair<ring::SlowPolicy, uint32_t>> slow_policies = {};
    std::optional<std::set<std::string>> complete_groups = std::nullopt;  // as in KeptState
    std::vector<v1::Meanings> meanings = {};                              // as in KeptState
    World world = {};
    uint32_t fewest_hosts = 0;  // as of PipelineOptions
  };
  struct KnownConsumer {
    uint64_t identity = 0;
    int32_t pid = 0;
  };

  explicit PipelineJournal(std::unique_ptr<StateFolder> folder) : folder_(std::move(folder)) {}

  // Where it writes, for others that keep something there.
  const StateFolder& folder() const { return *folder_; }

  absl::Status Put(const Entry& entry) const;
  // Where that is, for who is told.
  std::string PathOf(const std::string& name) const;
  // An error where the pipeline would come back; then nothing is removed.
  absl::Status Remove(const std::string& name) const;
  // A file that is not whole is set aside and logged; one that cannot be read is left and logged.
  std::vector<Entry> Load() const;

  // Nothing of a pipeline that is not kept, or was removed.
  void PutConsumers(const std::string& name, const std::vector<KnownConsumer>& consumers) const;
  // Those whose processes still live.
  std::vector<KnownConsumer> LoadConsumers(const std::string& name) const;

  // The user whom a pipeline's memory is charged to; -1: nobody.
  void PutOwner(const std::string& name, uid_t uid) const;
  uid_t LoadOwner(const std::string& name) const;

  // How far the pipeline may have been handed out, and where that is written down; `is_new`: not
  // yet at all. The journal must outlive it.
  HighWaterOptions HighWaterOf(const std::string& name, bool is_new) const;

  // `empty`: what there was is forgotten. The journal must outlive it.
  std::shared_ptr<SplitFiles> SplitFilesOf(const std::string& name, bool empty) const;

 private:
  const std::unique_ptr<StateFolder> folder_;
  // What is removed is not written again.
  mutable std::mutex consumers_mutex_;
};

}  // namespace penstock
