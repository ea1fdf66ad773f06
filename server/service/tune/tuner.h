// Has the pipelines whose numbers are the daemon's to choose take what they need, once a second:
// workers (autotune.h), slots of the ring (depth_tuner.h), and how far sources read ahead
// (read_ahead_tuner.h).
//
// Threads:  made and destroyed by one; a thread of its own, since fewer workers are waited for.
// Owns:     what it has learnt of each pipeline. Table and monitor must outlive it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/tune/autotune.h"
#include "server/service/tune/depth_tuner.h"
#include "server/service/tune/monitor.h"
#include "server/service/tune/read_ahead_tuner.h"

namespace penstock {

class Tuner {
 public:
  // `processors`: what affinity and cgroup allow. ResourceExhausted when the system has no thread
  // for it.
  static absl::StatusOr<std::unique_ptr<Tuner>> Create(const PipelineTable& table,
                                                       const Monitor& monitor, double processors);
  ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

 private:
  struct Tuned {
    std::weak_ptr<Pipeline> pipeline;
    Autotuner workers;
    DepthTuner slots = {};
    std::map<std::string, ReadAheadTuner> sources = {};  // by stage
  };

  Tuner(const PipelineTable& table, const Monitor& monitor, double processors)
      : table_(table), monitor_(monitor), processors_(processors) {}
  void Run();
  void LookAtAll();
  Autotuner NewAutotuner(const Pipeline& pipeline) const;
  void LookAt(Pipeline& pipeline, const Tunes& tunes, Tuned* tuned);
  void LookAtWorkers(const Pipeline& pipeline, const v1::PipelineStats& stats, Autotuner* tuner,
                     Tuning* wanted, v1::Autotune* report) const;
  static void LookAtSlots(const v1::PipelineStats& stats, uint32_t most, DepthTuner* tuner,
                          Tuning* wanted, v1::Autotune* report);
  static void LookAtSources(const v1::PipelineStats& stats,
                            std::map<std::string, ReadAheadTuner>* tuners, Tuning* wanted,
                            v1::Autotune* report);

  const PipelineTable& table_;
  const Monitor& monitor_;
  const double processors_;
  std::map<std::string, Tuned> tuned_;  // of the thread
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool stopped_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace penstock
