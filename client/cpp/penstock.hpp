// Batches of a Penstock pipeline as C++ objects, over the C interface of penstock.h.
//
//   penstock::Loader loader("chess");
//   for (const penstock::Batch& batch : loader) {
//     std::span<const float> boards = batch["board"].values<float>();
//     train(boards, batch.rows());
//   }
//
// Threads:  as the C interface: a Loader may be used from any thread, and so may a Batch by one at
// a
//           time.
// Owns:     a Loader owns its place at the ring, a Batch its memory; a Batch may outlive its
// Loader. Errors:   penstock::Error, with the code of penstock.h and a sentence. Needs:    C++20
// and libpenstock.so.
#pragma once

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

// One tensor of a batch, in C order. A view: it is valid as long as its batch.
class Tensor {
 public:
  explicit Tensor(const penstock_tensor* tensor) : tensor_(tensor) {}

  std::string_view name() const { return tensor_->name; }
  int dtype() const { return static_cast<int>(tensor_->dtype); }
  std::span<const int64_t> shape() const { return {tensor_->shape, tensor_->ndim}; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(tensor_->data), tensor_->bytes};
  }

  // The elements; throws when T is not their type.
  template <typename T>
  std::span<const T> values() const {
    if (!Holds<T>()) {
      throw Error(PENSTOCK_INVALID_ARGUMENT, "tensor \"" + std::string(name()) +
                                                 "\" has elements of another type: dtype " +
                                                 std::to_string(tensor_->dtype));
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
  bool is_copy() const { return penstock_batch_is_copy(batch_) != 0; }
  std::string_view cursor() const {
    uint32_t bytes = 0;
    const void* cursor = penstock_batch_cursor(batch_, &bytes);
    return {static_cast<const char*>(cursor), bytes};
  }

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

}  // namespace penstock
