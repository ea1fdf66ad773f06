// Batches of a Penstock pipeline as C++ objects, over the C interface of penstock.h.
//
//   penstock::Loader loader("chess");
//   for (const penstock::Batch& batch : loader) {
//     std::span<const float> boards = batch["board"].values<float>();
//     train(boards, batch.rows());
//   }
//
// Threads:  as the C interface: a Loader may be used from any thread, and so may a Batch, by one at
//           a time.
// Owns:     a Loader owns its place at the ring, a Batch its memory; a Batch may outlive its
//           Loader.
// Errors:   penstock::Error, with the code of penstock.h and a sentence.
// Needs:    C++20 and libpenstock.so.
#pragma once

#if __cplusplus <= 201703L
#error \
    "penstock.hpp needs C++20: -std=c++20, or in CMake target_compile_features(TARGET PRIVATE cxx_std_20)"
#endif

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "penstock.h"

namespace penstock {

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// The strings of a tensor, one after another in C order. A view, as its tensor; an offset that
// points outside of the bytes is an Error, not a crash.
class Strings {
 public:
  explicit Strings(const penstock_tensor* tensor) : tensor_(tensor) {}

  size_t size() const { return tensor_->num_strings; }
  bool empty() const { return size() == 0; }
  std::string_view operator[](size_t index) const {
    if (index >= size()) throw Error(PENSTOCK_OUT_OF_RANGE, Named("has no string ", index));
    const uint64_t first = static_cast<uint64_t>(tensor_->offsets[index]);
    const uint64_t last = static_cast<uint64_t>(tensor_->offsets[index + 1]);
    if (first > last || last > tensor_->bytes) {
      throw Error(PENSTOCK_INTERNAL, Named("is malformed at string ", index));
    }
    return {static_cast<const char*>(tensor_->data) + first, last - first};
  }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const Strings* strings, size_t index) : strings_(strings), index_(index) {}
    std::string_view operator*() const { return (*strings_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const Strings* strings_ = nullptr;
    size_t index_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::string Named(const char* what, size_t index) const {
    return "tensor \"" + std::string(tensor_->name) + "\" " + what + std::to_string(index);
  }

  const penstock_tensor* tensor_;
};

// One tensor of a batch, in C order. A view: it is valid as long as its batch.
class Tensor {
 public:
  explicit Tensor(const penstock_tensor* tensor) : tensor_(tensor) {}

  std::string_view name() const { return tensor_->name; }
  int dtype() const { return static_cast<int>(tensor_->dtype); }
  // PENSTOCK_KIND_…
  int kind() const { return static_cast<int>(tensor_->kind); }
  bool is_string() const { return tensor_->dtype == PENSTOCK_STRING; }
  // Whether the shape differs from batch to batch, beyond the rows of a short one.
  bool dynamic() const { return tensor_->dynamic != 0; }
  // -1 for ragged axes.
  std::span<const int64_t> shape() const { return {tensor_->shape, tensor_->ndim}; }
  // The elements' bytes; of strings, all of them without a gap.
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(tensor_->data), tensor_->bytes};
  }

  // The strings of a tensor of strings, ragged or not; throws for another one.
  Strings strings() const {
    if (!is_string()) throw Error(PENSTOCK_INVALID_ARGUMENT, Named("holds no strings"));
    return Strings(tensor_);
  }
  // Where each string begins in bytes(), and where the last one ends.
  std::span<const int64_t> offsets() const {
    if (!is_string()) throw Error(PENSTOCK_INVALID_ARGUMENT, Named("holds no strings"));
    return {tensor_->offsets, tensor_->num_strings + 1};
  }

  int ragged_rank() const { return static_cast<int>(tensor_->ragged_rank); }
  // For the ragged axis `axis + 1`: row i is [splits[i], splits[i + 1]) of the next axis' rows or,
  // for the last ragged axis, of the elements. Throws if there is no such axis.
  std::span<const int64_t> row_splits(int axis = 0) const {
    if (axis < 0 || axis >= ragged_rank()) {
      throw Error(PENSTOCK_INVALID_ARGUMENT, Named("has no row splits for this axis"));
    }
    return {tensor_->row_splits[axis], tensor_->num_row_splits[axis]};
  }

