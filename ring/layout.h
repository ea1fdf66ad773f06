// Every byte that penstockd and a client share, and nothing else: the contract of the data plane.
// docs/ring.md says the same in words, for clients in other languages.
//
// Threads:  words declared std::atomic may be touched by both sides at any time; all other bytes of
//           a segment are written by the daemon before the word that publishes them, and are
//           constant while a client may look at them.
// Owns:     nothing. A segment is made by ring/segment.h, a control page by ring/control_page.h.
// Limits:   little-endian, 64-bit, cache lines of 64 bytes, pages of 4 KiB.
//
// Two kinds of memory, both memfds that travel by SCM_RIGHTS:
//
//   segment       one for each run of a pipeline; written by the daemon, sealed so that nobody else
//                 can ever write or resize it
//   control page  one for each consumer; written by that consumer, shared with the daemon only,
//                 hostile to the daemon
//
// The segment:
//
//   0                     SegmentHeader                          4,096 bytes
//   tensor_table_offset   TensorEntry[num_tensors]               one for each tensor of a batch
//   slot_table_offset     SlotEntry[slots_max]                   what each slot holds now
//   ring_table_offset     RingEntry[ring_entries]                from a step to its slot
//   extent_table_offset   TensorExtent[slots_max][num_tensors]   where each tensor's parts lie
//   structure_offset      text                                   how tensors make up an element
//   slot_data_offset      slot 0 │ slot 1 │ … │ slot slots_max-1
//                         slot_stride bytes each, aligned to a page
//
// One slot: first the fixed tensors, which are dense and of a shape that is known, each at the same
// place in every slot; then the parts of all others, one after another, at places of their own in
// every batch. Everything is aligned to 64 bytes and followed by 64 bytes or more that belong to
// nobody:
//
//   entry[0].offset            entry[1].offset            variable_offset
//   ▼                          ▼                          ▼
//   ┌─────────────────┬────────┬─────────────────┬────────┬──────┬────────┬──────┬────────┬ … ┐
//   │ fixed tensor    │ ≥ 64 B │ fixed tensor    │ ≥ 64 B │ part │ ≥ 64 B │ part │ ≥ 64 B │   │
//   └─────────────────┴────────┴─────────────────┴────────┴──────┴────────┴──────┴────────┴ … ┘
//     capacity_bytes                                       ◄───────── variable_bytes ─────────►
//
// The parts of a tensor by its kind, in the order of TensorExtent::parts; n is the number of its
// elements:
//
//   dense    values                     rows × row_bytes, in C order; the shape is entry.shape,
//                                       with shape[0] = rows where BATCHED
//            values │ shape             an axis of entry.shape is -1; shape: int64[ndim]
//   string   offsets │ bytes            offsets: int64[n + 1]; element i is
//                                       bytes[offsets[i] … offsets[i + 1])
//            offsets │ bytes │ shape    an axis is -1
//   ragged   values │ splits × R        R = ragged_rank ≤ 3; splits: int64[m + 1] for each ragged
//                                       axis, the outermost first: row i of that axis is
//                                       [splits[i] … splits[i + 1]) of the next one, and of the
//                                       values behind the last. Axes 1 … R of entry.shape are -1,
//                                       those behind them are known
//            offsets │ bytes │ splits × R            a ragged string, R ≤ 2
//   sparse   values │ indices │ shape   indices: int64[nnz][ndim]; shape: int64[ndim]
//            offsets │ bytes │ indices │ shape       a sparse string
//
// The values of a sparse tensor have the order of their rows; what else their indices are is not
// looked at. The extents of fixed tensors never change and a client may ignore them; those of the
// others are written before the step is published.
//
// The structure of an element is JSON: `null` is the next tensor in their order, an array a tuple,
// an object a dict whose keys keep their order. {"x":null,"y":[null,null]} is a dict of a tensor
// and a pair, `null` a lone tensor. Without a text the element is a flat dict of all tensors.
//
// How a step moves through a slot (tests/ring/interleaving_test.cc tries every order):
//
//   daemon                                           consumer
//   ──────                                           ────────
//   claims a free slot and fills it
//   SlotEntry, RingEntry of step s
//   published = s + 1       ─ SYNC slot-publish ─►   sees published > s
//                                                    finds the slot: RingEntry[s % ring_entries]
//                                                    reads the batch in place
//   released[slot] is s+1   ◄─ SYNC slot-release ─   released[slot] = s + 1
//   the slot is free when every consumer that needs s has released it
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::ring {

// Changes with every change of this file or of attach.h that an older peer would misread.
inline constexpr uint32_t kAbiVersion = 4;

inline constexpr uint64_t kSegmentMagic = 0x4745534b54534e50;  // "PNSTKSEG"
inline constexpr uint64_t kControlMagic = 0x4c54434b54534e50;  // "PNSTKCTL"

inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kTensorAlignment = 64;
inline constexpr size_t kTensorPadding = 64;

inline constexpr uint32_t kMaxSlots = 64;
inline constexpr uint32_t kMaxConsumers = 64;
inline constexpr uint32_t kMaxTensors = 4096;
inline constexpr uint32_t kMaxDims = 16;
inline constexpr uint32_t kMaxNameBytes = 128;
inline constexpr uint32_t kMaxCursorBytes = 1024;
inline constexpr uint32_t kMaxMessageBytes = 1024;
inline constexpr uint32_t kMaxStructureBytes = 64 << 10;
inline constexpr uint32_t kMaxUncountedBytes = 256;
inline constexpr uint32_t kMaxPaddingBytes = 20;
inline constexpr uint32_t kMaxVerdictBytes = 512;
inline constexpr uint32_t kMaxParts = 4;
inline constexpr uint32_t kMaxRaggedRank = 3;

// Element types. The codes are those of penstock.v1.DataType and of base/dtype.h; a test
// compares them.
enum class TensorDType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt8 = 2,
  kUint8 = 3,
  kInt16 = 4,
  kUint16 = 5,
  kInt32 = 6,
  kUint32 = 7,
  kInt64 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kBfloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kString = 14,
};

