#include "server/service/stream/placement.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/numa_node.h"
#include "ring/numa_memory.h"

namespace penstock {

static_assert(kMaxNumaNode == ring::kMaxNumaNodes - 1);

Placement::Placement(int node, std::function<void(const std::string& notice)> told)
    : node_(node), told_(std::move(told)) {
  if (node == kNoNumaNode) return;
  absl::StatusOr<std::vector<int>> processors = ProcessorsOfNode(node);
  if (absl::IsNotFound(processors.status())) {
    Tell(absl::StrCat(processors.status().message(), "; workers and ring are on any"));
    return;
  }
  // A node may have memory only.
  ring_node_ = node;
  if (processors.ok()) {
    processors_ = *std::move(processors);
  } else {
    Tell(absl::StrCat(processors.status().message(), "; workers run on any"));
  }
}

void Placement::LookAtRing(const ring::Writer& writer) {
  if (ring_node_ == kNoNumaNode) return;
  on_ring_ = writer.numa_error() == 0;
  if (writer.numa_error() == EINVAL) {
    Tell(absl::StrCat("the ring is in any memory: NUMA node ", node_,
                      " has none, or the cpuset of penstockd leaves it out"));
  } else if (!on_ring_) {
    Tell(absl::StrCat("the ring is in any memory, not in that of NUMA node ", node_,
                      " alone: the system refuses mbind: ", std::strerror(writer.numa_error()),
                      " (a container may call it with CAP_SYS_NICE)"));
  } else if (writer.bytes_on_numa_node().value_or(UINT64_MAX) < writer.memory_bytes()) {
    Tell(absl::StrCat("a part of the ring is in other memory: NUMA node ", node_,
                      " has too little that is free"));
  }
}

void Placement::DropProcessors(const absl::Status& refusal) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_refused_ = true;
  }
  Tell(absl::StrCat("workers run on any processors, not on those of NUMA node ", node_,
                    " alone: the system refuses ", refusal.message()));
}

void Placement::Tell(std::string notice) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    notices_.push_back(notice);
  }
  if (told_ != nullptr) told_(notice);
}

void Placement::Describe(const ring::Writer& writer, v1::PipelineStats* stats) const {
  if (node_ == kNoNumaNode) return;
  v1::NumaPlacement* numa = stats->mutable_numa();
  numa->set_node(node_);
  numa->set_ring(on_ring_);
  if (const auto bytes = writer.bytes_on_numa_node()) numa->set_ring_bytes(*bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!workers_refused_) numa->set_processors(static_cast<uint32_t>(processors_.size()));
  for (const std::string& notice : notices_) numa->add_notice(notice);
}

}  // namespace penstock