  // For a sparse tensor, the place of value i is indices()[i * shape().size() + axis] for each
  // axis; the data may hold a place outside of the shape. Throws for any other tensor.
  std::span<const int64_t> indices() const {
    if (tensor_->indices == nullptr) {
      throw Error(PENSTOCK_INVALID_ARGUMENT, Named("is not sparse"));
    }
    return {tensor_->indices, tensor_->num_values * tensor_->ndim};
  }

  // The elements. For a ragged tensor: the elements of all rows; for a sparse tensor: its values.
  // Throws if T is not their type.
  template <typename T>
  std::span<const T> values() const {
    if (!Holds<T>()) {
      throw Error(PENSTOCK_INVALID_ARGUMENT,
                  Named("has elements of another type: dtype ") + std::to_string(tensor_->dtype));
    }
    return {static_cast<const T*>(tensor_->data), tensor_->bytes / sizeof(T)};
  }

 private:
  template <typename T>
  bool Holds() const {
    if constexpr (std::is_same_v<T, float>) return tensor_->dtype == PENSTOCK_FLOAT32;
    if constexpr (std::is_same_v<T, double>) return tensor_->dtype == PENSTOCK_FLOAT64;
    if constexpr (std::is_same_v<T, bool>) return tensor_->dtype == PENSTOCK_BOOL;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const uint32_t unsigned_one = sizeof(T) == 1   ? PENSTOCK_UINT8
                                    : sizeof(T) == 2 ? PENSTOCK_UINT16
                                    : sizeof(T) == 4 ? PENSTOCK_UINT32
                                                     : PENSTOCK_UINT64;
      // A signed type's code stands before the unsigned one's.
      return tensor_->dtype == unsigned_one - (std::is_signed_v<T> ? 1 : 0);
    }
    return false;
  }

  std::string Named(const char* what) const {
    return "tensor \"" + std::string(name()) + "\" " + what;
  }

  const penstock_tensor* tensor_;
};

class Batch {
 public:
  explicit Batch(penstock_batch* batch) : batch_(batch) {}
  Batch(Batch&& other) noexcept : batch_(std::exchange(other.batch_, nullptr)) {}
  Batch& operator=(Batch&& other) noexcept {
    std::swap(batch_, other.batch_);
    return *this;
  }
  ~Batch() { penstock_batch_release(batch_); }

  uint64_t step() const { return penstock_batch_step(batch_); }
  uint64_t epoch() const { return penstock_batch_epoch(batch_); }
  uint32_t rows() const { return penstock_batch_rows(batch_); }
  // How many rows, from the first on, are elements; the others fill up a last batch.
  uint32_t valid() const { return penstock_batch_valid(batch_); }
  // How many batches had been given before it, to all threads that share the loader.
  uint64_t taken() const { return penstock_batch_taken(batch_); }
  // Whether another consumer of a split group held it when it died.
  bool redelivered() const { return penstock_batch_redelivered(batch_) != 0; }
  bool is_copy() const { return penstock_batch_is_copy(batch_) != 0; }
  // Whether its rows were copied together out of several batches of the pipeline
  // (options.batch_rows).
  bool is_joined() const { return penstock_batch_is_joined(batch_) != 0; }
  // The position after this batch.
  std::string_view cursor() const {
    uint32_t bytes = 0;
    const void* cursor = penstock_batch_cursor(batch_, &bytes);
    return {static_cast<const char*>(cursor), bytes};
  }

  // For functions of the C interface; the batch stays this object's.
  penstock_batch* get() const { return batch_; }
  // Hands it over to the caller, who releases it.
  penstock_batch* Give() { return std::exchange(batch_, nullptr); }

  size_t size() const { return penstock_batch_num_tensors(batch_); }
  Tensor operator[](size_t index) const {
    return Tensor(
        Found(penstock_batch_tensor(batch_, static_cast<uint32_t>(index)), "of that index"));
  }
  Tensor operator[](const char* name) const {
    return Tensor(Found(penstock_batch_find(batch_, name), name));
  }

 private:
  static const penstock_tensor* Found(const penstock_tensor* tensor, const char* name) {
    if (tensor == nullptr) {
      throw Error(PENSTOCK_NOT_FOUND, std::string("the batch has no tensor ") + name);
    }
    return tensor;
  }