enum class TensorKind : uint8_t { kDense = 0, kRagged = 1, kString = 2, kSparse = 3 };

// TensorEntry::flags
inline constexpr uint16_t kTensorBatched = 1;  // the first axis counts rows
inline constexpr uint16_t kTensorPadded =
    2;  // smaller rows are filled up with TensorEntry::padding
inline constexpr uint16_t kTensorNarrowSplits =
    4;  // ragged: row splits are int32 for trainers, int64 here

// No step: a slot that is free or being filled.
inline constexpr uint64_t kNoStep = UINT64_MAX;
// ControlPage::wake_at of a consumer that is awake.
inline constexpr uint64_t kAwake = UINT64_MAX;
// ControlPage::stop_at of a consumer that goes on.
inline constexpr uint64_t kNeverStops = UINT64_MAX;

// ControlPage::verdict, beside the codes of ring/status.h.
inline constexpr int32_t kVerdictPeerLost = 102;  // a rank of the group has not come back
inline constexpr int32_t kVerdictDetached = 103;  // too slow, or another one took its place
inline constexpr int32_t kVerdictReattach = 104;  // attach again, with the position: other memory

// The top bit of StepGrant::step: the step was in the hands of a consumer that has died.
inline constexpr uint64_t kRedelivered = uint64_t{1} << 63;

