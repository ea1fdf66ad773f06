#include "client/c/step_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/c/batch.h"

namespace penstock_client {
namespace {

using penstock::ring::Code;
using penstock::ring::ConsumerPosition;
using penstock::ring::Lease;
using penstock::ring::Status;

// In front of the cursor of the step that it points into.
struct PartHead {
  char magic[8];
  uint64_t step;
  uint32_t rows;
  uint32_t reserved[3];
};
static_assert(sizeof(PartHead) == kPartCursorBytes);
constexpr char kMagic[8] = {'P', 'N', 'S', 'T', 'K', 'P', 'R', 'T'};

}  // namespace

Status ReadPartCursor(ConsumerPosition* position, uint32_t* rows) {
  *rows = 0;
  std::string& cursor = position->cursor;
  PartHead head;
  if (cursor.size() < sizeof head || std::memcmp(cursor.data(), kMagic, sizeof kMagic) != 0)
    return {};
  std::memcpy(&head, cursor.data(), sizeof head);
  if (head.rows == 0 || head.step == penstock::ring::kNoStep)
    return {Code::kInvalidArgument, "a cursor inside of a batch is damaged"};
  cursor.erase(0, sizeof head);
  position->step = head.step;
  *rows = head.rows;
  return {};
}

Status CountParts(penstock_loader* loader) {
  if (loader->batch_rows == 0) return {};
  int64_t full = 0;
  for (const penstock::ring::TensorEntry& entry : loader->entries) {
    if ((entry.flags & penstock::ring::kTensorBatched) != 0 && entry.ndim > 0)
      full = std::max(full, entry.shape[0]);
  }
  if (full == 0) {
    return {Code::kFailedPrecondition,
            "batch_rows divides the rows of a batch, and this pipeline has no `batch` (pipeline " +
                loader->pipeline + ")"};
  }
  const auto rows = static_cast<uint64_t>(full);
  if (rows % loader->batch_rows != 0) {
    return {Code::kFailedPrecondition,
            "a consumer's batches are equal parts of the pipeline's: give the pipeline batches of "
            "a common multiple of what its consumers want; " +
                std::to_string(loader->batch_rows) + " does not divide " + std::to_string(full) +
                " (pipeline " + loader->pipeline + ")"};
  }
  if (loader->part_rows % loader->batch_rows != 0) {
    return {Code::kFailedPrecondition,
            "the cursor points into a batch, behind rows that are no multiple of batch_rows: " +
                std::to_string(loader->part_rows) + " and " + std::to_string(loader->batch_rows)};
  }
  loader->parts = static_cast<uint32_t>(rows / loader->batch_rows);
  return {};
}

bool OpenLease(penstock_loader* loader, const Lease& lease, bool copies, ConsumerPosition before) {
  OpenStep& open = loader->open;
  Source* source = loader->source;
  const uint32_t rows = std::max(std::min(lease.valid_rows, lease.rows), 1u);
  open.source = source;
  open.lease = lease;
  open.next = 0;
  open.parts = std::min((rows + loader->batch_rows - 1) / loader->batch_rows, loader->parts);
  open.copies = copies;
  // A consumer that missed steps does not know the cursor in front of this one.
  open.has_before = before.step == lease.step;
  open.before = std::move(before.cursor);
  source->references.fetch_add(1, std::memory_order_relaxed);
  PartLease& parts = source->part_leases[lease.slot];
  parts.was_written.store(false, std::memory_order_relaxed);
  parts.left.store(open.parts, std::memory_order_relaxed);
  const uint32_t taken = std::exchange(loader->part_rows, 0) / loader->batch_rows;
  if (taken == 0 || lease.step != loader->part_step) return true;
  if (taken >= open.parts) {
    CloseStep(loader);
    return false;
  }
  open.next = taken;
  ReleaseParts(loader, source, lease, taken);
  return true;
}

penstock_batch* NextPart(penstock_loader* loader) {
  OpenStep& open = loader->open;
  Source* source = open.source;
  const uint32_t part = open.next++;
  penstock_batch* batch = nullptr;
  if (open.copies) {
    batch = Copy(loader, source, open.lease, part);
    ReleaseParts(loader, source, open.lease, 1);
    if (batch != nullptr) loader->copies.fetch_add(1, std::memory_order_relaxed);
  } else {
    batch = &source->slots[open.lease.slot * loader->parts + part];
    batch->part = part;
    if (batch->loader == nullptr) {
      batch->source = source;
      Prepare(loader, open.lease.data, batch);
    }
    if (Show(open.lease, batch)) {
      source->references.fetch_add(1, std::memory_order_relaxed);
    } else {
      ReleaseParts(loader, source, open.lease, 1);
      batch = nullptr;
    }
  }
  loader->part_position.store(open.lease.step * loader->parts + open.next,
                              std::memory_order_relaxed);
  if (batch != nullptr) {
    batch->part_cursor.clear();
    if (open.next < open.parts && open.has_before) {
      PartHead head = {};
      std::memcpy(head.magic, kMagic, sizeof kMagic);
      head.step = open.lease.step;
      head.rows = open.next * loader->batch_rows;
      batch->part_cursor.assign(reinterpret_cast<const char*>(&head), sizeof head);
      batch->part_cursor += open.before;
    }
  }
  if (open.next == open.parts) {
    loader->part_position.store((open.lease.step + 1) * loader->parts, std::memory_order_relaxed);
  }
  if (batch == nullptr || open.next == open.parts) CloseStep(loader);
  return batch;
}

void NotePosition(penstock_loader* loader) {
  if (loader->batch_rows == 0) return;
  loader->part_position.store(
      loader->source->reader->next_step() * loader->parts + loader->part_rows / loader->batch_rows,
      std::memory_order_relaxed);
}

void CloseStep(penstock_loader* loader) {
  OpenStep& open = loader->open;
  if (open.source == nullptr) return;
  Source* source = std::exchange(open.source, nullptr);
  if (open.next < open.parts) ReleaseParts(loader, source, open.lease, open.parts - open.next);
  Unreference(source);
}

void ReleaseParts(penstock_loader* loader, Source* source, const Lease& lease, uint32_t count) {
  PartLease& parts = source->part_leases[lease.slot];
  // Whoever lets go last has seen what the others did with the slot.
  if (parts.left.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (parts.was_written.load(std::memory_order_relaxed))
    source->view.Drop(lease.data, source->reader->slot_stride());
  ReleaseLease(loader, source, lease);
}

}  // namespace penstock_client
