// The NUMA node on which a stream's workers and ring are to be, as far as the machine and the
// system give it.
//
// Threads:  safe from any thread.
// Owns:     nothing of the stream.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/control.pb.h"
#include "ring/writer.h"

namespace penstock {

class Placement {
 public:
  // `node` as in CheckNumaNode(). `told` gets what could not be had and why, a sentence each; it
  // may be null. Looks at the machine.
  Placement(int node, std::function<void(const std::string& notice)> told);

  // The node for the ring, and the processors for workers; -1 and none where they are to be
  // anywhere.
  int ring_node() const { return ring_node_; }
  const std::vector<int>& processors() const { return processors_; }

  // Once the ring is made of ring_node().
  void LookAtRing(const ring::Writer& writer);
  // The system refuses to have workers on those processors.
  void DropProcessors(const absl::Status& refusal);

  // Nothing where no node was asked for.
  void Describe(const ring::Writer& writer, v1::PipelineStats* stats) const;

 private:
  void Tell(std::string notice);

  const int node_;
  const std::function<void(const std::string& notice)> told_;
  int ring_node_ = -1;           // constant after construction
  std::vector<int> processors_;  // constant after construction
  bool on_ring_ = false;         // of LookAtRing(), before other threads have it

  mutable std::mutex mutex_;
  bool workers_refused_ = false;      // under mutex_
  std::vector<std::string> notices_;  // under mutex_
};

}  // namespace penstock