// The first page of a segment.
//
//   0     magic │ abi_version, header_bytes │ generation │ segment_bytes
//   32    sizes of a TensorEntry, a SlotEntry, a RingEntry, a ControlPage
//   48    num_tensors │ slots_max │ ring_entries │ pipeline_bytes
//   64    offsets of the four tables and of the slots │ slot_stride
//   128   pipeline
//   256   published, wake_word              one cache line, written at every publish
//   320   ended, end_code, …                written once
//   384   waits_for                         written when the daemon falls asleep and wakes up
//   448   slots, consumers, lease_share     written when a consumer comes or goes
//   512   end_message
//   1536  variable_offset, variable_bytes │ structure_offset, structure_bytes
//   1568  num_steps_plus_1 │ uncounted_bytes │ zeros │ uncounted[256]
//   1840  pass_steps │ pass_last_rows │ zeros
struct SegmentHeader {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t header_bytes;
  uint64_t generation;  // drawn at creation; no two segments of a machine share it
  uint64_t segment_bytes;
  uint32_t tensor_entry_bytes;
  uint32_t slot_entry_bytes;
  uint32_t ring_entry_bytes;
  uint32_t control_page_bytes;
  uint32_t num_tensors;
  uint32_t slots_max;
  uint32_t ring_entries;  // a power of two, at least slots_max
  uint32_t pipeline_bytes;

  uint64_t tensor_table_offset;
  uint64_t slot_table_offset;
  uint64_t ring_table_offset;
  uint64_t extent_table_offset;
  uint64_t slot_data_offset;
  uint64_t slot_stride;
  uint64_t reserved_0[2];

  char pipeline[kMaxNameBytes];

  // The number of published steps: step s may be read when published > s.
  // SYNC slot-publish
  alignas(kCacheLine) std::atomic<uint64_t> published;
  // The futex that consumers sleep on, each with its own bit of a FUTEX_WAIT_BITSET mask: bit
  // index % 32. It changes before every wake-up, and not when nobody sleeps.
  // SYNC consumer-wake
  std::atomic<uint32_t> wake_word;
  uint32_t reserved_1[13];

  // 1 when no further step follows; end_code and end_message are valid then.
  // SYNC stream-end
  std::atomic<uint32_t> ended;
  int32_t end_code;  // a Code of ring/status.h; 0 is the regular end
  uint32_t end_message_bytes;
  uint32_t reserved_2[13];

  // Bit i: the daemon sleeps, and the next release of the consumer with index i may free a slot;
  // that consumer rings its bell then.
  // SYNC release-wake
  std::atomic<uint64_t> waits_for;
  uint64_t reserved_3[7];

  std::atomic<uint32_t> slots;  // how many of slots_max are in use; it only grows
  std::atomic<uint32_t> consumers;
  std::atomic<uint32_t> lease_share;  // how many slots one consumer may hold at a time
  uint32_t reserved_4[13];

  char end_message[kMaxMessageBytes];

  // The part of every slot for tensors that are not fixed, from the slot's first byte.
  uint64_t variable_offset;
  uint64_t variable_bytes;
  uint64_t structure_offset;
  uint64_t structure_bytes;
  // The steps of the whole stream, from step 0 to its end, plus 1; 0 where nobody has counted them,
  // and then `uncounted` is a sentence that says why. A peer that does not know these fields reads
  // and writes zeros.
  uint64_t num_steps_plus_1;
  uint32_t uncounted_bytes;
  uint32_t reserved_6;
  char uncounted[kMaxUncountedBytes];
  // Which of those steps are full: all but the last of every `pass_steps`, from step 0 on, of which
  // `pass_last_rows` rows are elements. 0 where that is not known, or num_steps_plus_1 is 0.
  uint64_t pass_steps;
  uint32_t pass_last_rows;
  uint32_t reserved_7;
  uint8_t reserved_5[kPageBytes - 1856];
};

// One tensor of every batch.
//
//   0    name_bytes │ dtype, kind, flags │ offset │ capacity_bytes │ row_bytes
//   32   ndim │ ragged_rank │ padding_bytes │ padding[20]
//   64   shape[16]
//   192  name[128]
struct TensorEntry {
  uint32_t name_bytes;
  uint8_t dtype;  // TensorDType
  uint8_t kind;   // TensorKind
  uint16_t flags;
  uint64_t offset;          // fixed: from the slot's first byte; else 0
  uint64_t capacity_bytes;  // fixed: reserved for it, without the spare bytes behind it; else 0
  uint64_t row_bytes;       // fixed and batched: bytes of one row; else 0
  uint32_t ndim;
  uint32_t ragged_rank;
  // Where PADDED: one element, with which rows are filled up to the largest of their batch. No
  // bytes are a zero or an empty string. A peer that does not know these fields reads and writes
  // zeros.
  uint32_t padding_bytes;
  uint8_t padding[kMaxPaddingBytes];
  int64_t shape[kMaxDims];  // of a full batch; -1 for an axis that only the data tells
  char name[kMaxNameBytes];
};

