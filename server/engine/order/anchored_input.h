// Elements of an input that wait at the front of an op, and can be had again from a cursor: the
// input's position is kept in front of every chunk of them.
//
// The position is that of the input in front of the chunk which the first waiting element is of,
// and how many of the chunk's elements are in front of it. Chunks begin at the same elements in
// every run.
//
// Threads:  one at a time (the front's lock).
// Owns:     the references that wait.
// Cost:     one position of the input for kChunkElements elements.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/memory_charge.h"
#include "server/engine/order/order_op.h"

namespace penstock {

class AnchoredInput {
 public:
  static constexpr uint64_t kChunkElements = 64;

  AnchoredInput(FrontContext& context, std::unique_ptr<OrderOp> input)
      : context_(context), input_(std::move(input)) {}

  // Pulls until `count` elements wait. kEnd, kFailed: there are fewer, and no more come.
  Pulled Fill(uint64_t count);

  uint64_t waiting() const { return records_.size() / width() - first_; }
  // The references of waiting element number `i`.
  const RecordRef* operator[](uint64_t i) const { return &records_[(first_ + i) * width()]; }

  // Leaves out the first `*count` elements, whether they wait or are still to come, and takes those
  // that it has left out from `*count`.
  Pulled Drop(uint64_t* count);

  void Restart(uint64_t epoch);
  void Save(Position& position) const;
  absl::Status Restore(Position& position);

  uint32_t width() const { return input_->width(); }
  absl::Status status() const { return input_->status(); }

 private:
  struct Chunk {
    Position start;     // of the input
    uint64_t rows = 0;  // that have arrived

    // What it takes, whatever rows arrive.
    uint64_t bytes() const;
  };

  void DropWaiting(uint64_t count);

  FrontContext& context_;
  const std::unique_ptr<OrderOp> input_;
  std::deque<Chunk> chunks_;   // the first holds the first waiting element
  bool pulling_ = false;       // the last chunk is not complete
  uint64_t left_out_ = 0;      // of the first chunk, or of the next one to come
  MemoryCharge charge_;        // of the references that wait
  MemoryCharge chunk_charge_;  // of the chunks
  RecordList records_;  // of elements that wait, behind first_ * width() that do not any more
  uint64_t first_ = 0;
  uint64_t resume_at_ = 0;         // elements of the first chunk to leave out when they come
  Pulled result_ = Pulled::kSome;  // what the input came to
};

}  // namespace penstock
