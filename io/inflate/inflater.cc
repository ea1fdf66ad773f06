#include "io/inflate/inflater.h"

#include <algorithm>
#include <cstring>

#include "io/inflate/deflate_format.h"

namespace penstock {
namespace {

static_assert(Inflater::kHistoryBytes == deflate::kDistanceMax);

constexpr char kInvalidBlock[] = "invalid block";
constexpr char kInvalidCodes[] = "invalid codes";
constexpr char kInvalidSymbol[] = "invalid symbol";
constexpr char kTooFar[] = "reference to before the beginning";

// Of codes that stand in a block; the fixed ones have two more of each that mean nothing.
constexpr size_t kLiteralsMax = deflate::kFirstLength + deflate::kNumLengths;
constexpr size_t kDistancesMax = deflate::kNumDistances;

}  // namespace

void Inflater::Start() {
  phase_ = Phase::kBlock;
  is_last_ = false;
  bits_ = 0;
  num_bits_ = 0;
  match_left_ = 0;
  produced_ = 0;
}

size_t Inflater::Inflate(absl::Span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size() && !ended() && !fails()) {
    const absl::Span<uint8_t> rest = out.subspan(done);
    size_t count = 0;
    switch (phase_) {
      case Phase::kBlock:
        BeginBlock();
        break;
      case Phase::kStored:
        count = CopyStored(rest);
        break;
      case Phase::kCoded:
        count = match_left_ > 0 ? CopyMatch(rest) : InflateCoded(rest);
        break;
      case Phase::kEnded:
        break;
    }
    done += count;
    produced_ += count;
    // The last bytes would come slowly: they come fast in front of the next ones.
    if (phase_ == Phase::kCoded && count > 0 && out.size() - done <= kInflateOutputMargin) break;
  }
  if (ended()) GiveBack();
  return done;
}

bool Inflater::Fill(uint32_t count) {
  if (num_bits_ >= count) return true;
  if (input_.size() >= sizeof(uint64_t)) {
    uint64_t next;
    std::memcpy(&next, input_.data(), sizeof(next));
    const uint32_t bytes = (63 - num_bits_) / 8;
    bits_ |= (next & ((uint64_t{1} << 8 * bytes) - 1)) << num_bits_;
    num_bits_ += 8 * bytes;
    input_.Consume(bytes);
    return true;
  }
  while (num_bits_ < count) {
    if (input_.size() == 0) {
      error_ = input_.Ensure(1);
      if (!error_.ok() || input_.size() == 0) return false;
    }
    bits_ |= uint64_t{*input_.data()} << num_bits_;
    num_bits_ += 8;
    input_.Consume(1);
  }
  return true;
}

uint32_t Inflater::Take(uint32_t count) {
  if (!Fill(count)) {
    damage_ = kCut;
    return 0;
  }
  const uint64_t taken = bits_ & ((uint64_t{1} << count) - 1);
  bits_ >>= count;
  num_bits_ -= count;
  return static_cast<uint32_t>(taken);
}

void Inflater::GiveBack() {
  input_.GiveBack(unused_bytes());
  num_bits_ %= 8;
  bits_ &= (uint64_t{1} << num_bits_) - 1;
}

void Inflater::BeginBlock() {
  is_last_ = Take(1) != 0;
  const uint32_t type = Take(2);
  if (fails()) return;
  switch (type) {
    case 0:
      return BeginStored();
    case 1:
      return ReadFixedCodes();
    case 2:
      return ReadCodes();
    default:
      damage_ = kInvalidBlock;
  }
}

void Inflater::BeginStored() {
  Take(num_bits_ % 8);
  const uint32_t length = Take(16);
  const uint32_t complement = Take(16);
  if (fails()) return;
  if (length != (complement ^ 0xffff)) {
    damage_ = kInvalidBlock;
    return;
  }
  GiveBack();
  stored_left_ = length;
  phase_ = Phase::kStored;
  if (length == 0) EndBlock();
}

size_t Inflater::CopyStored(absl::Span<uint8_t> out) {
  error_ = input_.Ensure(1);
  if (!error_.ok()) return 0;
  if (input_.size() == 0) {
    damage_ = kCut;
    return 0;
  }
  const size_t count = std::min({out.size(), input_.size(), size_t{stored_left_}});
  std::memcpy(out.data(), input_.data(), count);
  input_.Consume(count);
  stored_left_ -= static_cast<uint32_t>(count);
  if (stored_left_ == 0) EndBlock();
  return count;
}

// RFC 1951, 3.2.6.
void Inflater::ReadFixedCodes() {
  uint8_t literals[HuffmanCode::kSymbolsMax];
  std::fill(literals, literals + 144, 8);
  std::fill(literals + 144, literals + 256, 9);
  std::fill(literals + 256, literals + 280, 7);
  std::fill(literals + 280, literals + 288, 8);
  uint8_t distances[32];
  std::fill(distances, distances + 32, 5);
  table_->Build(literals, distances);
  phase_ = Phase::kCoded;
}

