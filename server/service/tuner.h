// Has the pipelines whose numbers of workers are the daemon's to choose take as many as they need
// (autotune.h), once a second.
//
// Threads:  made and destroyed by one; a thread of its own, since fewer workers are waited for.
// Owns:     what it has learnt of each pipeline. Table and monitor must outlive it.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/service/autotune.h"
#include "server/service/monitor.h"
#include "server/service/pipeline_table.h"

namespace penstock {

class Tuner {
 public:
  // `most`: workers of a pipeline. `processors`: what affinity and cgroup allow.
  Tuner(const PipelineTable& table, const Monitor& monitor, int most, double processors);
  ~Tuner();

 private:
  struct Tuned {
    std::weak_ptr<Pipeline> pipeline;
    Autotuner tuner;
  };

  void Run();
  void LookAtAll();

  const PipelineTable& table_;
  const Monitor& monitor_;
  const int most_;
  const double processors_;
  std::map<std::string, Tuned> tuned_;  // of the thread
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool stopped_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace penstock
