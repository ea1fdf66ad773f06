// Raw deflate (RFC 1951): blocks of stored or coded bytes, until one that says it is the last.
//
// Threads:  one thread.
// Owns:     the tables of one block. Borrows the input, which it moves forward.
// Limits:   constant memory, 52 KiB; any bytes are safe to inflate. What is accepted is what zlib
//           accepts.
// Cost:     inflate_loop.h, but for some bytes before either end, which are inflated symbol by
//           symbol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/inflate/compressed_input.h"
#include "io/inflate/inflate_loop.h"
#include "io/inflate/inflate_table.h"

namespace penstock {

class Inflater {
 public:
  // How many of the bytes before may be referred to.
  static constexpr size_t kHistoryBytes = 32 << 10;
  // What damage() says where the input ends too soon.
  static constexpr char kCut[] = "the file is cut: it ends inside a member";

  explicit Inflater(CompressedInput* input,
                    InflateSymbols inflate_symbols = InflateSymbolsVariants().front())
      : input_(*input),
        inflate_symbols_(inflate_symbols),
        table_(std::make_unique<InflateTable>()) {}

  // The first block begins at the input's next byte.
  void Start();

  // Inflates into `out`, at least a byte where the blocks do not end and the input neither fails
  // nor is damaged, and all but some hundred bytes of it as a rule. In front of `out` lies what
  // came out since Start(), at least the last kHistoryBytes of it.
  size_t Inflate(absl::Span<uint8_t> out);

  // Behind the last block; the input is at the byte behind it.
  bool ended() const { return phase_ == Phase::kEnded; }
  // The input's.
  const absl::Status& error() const { return error_; }
  // What is wrong with the bytes; null if nothing is.
  const char* damage() const { return damage_; }
  // Whole bytes that were taken from the input, but not used yet.
  size_t unused_bytes() const { return num_bits_ / 8; }

 private:
  enum class Phase : uint8_t { kBlock, kStored, kCoded, kEnded };

  bool fails() const { return damage_ != nullptr || !error_.ok(); }

  // Has `count` bits at hand, at most 32; false where the file ends before.
  bool Fill(uint32_t count);
  // The next `count` bits, at most 32. Where the file ends before, there is damage.
  uint32_t Take(uint32_t count);
  void GiveBack();

  void BeginBlock();
  void BeginStored();
  void ReadFixedCodes();
  void ReadCodes();
  size_t CopyStored(absl::Span<uint8_t> out);
  size_t InflateCoded(absl::Span<uint8_t> out);
  size_t InflateSymbol(absl::Span<uint8_t> out);
  size_t CopyMatch(absl::Span<uint8_t> out);
  // The symbol that the next bits stand for; damage where there is none.
  uint32_t TakeSymbol(const HuffmanCode& code, const char* damage);
  void EndBlock() { phase_ = is_last_ ? Phase::kEnded : Phase::kBlock; }

  CompressedInput& input_;
  const InflateSymbols inflate_symbols_;
  const std::unique_ptr<InflateTable> table_;
  Phase phase_ = Phase::kEnded;
  bool is_last_ = false;
  uint64_t bits_ = 0;
  uint32_t num_bits_ = 0;
  uint32_t stored_left_ = 0;
  // What is left of a match that `out` had no room for.
  uint32_t match_left_ = 0;
  uint32_t match_distance_ = 0;
  uint64_t produced_ = 0;
  absl::Status error_;
  const char* damage_ = nullptr;
};

}  // namespace penstock