// RFC 1951, 3.2.7.
void Inflater::ReadCodes() {
  static constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15};
  const size_t num_literals = Take(5) + 257;
  const size_t num_distances = Take(5) + 1;
  const size_t num_lengths = Take(4) + 4;
  if (fails()) return;
  if (num_literals > kLiteralsMax || num_distances > kDistancesMax) {
    damage_ = kInvalidCodes;
    return;
  }
  uint8_t length_bits[std::size(kOrder)] = {};
  for (size_t i = 0; i < num_lengths; ++i) length_bits[kOrder[i]] = static_cast<uint8_t>(Take(3));
  HuffmanCode lengths;
  if (!fails() && !lengths.Build(length_bits)) damage_ = kInvalidCodes;

  uint8_t bits[kLiteralsMax + kDistancesMax];
  const size_t num_bits = num_literals + num_distances;
  for (size_t done = 0; done < num_bits;) {
    const uint32_t symbol = fails() ? 0 : TakeSymbol(lengths, kInvalidCodes);
    uint8_t length = 0;
    size_t times = 1;
    if (symbol < 16) {
      length = static_cast<uint8_t>(symbol);
    } else if (symbol == 16) {
      times = 3 + Take(2);
      if (done == 0) damage_ = kInvalidCodes;
      if (done > 0) length = bits[done - 1];
    } else {
      times = symbol == 17 ? 3 + Take(3) : 11 + Take(7);
    }
    if (times > num_bits - done) damage_ = kInvalidCodes;
    if (fails()) return;
    std::fill_n(bits + done, times, length);
    done += times;
  }
  if (bits[deflate::kEndOfBlock] == 0 ||
      !table_->Build(absl::MakeConstSpan(bits, num_literals),
                     absl::MakeConstSpan(bits + num_literals, num_distances))) {
    damage_ = kInvalidCodes;
    return;
  }
  phase_ = Phase::kCoded;
}

size_t Inflater::InflateCoded(absl::Span<uint8_t> out) {
  if (input_.size() <= kInflateInputMargin && kInflateInputMargin < input_.piece_bytes()) {
    error_ = input_.Ensure(kInflateInputMargin + 1);
    if (!error_.ok()) return 0;
  }
  InflateCursor cursor{input_.data(), bits_, num_bits_, out.data()};
  inflate_symbols_(*table_, input_.data() + input_.size(),
                   out.data() - std::min<uint64_t>(produced_, kHistoryBytes),
                   out.data() + out.size(), &cursor);
  bits_ = cursor.bits;
  num_bits_ = cursor.num_bits;
  // Of bytes that were at hand before, some may have gone back.
  if (cursor.in < input_.data()) {
    input_.GiveBack(input_.data() - cursor.in);
  } else {
    input_.Consume(cursor.in - input_.data());
  }
  const size_t done = cursor.out - out.data();
  return done > 0 ? done : InflateSymbol(out);
}

// One symbol, whatever it is and wherever the input ends.
size_t Inflater::InflateSymbol(absl::Span<uint8_t> out) {
  const uint32_t symbol = TakeSymbol(table_->literals(), kInvalidSymbol);
  if (fails()) return 0;
  if (symbol < deflate::kEndOfBlock) {
    out[0] = static_cast<uint8_t>(symbol);
    return 1;
  }
  if (symbol == deflate::kEndOfBlock) {
    EndBlock();
    return 0;
  }
  if (symbol >= deflate::kFirstLength + deflate::kNumLengths) {
    damage_ = kInvalidSymbol;
    return 0;
  }
  const deflate::Range& length = deflate::kLengths[symbol - deflate::kFirstLength];
  const uint32_t match_length = length.base + Take(length.extra_bits);
  const uint32_t place = fails() ? 0 : TakeSymbol(table_->distances(), kInvalidSymbol);
  if (place >= deflate::kNumDistances) damage_ = kInvalidSymbol;
  if (fails()) return 0;
  const deflate::Range& distance = deflate::kDistances[place];
  match_distance_ = distance.base + Take(distance.extra_bits);
  if (fails()) return 0;
  if (match_distance_ > produced_) {
    damage_ = kTooFar;
    return 0;
  }
  match_left_ = match_length;
  return CopyMatch(out);
}

size_t Inflater::CopyMatch(absl::Span<uint8_t> out) {
  const size_t count = std::min<size_t>(match_left_, out.size());
  for (size_t i = 0; i < count; ++i) out[i] = *(out.data() + i - match_distance_);
  match_left_ -= static_cast<uint32_t>(count);
  return count;
}

uint32_t Inflater::TakeSymbol(const HuffmanCode& code, const char* damage) {
  const bool is_whole = Fill(HuffmanCode::kBitsMax);
  if (!error_.ok()) return 0;
  const HuffmanCode::Found found = code.Find(bits_);
  if (found.bits == 0 || found.bits > num_bits_) {
    damage_ = is_whole ? damage : kCut;
    return 0;
  }
  bits_ >>= found.bits;
  num_bits_ -= found.bits;
  return found.symbol;
}

}  // namespace penstock
