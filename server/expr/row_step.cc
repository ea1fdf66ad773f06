// The step that calls a row kernel for each row, and what stands behind its RowOutput.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/block_kernel.h"
#include "server/expr/one_piece_output.h"
#include "server/expr/part_kernel.h"
#include "server/expr/step.h"
#include "server/expr/tile_kernel.h"

namespace penstock::expr {
namespace {

// Writes into memory of the result's full size: a slot, or a temporary.
class DirectOutput : public RowOutput {
 public:
  // `overrun`: bytes behind the row that may be overwritten.
  DirectOutput(uint8_t* out, size_t bytes, size_t overrun, Arena& arena)
      : out_(out), bytes_(bytes), overrun_(overrun), arena_(arena) {}

  void SetShape(const Shape&) override {}

  uint8_t* Reserve(size_t bytes) override {
    CheckStop();
    reserved_ = bytes;
    bounced_ = nullptr;
    if (done_ + bytes + Arena::kPadding > bytes_ + overrun_) {
      bounced_ = arena_.Allocate(bytes);
      return bounced_;
    }
    return out_ + done_;
  }

  void Commit() override {
    if (reserved_ > 0 && done_ + reserved_ <= bytes_ && bounced_ != nullptr)
      std::memcpy(out_ + done_, bounced_, reserved_);
    done_ += reserved_;
    reserved_ = 0;
  }

  bool complete() const { return done_ == bytes_; }

 private:
  uint8_t* const out_;
  const size_t bytes_;
  const size_t overrun_;
  Arena& arena_;
  uint8_t* bounced_ = nullptr;
  size_t done_ = 0;
  size_t reserved_ = 0;
};

// Runs a region over each tile while it lies in L1.
class EpilogueOutput : public RowOutput {
 public:
  EpilogueOutput(const Region& region, size_t elements, size_t in_element_bytes,
                 size_t out_element_bytes, uint8_t* out, bool past_caches, Arena& arena)
      : region_(region),
        elements_(elements),
        in_element_bytes_(in_element_bytes),
        out_element_bytes_(out_element_bytes),
        out_(out),
        past_caches_(past_caches),
        arena_(arena) {}

  void SetShape(const Shape&) override {}

  uint8_t* Reserve(size_t bytes) override {
    CheckStop();
    if (bytes > tile_bytes_) {
      tile_ = arena_.Allocate(bytes);
      tile_bytes_ = bytes;
    }
    reserved_ = bytes;
    return tile_;
  }

  void Commit() override {
    const size_t count = reserved_ / in_element_bytes_;
    if (done_ + count <= elements_) {
      const uint8_t* in = tile_;
      region_.Run(done_, count, &in, out_ + done_ * out_element_bytes_, past_caches_);
    }
    done_ += count;
    reserved_ = 0;
  }

  bool complete() const { return done_ == elements_; }

 private:
  const Region& region_;
  const size_t elements_;
  const size_t in_element_bytes_;
  const size_t out_element_bytes_;
  uint8_t* const out_;
  const bool past_caches_;
  Arena& arena_;
  uint8_t* tile_ = nullptr;
  size_t tile_bytes_ = 0;
  size_t done_ = 0;
  size_t reserved_ = 0;
};

// Takes the size from the kernel, and memory from the arena.
class RaggedOutput : public RowOutput {
 public:
  // `dims`: where the sizes go.
  RaggedOutput(const TensorType& type, int64_t* dims, Arena& arena)
      : type_(type), dims_(dims), arena_(arena) {}

  void SetShape(const Shape& shape) override {
    const auto elements = NumElements(shape);
    if (!elements || *elements > kMaxRowElements || !FitsShape(type_.shape, shape)) return;
    std::copy(shape.begin(), shape.end(), dims_);
    bytes_ = static_cast<size_t>(*elements) * DTypeSize(type_.dtype);
    data_ = arena_.Allocate(bytes_);
    sized_ = true;
  }

  uint8_t* Reserve(size_t bytes) override {
    CheckStop();
    reserved_ = bytes;
    if (!sized_ || done_ + bytes > bytes_) return arena_.Allocate(bytes);
    return data_ + done_;
  }

