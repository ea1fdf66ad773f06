// Which documents, or pieces of them, make up a sequence: decided by their numbers of tokens alone.
//
// Concatenating is one pass. First fit decreasing finds the first sequence with room by a tree of
// the largest rooms; best fit decreasing finds the fullest one in an ordered set (D. S. Johnson,
// "Near-Optimal Bin Packing Algorithms", 1973, for both).
//
// Threads:  one at a time.
// Owns:     the pieces of one window's sequences, charged to the account of the thread that makes
//           it.
// Cost:     O(1) a document for concatenating, O(log n) for the others, n being the documents of a
//           window.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/memory_charge.h"

namespace penstock {

// Tokens `start` to `start + length - 1` of document number `document` of the window.
struct PackedPiece {
  uint32_t document = 0;
  uint32_t start = 0;
  uint32_t length = 0;
  bool is_last = false;  // of its document, in the order of the sequences

  bool operator==(const PackedPiece&) const = default;
};

enum class PackMethod { kConcat, kBestFit, kFirstFitDecreasing };

struct PackRules {
  PackMethod method = PackMethod::kConcat;
  uint32_t sequence_length = 1;
  // Of kConcat: whether a document goes on in the next sequence. One longer than a sequence does so
  // in any case, unless it is truncated.
  bool split_documents = true;
  bool truncate = false;
  uint32_t max_documents = UINT32_MAX;  // pieces of one sequence
  // Of kConcat: the window's last sequence is left out unless it is full.
  bool drop_remainder = false;
};

class Packer {
 public:
  static std::unique_ptr<Packer> Make(const PackRules& rules);
  virtual ~Packer() = default;

  // The window's next document. 0 tokens take no place.
  void Add(uint32_t tokens) { AddDocument(num_documents_++, tokens); }
  // The window has no more documents.
  virtual void Finish() = 0;
  // The next window, which has none yet.
  void Clear();

  // The sequences that are complete, in order.
  uint64_t num_sequences() const { return ends_.size(); }
  absl::Span<const PackedPiece> Sequence(uint64_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::MakeConstSpan(pieces_).subspan(begin, ends_[i] - begin);
  }

 protected:
  explicit Packer(const PackRules& rules) : rules_(rules) {}

  virtual void AddDocument(uint32_t document, uint32_t tokens) = 0;
  virtual void ClearOpen() = 0;

  void AddPiece(const PackedPiece& piece) {
    charge_.MakeRoom(pieces_, 1);
    pieces_.push_back(piece);
  }
  // Those that were added since the last sequence make up the next one.
  void EndSequence() {
    charge_.MakeRoom(ends_, 1);
    ends_.push_back(pieces_.size());
  }
  // Those that were added since are of none.
  void DropOpenPieces() { pieces_.resize(ends_.empty() ? 0 : ends_.back()); }
  // Of the window so far.
  uint32_t num_documents() const { return num_documents_; }

  const PackRules rules_;
  MemoryCharge charge_;  // of the vectors

 private:
  uint32_t num_documents_ = 0;
  std::vector<PackedPiece> pieces_;
  std::vector<uint64_t> ends_;  // of each sequence, in pieces_
};

}  // namespace penstock
