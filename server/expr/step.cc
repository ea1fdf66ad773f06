// Steps that move and compute whole columns. (row_step.cc has the one that works row by row.)
#include "server/expr/step.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/expr/shuffle_pattern.h"
#include "server/kernels/gather.h"

namespace penstock::expr {
namespace {

class CopyStep : public Step {
 public:
  CopyStep(Place from, int to) : from_(std::move(from)), to_(to), bytes_(*NumBytes(from_.type)) {}

  RowStatus Run(Frame& frame) const override {
    // A result of no bytes has no address.
    if (bytes_ == 0) return {};
    uint8_t* out = frame.columns[to_].data;
    const Column& in = frame.columns[from_.column];
    if (in.rows == nullptr && in.row_bytes == bytes_) {
      std::memcpy(out, in.data, bytes_ * frame.rows);
    } else if (bytes_ == 8) {
      for (int r = 0; r < frame.rows; ++r) std::memcpy(out + r * 8, from_.row(frame, r), 8);
    } else {
      for (int r = 0; r < frame.rows; ++r) {
        std::memcpy(out + r * bytes_, from_.row(frame, r), bytes_);
      }
    }
    return {};
  }

  std::string DebugString() const override {
    return absl::StrCat("copy ", TypeToString(from_.type));
  }

 private:
  const Place from_;
  const int to_;
  const size_t bytes_;
};

class AliasStep : public Step {
 public:
  AliasStep(Place from, int to) : from_(std::move(from)), to_(to) {}

  RowStatus Run(Frame& frame) const override {
    frame.columns[to_] = frame.columns[from_.column];
    return {};
  }

  std::string DebugString() const override {
    return absl::StrCat("pass on ", TypeToString(from_.type));
  }

 private:
  const Place from_;
  const int to_;
};

class GatherStep : public Step {
 public:
  GatherStep(Place from, std::vector<int32_t> source, const TensorType& type, int to)
      : from_(std::move(from)),
        type_(type),
        to_(to),
        element_bytes_(DTypeSize(type.dtype)),
        elements_(source.size()) {
    // The longest stretch that divides the result into stretches of neighbours.
    size_t run = 1;
    while (run < elements_ && source[run] == source[run - 1] + 1) ++run;
    for (; run > 1; --run) {
      if (elements_ % run != 0) continue;
      bool whole = true;
      for (size_t i = 0; whole && i < elements_; ++i) {
        whole = i % run == 0 || source[i] == source[i - 1] + 1;
      }
      if (whole) break;
    }
    const auto in_elements = static_cast<size_t>(*NumElements(from_.type.shape));
    FindTranspose(source, in_elements);
    if (rows_ == 0 && run * element_bytes_ < 16) {
      pattern_ = ShufflePattern::Make(source, element_bytes_, in_elements);
      if (pattern_ != nullptr) shuffled_ = pattern_->elements();
    }
    if (rows_ > 0) return;
    if (run * element_bytes_ >= 16) {
      for (size_t i = 0; i < elements_; i += run) index_.push_back(source[i]);
      run_bytes_ = run * element_bytes_;
    } else {
      index_.assign(source.begin() + static_cast<ptrdiff_t>(shuffled_), source.end());
    }
  }

  RowStatus Run(Frame& frame) const override {
    uint8_t* out = frame.columns[to_].data;
    for (int r = 0; r < frame.rows; ++r, out += elements_ * element_bytes_) {
      const uint8_t* in = from_.row(frame, r);
      if (rows_ > 0) {
        kernels::Transpose(in, rows_, elements_ / rows_, element_bytes_, out);
      } else if (run_bytes_ > 0) {
        kernels::GatherRuns(in, index_.data(), index_.size(), run_bytes_, element_bytes_, out);
      } else {
        if (pattern_ != nullptr) pattern_->Run(in, out);
        kernels::Gather(in, index_.data(), index_.size(), element_bytes_,
                        out + shuffled_ * element_bytes_);
      }
    }
    return {};
  }

