#include "client/c/own_batches.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/c/batch.h"
#include "ring/divided_rows.h"

namespace penstock_client {
namespace {

using penstock::ring::Code;
using penstock::ring::ConsumerPosition;
using penstock::ring::Lease;
using penstock::ring::Status;

using Wide = unsigned __int128;

// In front of the cursor of the step that it points into.
struct CursorHead {
  char magic[8];
  uint64_t step;
  uint32_t rows;        // of it that were taken
  uint32_t batch_rows;  // what `number` counts; 0: it is not told
  uint64_t number;      // of the next batch
};
static_assert(sizeof(CursorHead) == kCursorHeadBytes);
constexpr char kMagic[8] = {'P', 'N', 'S', 'T', 'K', 'P', 'R', 'T'};

Wide RowNumber(const penstock_loader& loader, uint64_t step, uint32_t row) {
  return Wide{step} * loader.step_rows + row;
}

// The first batch that begins at this row or behind it.
uint64_t NumberFrom(const penstock_loader& loader, uint64_t step, uint32_t row) {
  const Wide rows = RowNumber(loader, step, row);
  return static_cast<uint64_t>((rows + loader.batch_rows - 1) / loader.batch_rows);
}

bool TakesGrants(const penstock_loader& loader) {
  return loader.spec.mode == penstock::ring::GroupMode::kSplit;
}

// A batch's own share in the open step.
void ShareLease(const OpenStep& open) {
  open.source->references.fetch_add(1, std::memory_order_relaxed);
  open.source->shared_leases[open.lease.slot].holders.fetch_add(1, std::memory_order_relaxed);
}

void CloseStep(penstock_loader* loader) {
  Source* source = std::exchange(loader->own.open.source, nullptr);
  if (source == nullptr) return;
  ReleaseShare(loader, source, loader->own.open.lease);
  Unreference(source);
}

// Lets go of a step whose rows were not all given. One that a split group's consumer was given
// stays its own until it leaves: the group gives it to another one then.
void GiveUp(penstock_loader* loader, Source* source, const Lease& lease) {
  if (!TakesGrants(*loader)) ReleaseShare(loader, source, lease);
  Unreference(source);
}

void GiveUpHeld(penstock_loader* loader, penstock_batch* batch) {
  for (const auto& [source, lease] : batch->held) GiveUp(loader, source, lease);
  batch->held.clear();
}

// The number of a batch that begins here.
uint64_t TakeNumber(penstock_loader* loader) {
  OwnPosition& own = loader->own;
  // What a split group hands out next is not known: the number says where the first row stands.
  if (TakesGrants(*loader)) {
    const Wide row = RowNumber(*loader, own.open.lease.step, own.open.next);
    own.number = static_cast<uint64_t>(row / loader->batch_rows);
  }
  return (*own.number)++;
}

void SetCursor(penstock_loader* loader, penstock_batch* batch, bool is_view) {
  const OwnPosition& own = loader->own;
  const OpenStep& open = own.open;
  const bool inside = open.next < open.valid;
  const bool told = TakesGrants(*loader) || (inside && !open.has_before) ||
                    (!inside && *own.number == NumberFrom(*loader, open.lease.step + 1, 0));
  batch->own_cursor.clear();
  if (told && is_view) return;
  if (!told) {
    CursorHead head = {};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    head.step = open.lease.step + (inside ? 0 : 1);
    head.rows = inside ? open.next : 0;
    head.batch_rows = loader->batch_rows;
    head.number = *own.number;
    batch->own_cursor.assign(reinterpret_cast<const char*>(&head), sizeof head);
  }
  if (!told && inside) {
    batch->own_cursor += open.before;
  } else {
    batch->own_cursor.append(reinterpret_cast<const char*>(open.lease.cursor),
                             open.lease.cursor_bytes);
  }
}

// A batch of rows of the open step only.
penstock_batch* MakeView(penstock_loader* loader, RowRange rows) {
  OpenStep& open = loader->own.open;
  Source* source = open.source;
  const RowRange seen = RankRows(*loader, rows.first, rows.count);
  if (open.copies) {
    penstock_batch* batch = Copy(loader, source, open.lease, seen);
    if (batch != nullptr) loader->copies.fetch_add(1, std::memory_order_relaxed);
    return batch;
  }
  std::unique_ptr<penstock_batch[]>& views = source->shared_leases[open.lease.slot].views;
  // Parts of one step follow each other, and only the last may be a short one.
  if (views == nullptr) {
    views.reset(new (std::nothrow)
                    penstock_batch[size_t{loader->step_rows} / loader->batch_rows + 1]);
    if (views == nullptr) return nullptr;
  }
  penstock_batch* batch = &views[open.views];
  if (batch->loader == nullptr) {
    batch->source = source;
    Prepare(loader, open.lease.data, batch);
  }
  if (!Show(open.lease, seen, batch)) return nullptr;
  ++open.views;
  ShareLease(open);
  return batch;
}

// Appends rows of the open step to the batch that is being joined.
bool Join(penstock_loader* loader, RowRange rows) {
  OwnPosition& own = loader->own;
  const OpenStep& open = own.open;
  if (own.joining == nullptr) {
    auto batch = std::make_unique<penstock_batch>();
    batch->loader = loader;
    batch->is_copy = true;
    batch->lease = open.lease;
    batch->joined = std::make_unique<JoinedRows>(*loader);
    batch->number = TakeNumber(loader);
    own.joining = std::move(batch);
    own.is_beyond_share = false;
  }
  penstock_batch& batch = *own.joining;
  const RowRange wanted = batch.joined->Wanted(rows.count);
  penstock_batch piece;
  piece.source = open.source;
  Prepare(loader, open.lease.data, &piece);
  if (!Show(open.lease, {rows.first + wanted.first, wanted.count}, &piece) ||
      !batch.joined->Append(piece, wanted, rows.count)) {
    return false;
  }
  batch.lease.redelivered |= open.lease.redelivered;
  batch.valid_rows += std::min(open.valid - std::min(open.valid, rows.first), rows.count);
  // Whoever dies with it has not worked on these rows: another one takes them again, or the same
  // rank when it comes back.
  const bool is_held = std::any_of(batch.held.begin(), batch.held.end(), [&open](const auto& held) {
    return held.first == open.source && held.second.step == open.lease.step;
  });
  const bool is_shared = loader->spec.mode != penstock::ring::GroupMode::kBroadcast;
  own.is_beyond_share = own.is_beyond_share || (is_shared && open.copies);
  if (is_shared && !open.copies && !is_held) {
    batch.held.emplace_back(open.source, open.lease);
    ShareLease(open);
  }
  return true;
}

// The batch that was being joined is complete; its cursor is set.
penstock_batch* FinishJoined(penstock_loader* loader, Source* source) {
  penstock_batch* const batch = loader->own.joining.get();
  const uint32_t valid = batch->valid_rows;
  std::optional<uint32_t> torn;
  const bool laid = batch->joined->Lay(batch, &torn);
  if (torn) {
    source->reader->FailTorn(batch->lease, *torn,
                             "an offset or a row split leads out of its tensor");
  }
  if (!laid || torn) return nullptr;
  batch->valid_rows = std::min(valid - std::min(valid, batch->first_row), batch->rows);
  loader->joined.fetch_add(1, std::memory_order_relaxed);
  if (loader->own.is_beyond_share) loader->copies.fetch_add(1, std::memory_order_relaxed);
  return loader->own.joining.release();
}

}  // namespace

Status TakeCursorHead(penstock_loader* loader, ConsumerPosition* position) {
  OwnPosition& own = loader->own;
  std::string& cursor = position->cursor;
  CursorHead head = {};
  if (cursor.size() >= sizeof head && std::memcmp(cursor.data(), kMagic, sizeof kMagic) == 0) {
    std::memcpy(&head, cursor.data(), sizeof head);
    if ((head.rows == 0 && head.batch_rows == 0) || head.step == penstock::ring::kNoStep)
      return {Code::kInvalidArgument, "a cursor inside of a batch is damaged"};
    if (head.rows > 0 && loader->batch_rows == 0) {
      return {Code::kFailedPrecondition,
              "the cursor lies inside of a batch of the pipeline, " + std::to_string(head.rows) +
                  " rows behind its beginning: go on with batches of a size of their own "
                  "(batch_rows; batch_size in Python)"};
    }
    cursor.erase(0, sizeof head);
    position->step = head.step;
  }
  if (cursor.size() > penstock::ring::kMaxCursorBytes)
    return {Code::kInvalidArgument, "a cursor has at most 1024 bytes"};
  const uint32_t part_rows = std::exchange(own.part_rows, head.rows);
  // Of the first attachment it is looked at when the steps are known.
  if (loader->step_rows > 0) {
    if (Status status = CheckOwnBatches(loader); !status.ok()) {
      own.part_rows = part_rows;
      return status;
    }
  }
  own.part_step = position->step;
  own.aligns = cursor.empty() && !position->known();
  own.rows_to_skip = 0;
  own.number.reset();
  own.next_step.reset();
  if (head.batch_rows > 0 && head.batch_rows == loader->batch_rows) {
    own.number = head.number;
    own.next_step = head.step;
  }
  return {};
}

Status CheckOwnBatches(penstock_loader* loader) {
  if (loader->batch_rows == 0) return {};
  if (loader->pass_last_rows == penstock::ring::kDividedAmongHosts) {
    return {Code::kFailedPrecondition,
            "a batch size of one's own counts the rows of the stream, and pipeline " +
                loader->pipeline +
                " has only those of one of several hosts; give its spec another batch_size"};
  }
  const std::string named = " (pipeline " + loader->pipeline + ")";
  int64_t full = 0;
  for (const penstock::ring::TensorEntry& entry : loader->entries) {
    uint64_t bytes;
    if ((entry.flags & penstock::ring::kTensorBatched) != 0 && entry.ndim > 0)
      full = std::max(full, entry.shape[0]);
    if (__builtin_mul_overflow(entry.row_bytes, uint64_t{loader->batch_rows}, &bytes) ||
        bytes > INT64_MAX) {
      return {Code::kInvalidArgument, "a batch of " + std::to_string(loader->batch_rows) +
                                          " rows is larger than memory can be" + named};
    }
  }
  if (full == 0 || full > UINT32_MAX) {
    return {Code::kFailedPrecondition,
            "a batch size of one's own is made of the rows of batches, and this pipeline has no "
            "`batch`" +
                named};
  }
  loader->step_rows = static_cast<uint32_t>(full);
  loader->unjoinable = CheckJoinable(*loader);
  if (loader->unjoinable.empty()) return {};
  if (loader->step_rows % loader->batch_rows != 0) {
    return {Code::kFailedPrecondition,
            "batches of this pipeline can be divided, but not joined, since " + loader->unjoinable +
                ": " + std::to_string(loader->batch_rows) + " does not divide " +
                std::to_string(full) + named};
  }
  if (loader->own.part_rows % loader->batch_rows != 0) {
    return {
        Code::kFailedPrecondition,
        "the cursor points into a batch, behind rows that are no multiple of batch_rows: " +
            std::to_string(loader->own.part_rows) + " and " + std::to_string(loader->batch_rows) +
            "; and batches of this pipeline cannot be joined, since " + loader->unjoinable + named};
  }
  return {};
}

Opened OpenLease(penstock_loader* loader, const Lease& lease, bool copies,
                 ConsumerPosition before) {
  OwnPosition& own = loader->own;
  OpenStep& open = own.open;
  open = {};
  open.source = loader->source;
  open.lease = lease;
  // A reader of a torn table must not leave the slot.
  open.lease.rows = std::min(lease.rows, loader->step_rows);
  open.valid = std::min(lease.valid_rows, open.lease.rows);
  open.is_short = open.valid < loader->step_rows;
  open.copies = copies;
  // A consumer that missed steps does not know the cursor in front of this one.
  open.has_before = before.step == lease.step;
  open.before = std::move(before.cursor);
  open.source->references.fetch_add(1, std::memory_order_relaxed);
  SharedLease& shared = open.source->shared_leases[lease.slot];
  shared.was_written.store(false, std::memory_order_relaxed);
  shared.holders.store(1, std::memory_order_relaxed);
  const uint32_t taken = std::exchange(own.part_rows, 0);
  if (taken > 0 && lease.step == own.part_step) {
    open.next = taken;
    if (taken >= open.valid) {
      CloseStep(loader);
      return Opened::kBeyond;
    }
  }
  if (!TakesGrants(*loader)) {
    const bool is_first = !own.number.has_value();
    open.after_gap = own.next_step.has_value() && *own.next_step != lease.step;
    own.next_step = lease.step + 1;
    if (is_first || open.after_gap)
      own.number = std::max(own.number.value_or(0), NumberFrom(*loader, lease.step, open.next));
    if ((is_first && own.aligns) || open.after_gap) {
      const Wide begin = Wide{*own.number} * loader->batch_rows;
      const Wide row = RowNumber(*loader, lease.step, 0);
      own.rows_to_skip = begin > row ? static_cast<uint64_t>(begin - row) : 0;
    }
    const auto skipped =
        static_cast<uint32_t>(std::min<uint64_t>(own.rows_to_skip, open.valid - open.next));
    open.next += skipped;
    own.rows_to_skip = open.is_short ? 0 : own.rows_to_skip - skipped;
  }
  if (open.next < open.valid) return Opened::kOpen;
  // Rows that were joined in front of a gap, or of a step without any, are a batch first.
  if (own.joining != nullptr) return Opened::kOpen;
  CloseStep(loader);
  return Opened::kPassedOver;
}

Made MakeBatch(penstock_loader* loader, penstock_batch** out) {
  OwnPosition& own = loader->own;
  OpenStep& open = own.open;
  Source* source = open.source;
  *out = nullptr;
  if (std::exchange(open.after_gap, false) && own.joining != nullptr) {
    if (open.next == open.valid) CloseStep(loader);
    *out = FinishJoined(loader, source);
    return *out != nullptr ? Made::kBatch : Made::kFailed;
  }
  const uint32_t have = own.joining != nullptr ? own.joining->joined->rows() : 0;
  const uint32_t missing = loader->batch_rows - have;
  const RowRange rows = {open.next, std::min(missing, open.valid - open.next)};
  const bool ends = rows.count == missing || open.is_short;
  const uint32_t fills = open.lease.rows - open.valid;
  // The step's own last rows, if some are missing then.
  RowRange whole = {rows.first, std::min(missing, open.lease.rows - rows.first)};
  const bool is_view =
      have == 0 && ends && (whole.count == missing || fills == 0 || !loader->unjoinable.empty());
  if (!is_view && !Join(loader, rows)) return Made::kFailed;
  while (!is_view && ends && fills > 0 && own.joining->joined->rows() < loader->batch_rows) {
    const uint32_t left = loader->batch_rows - own.joining->joined->rows();
    if (!Join(loader, {open.valid, std::min(left, fills)})) return Made::kFailed;
  }
  if (is_view) {
    *out = MakeView(loader, whole);
    if (*out == nullptr) return Made::kFailed;
    (*out)->number = TakeNumber(loader);
  }
  open.next += rows.count;
  const bool is_over = open.next == open.valid;
  if (is_over && open.is_short && !TakesGrants(*loader))
    own.number = std::max(*own.number, NumberFrom(*loader, open.lease.step + 1, 0));
  // One that needs more rows may be the last.
  SetCursor(loader, is_view ? *out : own.joining.get(), is_view);
  if (ends && !is_view) *out = FinishJoined(loader, source);
  const bool failed = ends && *out == nullptr;
  if (is_over) CloseStep(loader);
  return failed ? Made::kFailed : ends ? Made::kBatch : Made::kNeedsStep;
}

Made MakeLastBatch(penstock_loader* loader, penstock_batch** out) {
  *out = nullptr;
  if (loader->own.joining == nullptr) return Made::kNeedsStep;
  *out = FinishJoined(loader, loader->source);
  return *out != nullptr ? Made::kBatch : Made::kFailed;
}

void NotePosition(penstock_loader* loader) {
  if (loader->batch_rows == 0) return;
  const OwnPosition& own = loader->own;
  loader->own_position.store(
      own.number ? *own.number
                 : NumberFrom(*loader, loader->source->reader->next_step(), own.part_rows),
      std::memory_order_relaxed);
}

uint64_t OwnBatches(const penstock_loader& loader, uint64_t steps) {
  return static_cast<uint64_t>(RowNumber(loader, steps, 0) / loader.batch_rows);
}

Status CountOwnBatches(const penstock_loader& loader, uint64_t* batches) {
  if (TakesGrants(loader)) {
    return {
        Code::kFailedPrecondition,
        "the batches of a split group's consumers depend on who is given which rows; the length "
        "is known without batch_rows only"};
  }
  if (loader.pass_steps == 0 && *loader.num_steps > 0) {
    return {
        Code::kFailedPrecondition,
        "the length of this stream is known in the pipeline's own batches only: what follows its "
        "`batch` decides which of them are short, and this consumer takes others (batch_rows)"};
  }
  const uint64_t pass_steps = std::max<uint64_t>(loader.pass_steps, 1);
  const uint64_t passes = *loader.num_steps / pass_steps;
  const Wide left = RowNumber(loader, *loader.num_steps % pass_steps, 0);
  const uint32_t last_rows = std::min(loader.pass_last_rows, loader.step_rows);
  const auto count = [&loader](Wide rows) {
    return (rows + loader.batch_rows - 1) / loader.batch_rows;
  };
  // Passes are joined, unless they end with a short step.
  const Wide found =
      last_rows == loader.step_rows
          ? count(RowNumber(loader, *loader.num_steps, 0))
          : passes * count(RowNumber(loader, pass_steps - 1, last_rows)) + count(left);
  if (found > UINT64_MAX) return {Code::kOutOfRange, "there are more than 2^64 batches"};
  *batches = static_cast<uint64_t>(found);
  return {};
}

void DropOwn(penstock_loader* loader) {
  OwnPosition& own = loader->own;
  if (own.joining != nullptr) GiveUpHeld(loader, own.joining.get());
  own.joining.reset();
  if (Source* source = std::exchange(own.open.source, nullptr); source != nullptr)
    GiveUp(loader, source, own.open.lease);
}

void DropBatch(penstock_loader* loader, penstock_batch* batch) {
  if (batch == nullptr) return;
  if (!batch->is_copy) {
    GiveUp(loader, batch->source, batch->lease);
    return;
  }
  GiveUpHeld(loader, batch);
  delete batch;
}

void ReleaseShare(penstock_loader* loader, Source* source, const Lease& lease) {
  SharedLease& shared = source->shared_leases[lease.slot];
  // Whoever lets go last has seen what the others did with the slot.
  if (shared.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (shared.was_written.load(std::memory_order_relaxed))
    source->view.Drop(lease.data, source->reader->slot_stride());
  ReleaseLease(loader, source, lease);
}

void ReleaseHeld(penstock_loader* loader, penstock_batch* batch) {
  for (const auto& [source, lease] : batch->held) {
    ReleaseShare(loader, source, lease);
    Unreference(source);
  }
  batch->held.clear();
}

}  // namespace penstock_client