  penstock_batch* batch_;
};

class Loader {
 public:
  // `socket` and `group` as in penstock_attach; empty for the defaults.
  explicit Loader(const std::string& pipeline, const std::string& socket = "",
                  const std::string& group = "") {
    Check(penstock_attach(pipeline.c_str(), socket.c_str(), group.empty() ? nullptr : group.c_str(),
                          &loader_));
  }
  // With all options: a group's mode, a rank, a cursor to begin at and others; see
  // penstock_attach_options.
  explicit Loader(const penstock_attach_options& options) {
    Check(penstock_attach_with(&options, &loader_));
  }
  static penstock_attach_options DefaultOptions() {
    penstock_attach_options options;
    penstock_default_options(&options);
    return options;
  }
  Loader(Loader&& other) noexcept : loader_(std::exchange(other.loader_, nullptr)) {}
  Loader& operator=(Loader&& other) noexcept {
    std::swap(loader_, other.loader_);
    return *this;
  }
  ~Loader() { penstock_detach(loader_); }

  // The next batch; nothing at the end of the stream.
  std::optional<Batch> Next() {
    penstock_batch* batch = nullptr;
    const int code = penstock_next(loader_, PENSTOCK_FOREVER, &batch);
    if (code == PENSTOCK_END) return std::nullopt;
    Check(code);
    return Batch(batch);
  }

  // Goes to the position of a batch's cursor: the next batch is the one after it.
  void Seek(std::string_view cursor) {
    Check(penstock_seek(loader_, cursor.data(), static_cast<uint32_t>(cursor.size())));
  }

  // Batches that it missed by PENSTOCK_SKIP.
  uint64_t skipped() const { return penstock_skipped(loader_); }
  // Batches whose rows were copied together (options.batch_rows).
  uint64_t joined() const { return penstock_joined(loader_); }

  // For functions of the C interface; the loader stays this object's.
  penstock_loader* get() const { return loader_; }

  // How the tensors make up an element, as JSON; empty for a flat dict. See penstock_structure.
  std::string_view structure() const { return penstock_structure(loader_); }

  // The steps of the whole stream, wherever this loader begins; nullopt if the number is not known.
  // See penstock_num_steps.
  std::optional<uint64_t> num_steps() const {
    uint64_t steps = 0;
    if (penstock_num_steps(loader_, &steps) != PENSTOCK_OK) return std::nullopt;
    return steps;
  }

  penstock_stats stats() const {
    penstock_stats stats;
    penstock_get_stats(loader_, &stats);
    return stats;
  }

  // What a range-for needs: one pass, and the loop holds one batch at a time.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Loader* loader) : loader_(loader), batch_(loader->Next()) {}
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_.reset();
      batch_ = loader_->Next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_.has_value(); }

   private:
    Loader* loader_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  static void Check(int code) {
    if (code != PENSTOCK_OK) throw Error(code, penstock_last_error());
  }

  penstock_loader* loader_ = nullptr;
};

// Starts a pipeline in the daemon, from the text of a PipelineSpec; `name` overrides the name in
// it. Returns JSON that describes the pipeline (ValidatePipelineResponse in control.proto). As all
// functions here it throws Error, with the daemon's own words.
inline std::string Create(const std::string& spec, const std::string& name = "",
                          const std::string& socket = "") {
  char* text = nullptr;
  const int code = penstock_create(socket.c_str(), name.c_str(), spec.c_str(), &text);
  if (code != PENSTOCK_OK) throw Error(code, penstock_last_error());
  const std::string description = text;
  penstock_free(text);
  return description;
}

// Checks a spec and starts nothing.
inline std::string Validate(const std::string& spec, const std::string& socket = "") {
  char* text = nullptr;
  const int code = penstock_validate(socket.c_str(), spec.c_str(), &text);
  if (code != PENSTOCK_OK) throw Error(code, penstock_last_error());
  const std::string description = text;
  penstock_free(text);
  return description;
}

inline void Delete(const std::string& name, const std::string& socket = "") {
  const int code = penstock_delete(socket.c_str(), name.c_str());
  if (code != PENSTOCK_OK) throw Error(code, penstock_last_error());
}

}  // namespace penstock
