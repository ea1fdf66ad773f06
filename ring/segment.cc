#include "ring/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "ring/memory_file.h"
#include "ring/memory_limit.h"
#include "ring/numa_memory.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace penstock::ring {
namespace {

// Of a slot's variable memory that grows, what is there from the beginning at least.
constexpr uint64_t kFirstVariableBytes = 64 << 10;

uint64_t DrawGeneration() {
  uint64_t generation = 0;
  if (getrandom(&generation, sizeof generation, 0) != sizeof generation) generation = 1;
  return generation;
}

// Lays huge pages where the kernel can (6.1 and newer, whatever its setting for shared memory): on
// a virtual machine the engine then took a quarter less processor time (docs/decisions/0006).
// Without them everything works as well: false when the kernel has none.
//
// One small page in each is what the kernel wants to find there; it clears the rest. Were all of
// them there, it would copy each: 190 to 260 ms for 192 MiB, and 25 to 40 this way.
bool LayHugePages(uint8_t* data, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data) / kHugePageBytes * kHugePageBytes;
  const uintptr_t end =
      (reinterpret_cast<uintptr_t>(data) + bytes) / kHugePageBytes * kHugePageBytes;
  for (uintptr_t page = begin; page < end; page += kHugePageBytes) {
    if (madvise(reinterpret_cast<void*>(page), kPageBytes, MADV_POPULATE_WRITE) != 0) return false;
  }
  return begin >= end || madvise(reinterpret_cast<void*>(begin), end - begin, MADV_COLLAPSE) == 0;
}

}  // namespace

Status Segment::Create(const SegmentOptions& options, std::unique_ptr<Segment>* out) {
  SegmentPlan plan;
  if (Status status = PlanSegment(options, &plan); !status.ok()) return status;
  // Before anything is created, so that a ring that cannot fit leaves no trace.
  if (Status status = CheckMemory("a ring of " + std::to_string(options.slots) + " slots of " +
                                      BytesToString(plan.slot_stride),
                                  plan.slot_data_offset + plan.slot_stride * options.slots,
                                  ReadUnpromisedMemory());
      !status.ok()) {
    return status;
  }
  Descriptor fd;
  boost::interprocess::mapped_region region;
  if (Status status = CreateMemoryFile(
          "penstock-ring", plan.segment_bytes,
          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL, &fd, &region);
      !status.ok()) {
    return status;
  }
  std::unique_ptr<Segment> segment(new Segment(std::move(fd), std::move(region), std::move(plan)));
  segment->taken_of_.resize(options.slots_max);
  segment->reserve_ = options.reserve;
  // Before a page of it is touched. It holds for the slots of later, too, and for whoever maps
  // them.
  if (options.numa_node >= 0) {
    segment->numa_error_ = PreferNumaNode(segment->region_.get_address(),
                                          segment->region_.get_size(), options.numa_node);
  }
  segment->FillIn(options);
  if (Status status = segment->Populate(0, options.slots); !status.ok()) return status;
  *out = std::move(segment);
  return {};
}

