// The shared memory of one ring: a sealed memfd that only this object can write.
//
// Threads:  constant after creation but for Populate(), which one thread calls at a time, and
//           MakeRoom(), one at a time for each slot; who writes which bytes when is the writer's
//           matter.
// Owns:     the descriptor and the mapping; a client's own mapping outlives it.
// Cost:     Create() and Populate() touch every byte of the slots they add, but for variable memory
//           that grows: MakeRoom() touches what it adds.
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ring/descriptor.h"
#include "ring/layout.h"
#include "ring/memory_promise.h"
#include "ring/segment_plan.h"
#include "ring/status.h"
#include "ring/writer.h"

namespace penstock::ring {

class Segment {
 public:
  // Fills in all tables, and populates the first options.slots slots after a look at the memory at
  // hand.
  static Status Create(const SegmentOptions& options, std::unique_ptr<Segment>* out);

  // Takes the pages of slots [first, first + count) from the system: kResourceExhausted with the
  // figures when they do not fit.
  Status Populate(uint32_t first, uint32_t count);

  // The first `bytes` of the slot's variable memory are about to be written: where it grows, their
  // pages are taken, in pieces of 2 MiB. They were promised to the ring, so that nobody asks.
  void MakeRoom(uint32_t slot, uint64_t bytes);

  // What Populate() and MakeRoom() have taken.
  uint64_t taken_bytes() const { return taken_bytes_.load(std::memory_order_relaxed); }

  // False when the kernel gave none although there was place for one.
  bool has_huge_pages() const { return has_huge_pages_.load(std::memory_order_relaxed); }

  // As that of Writer.
  int numa_error() const { return numa_error_; }

  int fd() const { return fd_.get(); }
  uint64_t bytes() const { return plan_.segment_bytes; }
  const SegmentPlan& plan() const { return plan_; }

  SegmentHeader& header() const { return *At<SegmentHeader>(0); }
  SlotEntry& slot_entry(uint32_t slot) const {
    return At<SlotEntry>(plan_.slot_table_offset)[slot];
  }
  RingEntry& ring_entry(uint64_t step) const {
    return At<RingEntry>(plan_.ring_table_offset)[step & (plan_.ring_entries - 1)];
  }
  uint8_t* slot_data(uint32_t slot) const {
    return At<uint8_t>(plan_.slot_data_offset + slot * plan_.slot_stride);
  }
  uint8_t* tensor(uint32_t slot, uint32_t tensor) const {
    return slot_data(slot) + plan_.tensors[tensor].offset;
  }
  uint8_t* variable(uint32_t slot) const { return slot_data(slot) + plan_.variable_offset; }
  // The slot's extents, one for each tensor.
  TensorExtent* extents(uint32_t slot) const {
    return At<TensorExtent>(plan_.extent_table_offset) + slot * plan_.tensors.size();
  }

 private:
  Segment(Descriptor fd, boost::interprocess::mapped_region region, SegmentPlan plan)
      : fd_(std::move(fd)), region_(std::move(region)), plan_(std::move(plan)) {}

  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(static_cast<uint8_t*>(region_.get_address()) + offset);
  }
  void FillIn(const SegmentOptions& options);
  void Take(uint8_t* data, uint64_t bytes);
  // How much of a slot is taken where so much of its variable memory is needed.
  uint64_t TakenFor(uint64_t variable_bytes) const;

  Descriptor fd_;
  boost::interprocess::mapped_region region_;
  SegmentPlan plan_;
  std::function<Status(uint64_t bytes)> reserve_;
  // Where variable memory grows: how much of each slot has been taken, and what is left.
  std::vector<uint64_t> taken_of_;
  MemoryPromise promise_;
  std::atomic<uint64_t> taken_bytes_{0};
  std::atomic<bool> has_huge_pages_{true};
  int numa_error_ = 0;  // of Create()
};

}  // namespace penstock::ring