// What a slot holds. Written before the step is published, constant until every consumer has
// released it.
//
//   0   step │ epoch │ rows, cursor_bytes │ valid_rows │ zeros
//   64  cursor[1024]
struct SlotEntry {
  uint64_t step;  // kNoStep while the slot is free or being filled
  uint64_t epoch;
  uint32_t rows;  // that the batched tensors have
  uint32_t cursor_bytes;
  uint32_t valid_rows;  // how many of them, from the first on, are elements; the others fill up
  uint32_t reserved_0;
  uint64_t reserved[4];
  uint8_t cursor[kMaxCursorBytes];
};

// Where step s lies: entry s % ring_entries.
struct RingEntry {
  uint64_t step;
  uint32_t slot;
  uint32_t reserved;
};

// The parts of one tensor in one slot, in the order given at the top; unused parts are zero.
struct TensorPart {
  uint64_t offset;  // from the slot's first byte
  uint64_t bytes;
};
struct TensorExtent {
  TensorPart parts[kMaxParts];
};

// A step that a consumer of a split group may take, and the slot that holds it.
struct StepGrant {
  uint64_t step;  // and kRedelivered
  uint64_t slot;
};

// What one consumer and the daemon tell each other. The daemon fills in the first cache line and
// what stands from 768 on, and reads none of it again; a consumer that scribbles there misleads
// itself.
//
//   0     magic │ abi_version, page_bytes │ generation │ consumer, index │ start_step │
//         start_cursor_bytes, takes_grants │ zeros
//   64    wake_at, stop_at, asked │ processor │ zeros
//   128   position │ zeros │ 192: returned
//   256   released[64]
//   768   verdict, verdict_bytes │ skip_to │ granted │ grants_ended │ zeros
//   1024  start_cursor[1024]
//   2048  grants[64]
//   3072  verdict_message[512]
//   3584  zeros
//
// The daemon copies a word before it looks at it, and uses none as an index, an offset or a length:
// `released` counts only where it equals the step that the slot holds, plus one.
//
// A verdict or a skip meets a consumer that is just taking a step like this, so that a slot is used
// again or is the consumer's, never both (SYNC verdict):
//
//   daemon                                  consumer
//   verdict (or skip_to) = …                position = step + 1
//   p = position                            verdict, skip_to?  → the step is not its own
//   slots of steps below p stay its own     else it is
struct ControlPage {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t page_bytes;
  uint64_t generation;
  uint32_t consumer;  // unique in its ring's life
  uint32_t index;     // below kMaxConsumers; used again when the consumer has left
  uint64_t start_step;
  // Of the position at which it starts; 0 where that is the beginning, or not known.
  uint32_t start_cursor_bytes;
  uint32_t takes_grants;  // 1: it takes the steps that are granted to it, and asks for them
  uint64_t reserved_0[2];

  // The consumer sleeps and wants to be woken when published >= wake_at; kAwake otherwise. Whoever
  // wakes it sets kAwake. Of one that takes grants: when granted >= wake_at.
  // SYNC consumer-wake
  alignas(kCacheLine) std::atomic<uint64_t> wake_at;
  // It takes no step from this one on, but may still hold earlier ones. The daemon believes the
  // first value below kNeverStops that it sees.
  std::atomic<uint64_t> stop_at;
  // How many steps it has asked for in all, where it takes grants.
  std::atomic<uint64_t> asked;
  // Where it sleeps, plus 1, as long as a wake-up may come from there a moment later and it wakes
  // up by itself soon; 0: it is to be woken at once. Written before wake_at; the daemon takes it
  // for a hint. A peer that does not know it leaves zeros, or does not look.
  std::atomic<uint32_t> processor;
  uint32_t reserved_8;
  uint64_t reserved_1[4];