void Segment::FillIn(const SegmentOptions& options) {
  SegmentHeader& head = header();
  head.abi_version = kAbiVersion;
  head.header_bytes = sizeof(SegmentHeader);
  head.generation = DrawGeneration();
  head.segment_bytes = plan_.segment_bytes;
  head.tensor_entry_bytes = sizeof(TensorEntry);
  head.slot_entry_bytes = sizeof(SlotEntry);
  head.ring_entry_bytes = sizeof(RingEntry);
  head.control_page_bytes = sizeof(ControlPage);
  head.num_tensors = static_cast<uint32_t>(plan_.tensors.size());
  head.slots_max = options.slots_max;
  head.ring_entries = plan_.ring_entries;
  head.pipeline_bytes = static_cast<uint32_t>(options.pipeline.size());
  head.tensor_table_offset = plan_.tensor_table_offset;
  head.slot_table_offset = plan_.slot_table_offset;
  head.ring_table_offset = plan_.ring_table_offset;
  head.extent_table_offset = plan_.extent_table_offset;
  head.slot_data_offset = plan_.slot_data_offset;
  head.slot_stride = plan_.slot_stride;
  head.variable_offset = plan_.variable_offset;
  head.variable_bytes = plan_.variable_bytes;
  head.structure_offset = plan_.structure_offset;
  head.structure_bytes = plan_.structure_bytes;
  std::memcpy(At<char>(plan_.structure_offset), options.structure.data(), options.structure.size());
  head.pass_last_rows = options.pass_last_rows;
  if (options.num_steps) {
    head.num_steps_plus_1 = *options.num_steps + 1;
    head.pass_steps = options.pass_steps;
  } else {
    head.uncounted_bytes =
        static_cast<uint32_t>(std::min<size_t>(options.uncounted.size(), kMaxUncountedBytes));
    std::memcpy(head.uncounted, options.uncounted.data(), head.uncounted_bytes);
  }
  std::memcpy(head.pipeline, options.pipeline.data(), options.pipeline.size());
  head.slots.store(options.slots, std::memory_order_relaxed);
  head.published.store(options.first_step, std::memory_order_relaxed);
  head.lease_share.store(1, std::memory_order_relaxed);
  std::memcpy(At<TensorEntry>(plan_.tensor_table_offset), plan_.tensors.data(),
              plan_.tensors.size() * sizeof(TensorEntry));
  for (uint32_t slot = 0; slot < options.slots_max; ++slot) {
    slot_entry(slot).step = kNoStep;
    for (uint32_t tensor = 0; tensor < head.num_tensors; ++tensor) {
      const TensorEntry& entry = plan_.tensors[tensor];
      extents(slot)[tensor].parts[0] = {entry.offset, entry.capacity_bytes};
    }
  }
  for (uint32_t entry = 0; entry < plan_.ring_entries; ++entry) ring_entry(entry).step = kNoStep;
  head.magic = kSegmentMagic;
}

Status Segment::Populate(uint32_t first, uint32_t count) {
  const uint64_t bytes = count * plan_.slot_stride;
  if (Status status =
          CheckMemory(std::to_string(count) + " slots of " + BytesToString(plan_.slot_stride),
                      bytes, ReadUnpromisedMemory());
      !status.ok()) {
    return status;
  }
  // Last of what may fail: it is not given back.
  if (reserve_ != nullptr) {
    if (Status status = reserve_(bytes); !status.ok()) return status;
  }
  if (!plan_.variable_grows) {
    Take(slot_data(first), bytes);
    return {};
  }
  const uint64_t begin_bytes = TakenFor(kFirstVariableBytes);
  for (uint32_t slot = first; slot < first + count; ++slot) {
    Take(slot_data(slot), begin_bytes);
    taken_of_[slot] = begin_bytes;
    promise_.More(plan_.slot_stride - begin_bytes);
  }
  return {};
}

uint64_t Segment::TakenFor(uint64_t variable_bytes) const {
  const uint64_t bytes = plan_.variable_offset + variable_bytes + kTensorPadding;
  return std::min((bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes,
                  plan_.slot_stride);
}

void Segment::MakeRoom(uint32_t slot, uint64_t bytes) {
  if (!plan_.variable_grows) return;
  const uint64_t taken = taken_of_[slot], needed = TakenFor(bytes);
  if (needed <= taken) return;
  Take(slot_data(slot) + taken, needed - taken);
  taken_of_[slot] = needed;
  promise_.Less(needed - taken);
}

void Segment::Take(uint8_t* data, uint64_t bytes) {
  if (!LayHugePages(data, bytes)) has_huge_pages_.store(false, std::memory_order_relaxed);
  taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return;
  // Before Linux 5.14: touch each page.
  for (uint64_t offset = 0; offset < bytes; offset += kPageBytes) {
    static_cast<volatile uint8_t*>(data)[offset] = 0;
  }
}

}  // namespace penstock::ring
