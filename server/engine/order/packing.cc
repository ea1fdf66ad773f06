#include "server/engine/order/packing.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

namespace penstock {
namespace {

class Concatenating final : public Packer {
 public:
  explicit Concatenating(const PackRules& rules) : Packer(rules) {}

  void Finish() override {
    if (used_ > 0 && rules_.drop_remainder) {
      DropOpenPieces();
    } else if (used_ > 0) {
      EndSequence();
    }
    ClearOpen();
  }

 protected:
  void AddDocument(uint32_t document, uint32_t tokens) override {
    const uint32_t length = rules_.sequence_length;
    if (rules_.truncate) tokens = std::min(tokens, length);
    if (!rules_.split_documents && used_ > 0 && tokens > length - used_) End();
    for (uint32_t start = 0; start < tokens;) {
      const uint32_t taken = std::min(tokens - start, length - used_);
      AddPiece({document, start, taken, start + taken == tokens});
      start += taken;
      used_ += taken;
      if (used_ == length || ++open_pieces_ == rules_.max_documents) End();
    }
  }
  void ClearOpen() override { used_ = open_pieces_ = 0; }

 private:
  void End() {
    EndSequence();
    ClearOpen();
  }

  uint32_t used_ = 0;         // tokens of the open sequence
  uint32_t open_pieces_ = 0;  // pieces of it
};

// Finds a sequence for one piece after another, each no longer than those before.
class Fit {
 public:
  virtual ~Fit() = default;
  // The number of the sequence that the piece goes into.
  virtual uint32_t Place(uint32_t length) = 0;
};

class FirstFit final : public Fit {
 public:
  // At most `pieces` sequences.
  FirstFit(const PackRules& rules, uint32_t pieces)
      : max_documents_(rules.max_documents),
        leaves_(std::bit_ceil(std::max<uint32_t>(pieces, 1))),
        room_(2 * size_t{leaves_}, rules.sequence_length),
        documents_(pieces, 0) {}

  uint32_t Place(uint32_t length) override {
    size_t at = 1;
    while (at < leaves_) at = room_[2 * at] >= length ? 2 * at : 2 * at + 1;
    const auto sequence = static_cast<uint32_t>(at - leaves_);
    room_[at] = ++documents_[sequence] == max_documents_ ? 0 : room_[at] - length;
    for (at /= 2; at > 0; at /= 2) room_[at] = std::max(room_[2 * at], room_[2 * at + 1]);
    return sequence;
  }

 private:
  const uint32_t max_documents_;
  const uint32_t leaves_;            // a power of two
  std::vector<uint32_t> room_;       // a tree: the largest one below; of sequences from leaves_ on
  std::vector<uint32_t> documents_;  // in each sequence
};

class BestFit final : public Fit {
 public:
  explicit BestFit(const PackRules& rules) : rules_(rules) {}

  uint32_t Place(uint32_t length) override {
    Open open;
    const auto found = open_.lower_bound({length, 0, 0});
    if (found != open_.end()) {
      open = *found;
      open_.erase(found);
    } else {
      open = {rules_.sequence_length, 0, static_cast<uint32_t>(documents_.size())};
      documents_.push_back(0);
    }
    auto& [room, waits_since, sequence] = open;
    room -= length;
    waits_since = ++placed_;
    const bool is_full = room == 0 || ++documents_[sequence] == rules_.max_documents;
    const uint32_t result = sequence;
    if (!is_full) open_.insert(open);
    return result;
  }

 private:
  using Open = std::tuple<uint32_t, uint64_t, uint32_t>;  // room, since which piece, which sequence

  const PackRules& rules_;
  std::set<Open> open_;
  std::vector<uint32_t> documents_;  // in each sequence
  uint64_t placed_ = 0;
};

class Decreasing final : public Packer {
 public:
  explicit Decreasing(const PackRules& rules) : Packer(rules) {}

  void Finish() override {
    // One tree and one set entry a piece, about.
    constexpr uint64_t kBytesOfPiece = 96;
    MemoryCharge work;
    work.Add(waiting_.size() * kBytesOfPiece);
    std::stable_sort(
        waiting_.begin(), waiting_.end(),
        [](const PackedPiece& a, const PackedPiece& b) { return a.length > b.length; });
    const auto count = static_cast<uint32_t>(waiting_.size());
    std::unique_ptr<Fit> fit;
    if (rules_.method == PackMethod::kBestFit) {
      fit = std::make_unique<BestFit>(rules_);
    } else {
      fit = std::make_unique<FirstFit>(rules_, count);
    }
    std::vector<uint32_t> sequences(count);
    uint32_t num_sequences = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sequences[i] = fit->Place(waiting_[i].length);
      num_sequences = std::max(num_sequences, sequences[i] + 1);
    }
    // By sequence, and in one by the order in which they were placed.
    std::vector<uint32_t> next(num_sequences + 1, 0);
    for (const uint32_t sequence : sequences) ++next[sequence + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[next[sequences[i]]++] = i;
    MarkLast(order);
    for (uint32_t i = 0; i < count; ++i) {
      AddPiece(waiting_[order[i]]);
      if (i + 1 == count || sequences[order[i + 1]] != sequences[order[i]]) EndSequence();
    }
    ClearOpen();
  }

 protected:
  void AddDocument(uint32_t document, uint32_t tokens) override {
    const uint32_t length = rules_.sequence_length;
    if (rules_.truncate) tokens = std::min(tokens, length);
    for (uint32_t start = 0; start < tokens;) {
      const uint32_t taken = std::min(tokens - start, length);
      waiting_charge_.MakeRoom(waiting_, 1);
      waiting_.push_back({document, start, taken, false});
      start += taken;
    }
  }
  void ClearOpen() override { waiting_.clear(); }

 private:
  void MarkLast(const std::vector<uint32_t>& order) {
    std::vector<bool> seen(num_documents(), false);
    for (auto i = order.rbegin(); i != order.rend(); ++i) {
      PackedPiece& piece = waiting_[*i];
      piece.is_last = !seen[piece.document];
      seen[piece.document] = true;
    }
  }

  MemoryCharge waiting_charge_;
  std::vector<PackedPiece> waiting_;
};

}  // namespace

std::unique_ptr<Packer> Packer::Make(const PackRules& rules) {
  if (rules.method == PackMethod::kConcat) return std::make_unique<Concatenating>(rules);
  return std::make_unique<Decreasing>(rules);
}

void Packer::Clear() {
  num_documents_ = 0;
  pieces_.clear();
  ends_.clear();
  ClearOpen();
}

}  // namespace penstock
