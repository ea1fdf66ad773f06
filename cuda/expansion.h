// One tensor that is expanded on a device: what comes out, and the kernel that makes it.
//
// Threads:  an Expansion is constant after Plan(); the others are used by one thread at a time.
// Owns:     the Expander its module, a ReadyExpansion its table.
// Limits:   rows of less than 2^31 values; at most 16 channels where channels matter.
// Cost:     Run() is one launch, some microseconds of the caller's time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cuda/device.h"
#include "cuda/expand_body.h"
#include "ring/layout.h"
#include "ring/status.h"

namespace penstock::cuda {

struct Expansion {
  enum class Kind { kNormalize, kOneHot, kUnpackBits };
  Kind kind = Kind::kNormalize;
  ring::TensorDType dtype = ring::TensorDType::kFloat32;  // of the result
  // kNormalize: none, one number, or one for each of the last axis.
  std::vector<double> scale;
  std::vector<double> mean;
  std::vector<double> deviation;
  bool channels_first = false;
  int64_t depth = 0;  // kOneHot

  // From Plan().
  std::vector<int64_t> shape;  // of the result
  uint64_t bytes = 0;
};

// Checks an expansion of a tensor of fixed size and fills in its result. kInvalidArgument says what
// was expected and what was found.
ring::Status Plan(ring::TensorDType from, const std::vector<int64_t>& shape, Expansion* expansion);

// The kernels that this program was built with; empty when it was built without nvcc.
std::span<const uint8_t> Kernels();

// A planned expansion that a device is ready to run: its kernel, and the table that normalize looks
// up. Not to outlive its Expander.
class ReadyExpansion {
 public:
  ~ReadyExpansion();
  ReadyExpansion(const ReadyExpansion&) = delete;
  ReadyExpansion& operator=(const ReadyExpansion&) = delete;

  // Enqueues it for the tensor at `from`.
  ring::Status Run(Address from, Address to, StreamHandle stream) const;

 private:
  friend class Expander;
  explicit ReadyExpansion(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  // A copy on the device, which is complete when this returns.
  ring::Status PutTable(const std::vector<uint8_t>& table);

  const std::shared_ptr<const Device> device_;
  std::string name_;  // of the kernel
  FunctionHandle function_ = nullptr;
  unsigned blocks_ = 0;  // 0: there is nothing to do
  Address table_ = 0;
  std::variant<NormalizeArguments, OneHotArguments, UnpackBitsArguments> arguments_;
};

class Expander {
 public:
  // `kernels`: what cuModuleLoadData takes. kUnimplemented when there are none, kFailedPrecondition
  // when the device cannot run them.
  static ring::Status Create(std::shared_ptr<const Device> device, std::span<const uint8_t> kernels,
                             std::unique_ptr<Expander>* out);
  ~Expander();
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;

  // What a planned expansion of a tensor of `from_dtype` and `from_shape` needs.
  ring::Status Prepare(const Expansion& expansion, ring::TensorDType from_dtype,
                       const std::vector<int64_t>& from_shape,
                       std::unique_ptr<ReadyExpansion>* out) const;

 private:
  Expander(std::shared_ptr<const Device> device, ModuleHandle module)
      : device_(std::move(device)), module_(module) {}

  const std::shared_ptr<const Device> device_;
  const ModuleHandle module_;
};

}  // namespace penstock::cuda