  void Commit() override {
    done_ += reserved_;
    reserved_ = 0;
  }

  bool complete() const { return sized_ && done_ == bytes_; }
  RowBytes row() const { return {data_, bytes_}; }

 private:
  const TensorType& type_;
  int64_t* const dims_;
  Arena& arena_;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  bool sized_ = false;
  size_t done_ = 0;
  size_t reserved_ = 0;
};

// Takes a string of whatever length, or the strings of a tensor in the form of a column's row.
class StringOutput : public OnePieceOutput {
 public:
  // `dims`: where the sizes of the tensor's axes go.
  StringOutput(const TensorType& type, int64_t* dims, Arena& arena)
      : OnePieceOutput(arena), type_(type), dims_(dims) {
    std::copy(type.shape.begin(), type.shape.end(), dims);
  }

  void SetShape(const Shape& shape) override {
    if (FitsShape(type_.shape, shape)) std::copy(shape.begin(), shape.end(), dims_);
  }

  bool complete() const {
    return is_committed() && std::none_of(dims_, dims_ + type_.shape.size(),
                                          [](int64_t size) { return size == kUnknownSize; });
  }

 private:
  const TensorType& type_;
  int64_t* const dims_;
};

class RowStep : public Step {
 public:
  RowStep(std::shared_ptr<const RowKernel> kernel, const TensorType& kernel_type,
          std::vector<Place> arguments, std::unique_ptr<Region> epilogue, const TensorType& type,
          bool to_output, int to)
      : kernel_(std::move(kernel)),
        block_kernel_(dynamic_cast<const BlockKernel*>(kernel_.get())),
        kernel_type_(kernel_type),
        arguments_(std::move(arguments)),
        epilogue_(std::move(epilogue)),
        type_(type),
        to_output_(to_output),
        to_(to),
        elements_(static_cast<size_t>(NumElements(type.shape).value_or(0))),
        out_bytes_(elements_ * DTypeSize(type.dtype)),
        string_(type.dtype == DType::kString),
        ragged_(string_ || !NumElements(type.shape).has_value()) {
    for (const Place& place : arguments_) {
      const std::optional<int64_t> bytes = NumBytes(place.type);
      argument_bytes_.push_back(bytes ? static_cast<size_t>(*bytes) : kElsewhere);
    }
  }

  RowStatus Run(Frame& frame) const override {
    int row = 0;
    try {
      return RunRows(frame, row);
    } catch (const MemoryLimitError& error) {
      return {MemoryStatus(error), row};
    }
  }

  std::string DebugString() const override {
    return absl::StrCat("rows ", TypeToString(kernel_type_), FormOf(*kernel_),
                        epilogue_ == nullptr
                            ? ""
                            : absl::StrCat(", each tile then to ", TypeToString(type_), ": ",
                                           epilogue_->DebugString()));
  }

 private:
  static constexpr size_t kElsewhere = SIZE_MAX;

