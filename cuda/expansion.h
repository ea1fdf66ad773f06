// One tensor that is expanded on a device: what comes out, and the kernel that makes it.
//
// Threads:  an Expansion is constant after Plan(); an Expander is used by one thread at a time.
// Owns:     the Expander its module.
// Limits:   rows of less than 2^32 values; at most 16 channels where channels matter.
// Cost:     Run() is one launch, some microseconds of the caller's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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

// Checks an expansion of a tensor of fixed size and fills in its result. kInvalidArgument says what was
// expected and what was found.
ring::Status Plan(ring::TensorDType from, const std::vector<int64_t>& shape, Expansion* expansion);

// The kernels that this program was built with; empty when it was built without nvcc.
std::span<const uint8_t> Kernels();

class Expander {
 public:
  // `kernels`: what cuModuleLoadData takes. kUnimplemented when there are none, kFailedPrecondition when the
  // device cannot run them.
  static ring::Status Create(std::shared_ptr<const Device> device, std::span<const uint8_t> kernels,
                             std::unique_ptr<Expander>* out);
  ~Expander();
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;

  // Enqueues a planned expansion of the tensor `from_dtype`, `from_shape` at `from`.
  ring::Status Run(const Expansion& expansion, ring::TensorDType from_dtype,
                   const std::vector<int64_t>& from_shape, Address from, Address to,
                   StreamHandle stream);

 private:
  Expander(std::shared_ptr<const Device> device, ModuleHandle module)
      : device_(std::move(device)),
        module_(module),
        multiprocessors_(
            static_cast<uint64_t>(std::max(1, device_->Attribute(kAttributeMultiprocessors)))) {}

  const std::shared_ptr<const Device> device_;
  const ModuleHandle module_;
  const uint64_t multiprocessors_;
};

}  // namespace penstock::cuda