  std::string DebugString() const override {
    return absl::StrCat(
        rows_ > 0 ? "transpose " : "gather ", TypeToString(type_),
        run_bytes_ > 0 ? absl::StrCat(" in stretches of ", run_bytes_, " bytes") : "",
        pattern_ == nullptr
            ? ""
            : absl::StrCat(" by vectors, ", pattern_->windows(), " for one of its own"));
  }

 private:
  // Whether the whole is a matrix whose columns are asked for, one after the other.
  void FindTranspose(const std::vector<int32_t>& source, size_t in_elements) {
    if (elements_ < 2 || in_elements != elements_ || source[0] != 0 || source[1] < 2) return;
    const auto columns = static_cast<size_t>(source[1]);
    if (elements_ % columns != 0) return;
    const size_t rows = elements_ / columns;
    if (rows < 2) return;
    for (size_t i = 0; i < elements_; ++i) {
      if (static_cast<size_t>(source[i]) != i % rows * columns + i / rows) return;
    }
    rows_ = rows;
  }

  const Place from_;
  const TensorType type_;
  const int to_;
  const size_t element_bytes_;
  const size_t elements_;
  std::vector<int32_t> index_;
  size_t run_bytes_ = 0;
  size_t rows_ = 0;  // of the matrix that is transposed; 0: there is none
  std::unique_ptr<ShufflePattern> pattern_;
  size_t shuffled_ = 0;  // elements that the pattern writes
};

class BitStep : public Step {
 public:
  BitStep(Place from, std::unique_ptr<BitPattern> pattern, const TensorType& type, Lanes lanes,
          int to)
      : from_(std::move(from)), pattern_(std::move(pattern)), type_(type), lanes_(lanes), to_(to) {}

  RowStatus Run(Frame& frame) const override {
    const kernels::BitSelectTable& table = pattern_->table();
    uint8_t* out = frame.columns[to_].data;
    Column in = frame.columns[from_.column];
    if (in.rows == nullptr) {
      in.data += from_.offset;
    } else if (from_.offset != 0) {
      auto* rows = frame.arena->AllocateArray<RowBytes>(frame.rows);
      for (int r = 0; r < frame.rows; ++r) {
        rows[r] = {in.rows[r].data + from_.offset, in.rows[r].size - from_.offset};
      }
      in.rows = rows;
    }
    if (lanes_ == Lanes::kScalar) {
      // The twin has no periods: one definition for each element.
      const size_t bytes = table.element_bytes;
      const size_t period = table.period_chunks * table.chunk;
      for (int r = 0; r < frame.rows; ++r) {
        const Column row{const_cast<uint8_t*>(in.row(r)), 0, nullptr};
        for (size_t i = 0; i < table.elements; ++i, out += bytes) {
          const size_t at = i % period * bytes;
          kernels::BitSelectScalar(pattern_->index().data() + i, table.one + at,
                                   table.zero == nullptr ? nullptr : table.zero + at, 1, bytes, row,
                                   1, out);
        }
      }
    } else {
      pattern_->Run(in, frame.rows, out);
    }
    return {};
  }

  std::string DebugString() const override {
    const kernels::BitSelectTable& table = pattern_->table();
    return absl::StrCat("bit_select ", TypeToString(type_), ": period of ", table.period_chunks,
                        " chunks of ", table.chunk, ", ", table.windows, " windows",
                        table.zero == nullptr ? "" : ", two values");
  }

 private:
  const Place from_;
  const std::unique_ptr<BitPattern> pattern_;
  const TensorType type_;
  const Lanes lanes_;
  const int to_;
};

class RegionStep : public Step {
 public:
  RegionStep(std::unique_ptr<Region> region, std::vector<Place> inputs, const TensorType& type,
             int to)
      : region_(std::move(region)), inputs_(std::move(inputs)), type_(type), to_(to) {}