  // The next step it will take.
  // SYNC verdict
  alignas(kCacheLine) std::atomic<uint64_t> position;
  uint64_t reserved_2[7];
  // Bit i: it has let go of the i-th of the leases of an earlier ring that it named when it
  // attached.
  std::atomic<uint64_t> returned;
  uint64_t reserved_6[7];

  // released[slot] = step + 1 when the consumer has let go of that step, in any order.
  // SYNC slot-release
  std::atomic<uint64_t> released[kMaxSlots];

  // --- written by the daemon ---

  // Not 0: why this consumer gets no further step, and the end of verdict_message.
  // SYNC verdict
  alignas(kCacheLine) std::atomic<int32_t> verdict;
  uint32_t verdict_bytes;
  // Steps below it that were not taken are left out.
  // SYNC verdict
  std::atomic<uint64_t> skip_to;
  // How many steps it was granted in all: grant i stands in grants[i % kMaxSlots].
  // SYNC step-grant
  std::atomic<uint64_t> granted;
  std::atomic<uint32_t> grants_ended;  // 1: no further grant follows
  uint32_t reserved_3[57];
  uint8_t start_cursor[kMaxCursorBytes];
  StepGrant grants[kMaxSlots];
  char verdict_message[kMaxVerdictBytes];
  uint8_t reserved_4[kPageBytes - 3584];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

static_assert(sizeof(SegmentHeader) == kPageBytes);
static_assert(offsetof(SegmentHeader, magic) == 0);
static_assert(offsetof(SegmentHeader, abi_version) == 8);
static_assert(offsetof(SegmentHeader, header_bytes) == 12);
static_assert(offsetof(SegmentHeader, generation) == 16);
static_assert(offsetof(SegmentHeader, segment_bytes) == 24);
static_assert(offsetof(SegmentHeader, tensor_entry_bytes) == 32);
static_assert(offsetof(SegmentHeader, slot_entry_bytes) == 36);
static_assert(offsetof(SegmentHeader, ring_entry_bytes) == 40);
static_assert(offsetof(SegmentHeader, control_page_bytes) == 44);
static_assert(offsetof(SegmentHeader, num_tensors) == 48);
static_assert(offsetof(SegmentHeader, slots_max) == 52);
static_assert(offsetof(SegmentHeader, ring_entries) == 56);
static_assert(offsetof(SegmentHeader, pipeline_bytes) == 60);
static_assert(offsetof(SegmentHeader, tensor_table_offset) == 64);
static_assert(offsetof(SegmentHeader, slot_table_offset) == 72);
static_assert(offsetof(SegmentHeader, ring_table_offset) == 80);
static_assert(offsetof(SegmentHeader, extent_table_offset) == 88);
static_assert(offsetof(SegmentHeader, slot_data_offset) == 96);
static_assert(offsetof(SegmentHeader, slot_stride) == 104);
static_assert(offsetof(SegmentHeader, pipeline) == 128);
static_assert(offsetof(SegmentHeader, published) == 256);
static_assert(offsetof(SegmentHeader, wake_word) == 264);
static_assert(offsetof(SegmentHeader, ended) == 320);
static_assert(offsetof(SegmentHeader, end_code) == 324);
static_assert(offsetof(SegmentHeader, end_message_bytes) == 328);
static_assert(offsetof(SegmentHeader, waits_for) == 384);
static_assert(offsetof(SegmentHeader, slots) == 448);
static_assert(offsetof(SegmentHeader, consumers) == 452);
static_assert(offsetof(SegmentHeader, lease_share) == 456);
static_assert(offsetof(SegmentHeader, end_message) == 512);
static_assert(offsetof(SegmentHeader, variable_offset) == 1536);
static_assert(offsetof(SegmentHeader, variable_bytes) == 1544);
static_assert(offsetof(SegmentHeader, structure_offset) == 1552);
static_assert(offsetof(SegmentHeader, structure_bytes) == 1560);
static_assert(offsetof(SegmentHeader, num_steps_plus_1) == 1568);
static_assert(offsetof(SegmentHeader, uncounted_bytes) == 1576);
static_assert(offsetof(SegmentHeader, uncounted) == 1584);
static_assert(offsetof(SegmentHeader, pass_steps) == 1840);
static_assert(offsetof(SegmentHeader, pass_last_rows) == 1848);
static_assert(offsetof(SegmentHeader, reserved_5) == 1856);

static_assert(sizeof(TensorEntry) == 320);
static_assert(offsetof(TensorEntry, name_bytes) == 0);
static_assert(offsetof(TensorEntry, dtype) == 4);
static_assert(offsetof(TensorEntry, kind) == 5);
static_assert(offsetof(TensorEntry, flags) == 6);
static_assert(offsetof(TensorEntry, offset) == 8);
static_assert(offsetof(TensorEntry, capacity_bytes) == 16);
static_assert(offsetof(TensorEntry, row_bytes) == 24);
static_assert(offsetof(TensorEntry, ndim) == 32);
static_assert(offsetof(TensorEntry, ragged_rank) == 36);
static_assert(offsetof(TensorEntry, padding_bytes) == 40);
static_assert(offsetof(TensorEntry, padding) == 44);
static_assert(offsetof(TensorEntry, shape) == 64);
static_assert(offsetof(TensorEntry, name) == 192);

static_assert(sizeof(SlotEntry) == 1088);
static_assert(offsetof(SlotEntry, step) == 0);
static_assert(offsetof(SlotEntry, epoch) == 8);
static_assert(offsetof(SlotEntry, rows) == 16);
static_assert(offsetof(SlotEntry, cursor_bytes) == 20);
static_assert(offsetof(SlotEntry, valid_rows) == 24);
static_assert(offsetof(SlotEntry, cursor) == 64);

static_assert(sizeof(RingEntry) == 16);
static_assert(offsetof(RingEntry, step) == 0);
static_assert(offsetof(RingEntry, slot) == 8);

static_assert(sizeof(TensorExtent) == 64);

static_assert(sizeof(ControlPage) == kPageBytes);
static_assert(offsetof(ControlPage, magic) == 0);
static_assert(offsetof(ControlPage, abi_version) == 8);
static_assert(offsetof(ControlPage, page_bytes) == 12);
static_assert(offsetof(ControlPage, generation) == 16);
static_assert(offsetof(ControlPage, consumer) == 24);
static_assert(offsetof(ControlPage, index) == 28);
static_assert(offsetof(ControlPage, start_step) == 32);
static_assert(offsetof(ControlPage, wake_at) == 64);
static_assert(offsetof(ControlPage, stop_at) == 72);
static_assert(offsetof(ControlPage, position) == 128);
static_assert(offsetof(ControlPage, released) == 256);
static_assert(offsetof(ControlPage, start_cursor_bytes) == 40);
static_assert(offsetof(ControlPage, takes_grants) == 44);
static_assert(offsetof(ControlPage, asked) == 80);
static_assert(offsetof(ControlPage, processor) == 88);
static_assert(offsetof(ControlPage, returned) == 192);
static_assert(offsetof(ControlPage, verdict) == 768);
static_assert(offsetof(ControlPage, skip_to) == 776);
static_assert(offsetof(ControlPage, granted) == 784);
static_assert(offsetof(ControlPage, grants_ended) == 792);
static_assert(offsetof(ControlPage, start_cursor) == 1024);
static_assert(offsetof(ControlPage, grants) == 2048);
static_assert(offsetof(ControlPage, verdict_message) == 3072);
static_assert(sizeof(StepGrant) == 16);

}  // namespace penstock::ring