  // `r`: the row that is being computed.
  RowStatus RunRows(Frame& frame, int& r) const {
    const size_t axes = type_.shape.size();
    RowBytes* rows = nullptr;
    int64_t* dims = nullptr;
    if (ragged_) {
      rows = frame.arena->AllocateArray<RowBytes>(frame.rows);
      dims = frame.arena->AllocateArray<int64_t>(axes * frame.rows);
      frame.columns[to_] = {nullptr, 0, rows, dims};
    }
    if (RunTogether(frame)) return {};
    absl::InlinedVector<RowValue, 4> values(arguments_.size());
    // What is the same for all rows is set once: a row of a cheap kernel takes less time than
    // copying a shape.
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (argument_bytes_[i] == kElsewhere) continue;
      values[i].bytes = argument_bytes_[i];
      values[i].shape = arguments_[i].type.shape;
    }
    for (; r < frame.rows; ++r) {
      for (size_t i = 0; i < arguments_.size(); ++i) {
        values[i].data = arguments_[i].row(frame, r);
        if (argument_bytes_[i] != kElsewhere) continue;
        SetSizes(frame, arguments_[i], r, values[i]);
        if (values[i].bytes == 0 && !FitsRow(values[i].shape)) {
          return {absl::DataLossError(
                      absl::StrCat("tensor larger than limit: ", ShapeToString(values[i].shape),
                                   " > ", kMaxRowElements, " elements")),
                  r};
        }
      }
      absl::Status status;
      bool complete;
      if (string_) {
        StringOutput out(type_, dims + r * axes, *frame.arena);
        status = kernel_->Run(values, *frame.arena, out);
        complete = out.complete();
        rows[r] = out.row();
      } else if (ragged_) {
        RaggedOutput out(type_, dims + r * axes, *frame.arena);
        status = kernel_->Run(values, *frame.arena, out);
        complete = out.complete();
        rows[r] = out.row();
      } else {
        const size_t bytes = out_bytes_;
        uint8_t* data = frame.columns[to_].data + r * bytes;
        // What the row needed is free, and warm, for the next one: nothing but the result is left
        // of it.
        const Arena::Mark mark = frame.arena->GetMark();
        if (epilogue_ != nullptr) {
          EpilogueOutput out(*epilogue_, elements_, DTypeSize(kernel_type_.dtype),
                             DTypeSize(type_.dtype), data, to_output_ && frame.past_caches,
                             *frame.arena);
          status = kernel_->Run(values, *frame.arena, out);
          complete = out.complete();
        } else {
          // A temporary has padding; in a slot the bytes behind the last row belong to others.
          const size_t overrun = !to_output_                             ? Arena::kPadding
                                 : r + 1 < frame.rows || frame.more_rows ? bytes
                                                                         : 0;
          DirectOutput out(data, bytes, overrun, *frame.arena);
          status = kernel_->Run(values, *frame.arena, out);
          complete = out.complete();
        }
        frame.arena->Rewind(mark);
      }
      if (!status.ok()) return {status, r};
      if (!complete) {
        return {absl::InternalError(absl::StrCat("a function did not fill its result: ",
                                                 TypeToString(kernel_type_))),
                r};
      }
    }
    return {};
  }

  // All rows by one call of the kernel, where it has one for them.
  bool RunTogether(const Frame& frame) const {
    if (block_kernel_ == nullptr || ragged_ || epilogue_ != nullptr ||
        argument_bytes_[0] == kElsewhere) {
      return false;
    }
    const Place& place = arguments_[0];
    const Column& column = frame.columns[place.column];
    if (column.rows != nullptr) return false;
    block_kernel_->RunRows(column.data + place.offset, column.row_bytes, argument_bytes_[0],
                           frame.rows, frame.columns[to_].data);
    return true;
  }

  static std::string FormOf(const RowKernel& kernel) {
    int filters = 0;
    const RowKernel* innermost = &kernel;
    while (const RowKernel* maker = TileMaker(*innermost)) {
      innermost = maker;
      ++filters;
    }
    return absl::StrCat(IsPartKernel(*innermost) ? " of a part of an image" : "",
                        filters == 0 ? "" : absl::StrCat(", through ", filters, " filters"));
  }

  static void SetSizes(const Frame& frame, const Place& place, int r, RowValue& value) {
    value.bytes = frame.columns[place.column].row_size(r);
    value.shape = RowDims(place.type, frame.columns[place.column], r);
  }

  const std::shared_ptr<const RowKernel> kernel_;
  const BlockKernel* const block_kernel_;  // the same, or null
  const TensorType kernel_type_;
  const std::vector<Place> arguments_;
  const std::unique_ptr<Region> epilogue_;
  const TensorType type_;
  const bool to_output_;
  const int to_;
  const size_t elements_;
  const size_t out_bytes_;
  const bool string_;
  const bool ragged_;                   // of a size that only the row tells
  std::vector<size_t> argument_bytes_;  // kElsewhere: only the row tells
};

}  // namespace

std::unique_ptr<Step> MakeRowStep(std::shared_ptr<const RowKernel> kernel,
                                  const TensorType& kernel_type, std::vector<Place> arguments,
                                  std::unique_ptr<Region> epilogue, const TensorType& type,
                                  bool to_output, int to) {
  return std::make_unique<RowStep>(std::move(kernel), kernel_type, std::move(arguments),
                                   std::move(epilogue), type, to_output, to);
}

}  // namespace penstock::expr