  RowStatus Run(Frame& frame) const override {
    if (!NumElements(type_.shape)) return RunRagged(frame);
    const auto elements = static_cast<size_t>(*NumElements(type_.shape));
    const size_t out_bytes = elements * DTypeSize(type_.dtype);
    uint8_t* out = frame.columns[to_].data;
    absl::InlinedVector<const uint8_t*, 8> data(inputs_.size());
    // Scalars of a row, as the vectors that they are read as.
    absl::InlinedVector<std::array<uint8_t, Region::kSplatBytes>, 2> splats(
        region_->any_repeats() ? inputs_.size() : 0);
    bool contiguous = splats.empty();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (region_->repeats(i)) {
        data[i] = splats[i].data();
        continue;
      }
      const Column& column = frame.columns[inputs_[i].column];
      const size_t bytes = elements * DTypeSize(inputs_[i].type.dtype);
      data[i] = column.data + inputs_[i].offset;
      if (column.rows == nullptr && column.row_bytes == bytes) continue;
      if (elements >= kRowElements) {
        contiguous = false;
        continue;
      }
      uint8_t* packed = frame.arena->Allocate(bytes * frame.rows);
      for (int r = 0; r < frame.rows; ++r) {
        std::memcpy(packed + r * bytes, inputs_[i].row(frame, r), bytes);
      }
      data[i] = packed;
    }
    if (contiguous) {
      region_->Run(0, elements * frame.rows, data.data(), out);
      return {};
    }
    for (int r = 0; r < frame.rows; ++r) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const uint8_t* const row = inputs_[i].row(frame, r);
        if (!region_->repeats(i)) {
          data[i] = row;
          continue;
        }
        const size_t size = DTypeSize(inputs_[i].type.dtype);
        for (size_t at = 0; at < splats[i].size(); at += size) {
          std::memcpy(splats[i].data() + at, row, size);
        }
      }
      region_->Run(0, elements, data.data(), out + r * out_bytes);
    }
    return {};
  }

  std::string DebugString() const override {
    return absl::StrCat("elementwise ", TypeToString(type_), ": ", region_->DebugString());
  }

 private:
  // Shorter rows that do not lie side by side are packed first, longer ones computed one by one.
  static constexpr size_t kRowElements = 256;

  // All inputs have rows of the same sizes; the result has them too.
  RowStatus RunRagged(Frame& frame) const {
    const Column& in = frame.columns[inputs_[0].column];
    auto* rows = frame.arena->AllocateArray<RowBytes>(frame.rows);
    absl::InlinedVector<const uint8_t*, 8> data(inputs_.size());
    for (int r = 0; r < frame.rows; ++r) {
      const size_t elements = in.row_size(r) / DTypeSize(inputs_[0].type.dtype);
      const size_t bytes = elements * DTypeSize(type_.dtype);
      uint8_t* out = frame.arena->Allocate(bytes);
      for (size_t i = 0; i < inputs_.size(); ++i) data[i] = frame.columns[inputs_[i].column].row(r);
      region_->Run(0, elements, data.data(), out);
      rows[r] = {out, bytes};
    }
    frame.columns[to_] = {nullptr, 0, rows, in.dims};
    return {};
  }

  const std::unique_ptr<Region> region_;
  const std::vector<Place> inputs_;
  const TensorType type_;
  const int to_;
};

}  // namespace

std::unique_ptr<Step> MakeCopyStep(Place from, int to) {
  return std::make_unique<CopyStep>(std::move(from), to);
}

std::unique_ptr<Step> MakeAliasStep(Place from, int to) {
  return std::make_unique<AliasStep>(std::move(from), to);
}

std::unique_ptr<Step> MakeGatherStep(Place from, std::vector<int32_t> source,
                                     const TensorType& type, int to) {
  return std::make_unique<GatherStep>(std::move(from), std::move(source), type, to);
}

std::unique_ptr<Step> MakeBitStep(Place from, std::unique_ptr<BitPattern> pattern,
                                  const TensorType& type, Lanes lanes, int to) {
  return std::make_unique<BitStep>(std::move(from), std::move(pattern), type, lanes, to);
}

std::unique_ptr<Step> MakeRegionStep(std::unique_ptr<Region> region, std::vector<Place> inputs,
                                     const TensorType& type, int to) {
  return std::make_unique<RegionStep>(std::move(region), std::move(inputs), type, to);
}

}  // namespace penstock::expr
