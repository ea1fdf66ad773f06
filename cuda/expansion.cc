#include "cuda/expansion.h"

#include <algorithm>
#include <utility>

#include "cuda/normalize_table.h"
#include "ring/segment_plan.h"

namespace penstock::cuda {
namespace {

using ring::Code;
using ring::Status;
using ring::TensorDType;

constexpr int64_t kMaxDepth = 1 << 20;
// So that an item's end, and a thread's next item, are numbers of 32 bits.
constexpr uint64_t kMaxRowValues = UINT32_MAX / 2;
// Blocks for each multiprocessor, of which each thread takes several items: enough for all devices
// to be full to the end.
constexpr uint64_t kBlocks = 32;

Status Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

const char* NameOf(TensorDType dtype) {
  switch (dtype) {
    case TensorDType::kUint8:
      return "uint8";
    case TensorDType::kInt32:
      return "int32";
    case TensorDType::kInt64:
      return "int64";
    case TensorDType::kFloat16:
      return "float16";
    case TensorDType::kBfloat16:
      return "bfloat16";
    case TensorDType::kFloat32:
      return "float32";
    case TensorDType::kFloat64:
      return "float64";
    default:
      return nullptr;
  }
}

bool IsFloat(TensorDType dtype) {
  return dtype == TensorDType::kFloat16 || dtype == TensorDType::kBfloat16 ||
         dtype == TensorDType::kFloat32 || dtype == TensorDType::kFloat64;
}

// The product of axes [first, last); 2^63 and more become 2^63.
uint64_t Product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  uint64_t product = 1;
  for (size_t axis = first; axis < last; ++axis) {
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(shape[axis]), &product) ||
        product > (uint64_t{1} << 63)) {
      return uint64_t{1} << 63;
    }
  }
  return product;
}

Status PlanNormalize(const std::vector<int64_t>& shape, Expansion* expansion) {
  if (!IsFloat(expansion->dtype)) {
    return Invalid("normalize gives float16, bfloat16, float32 or float64");
  }
  if (shape.size() < 2) {
    return Invalid("normalize needs an axis of rows and one of channels: found " +
                   std::to_string(shape.size()) + " axes");
  }
  const uint64_t channels = static_cast<uint64_t>(shape.back());
  bool per_channel = expansion->channels_first;
  for (const auto* numbers : {&expansion->scale, &expansion->mean, &expansion->deviation}) {
    if (numbers->size() > 1 && numbers->size() != channels) {
      return Invalid("normalize takes one number or one for each channel: the tensor has " +
                     std::to_string(channels) + ", there are " + std::to_string(numbers->size()));
    }
    per_channel = per_channel || numbers->size() > 1;
  }
  if (per_channel && channels > kMaxChannels) {
    return Invalid(
        "normalize with numbers for each channel, or with channels_first, takes at most " +
        std::to_string(kMaxChannels) + " channels: " + std::to_string(channels));
  }
  if (expansion->channels_first) {
    std::rotate(expansion->shape.begin() + 1, expansion->shape.end() - 1, expansion->shape.end());
  }
  return {};
}

}  // namespace

Status Plan(TensorDType from, const std::vector<int64_t>& shape, Expansion* expansion) {
  if (shape.empty() || std::find(shape.begin(), shape.end(), -1) != shape.end()) {
    return Invalid("only tensors of fixed size, with an axis of rows, are expanded on the device");
  }
  expansion->shape = shape;
  const bool is_float_or_uint8 =
      IsFloat(expansion->dtype) || expansion->dtype == TensorDType::kUint8;
  if (!is_float_or_uint8) {
    return Invalid("an expansion gives float16, bfloat16, float32, float64 or uint8");
  }
  const bool is_index =
      from == TensorDType::kUint8 || from == TensorDType::kInt32 || from == TensorDType::kInt64;
  switch (expansion->kind) {
    case Expansion::Kind::kNormalize:
      if (from != TensorDType::kUint8) return Invalid("normalize takes a tensor of uint8");
      if (Status status = PlanNormalize(shape, expansion); !status.ok()) return status;
      break;
    case Expansion::Kind::kOneHot:
      if (!is_index) return Invalid("one_hot takes a tensor of uint8, int32 or int64");
      if (expansion->depth < 1 || expansion->depth > kMaxDepth) {
        return Invalid("one_hot.depth is not in [1, " + std::to_string(kMaxDepth) +
                       "]: " + std::to_string(expansion->depth));
      }
      expansion->shape.push_back(expansion->depth);
      break;
    case Expansion::Kind::kUnpackBits:
      if (from != TensorDType::kUint8) return Invalid("unpack_bits takes a tensor of uint8");
      if (shape.size() < 2) return Invalid("unpack_bits needs an axis of rows and one of bytes");
      if (shape.back() > INT64_MAX / 8) return Invalid("unpack_bits gives too many values");
      expansion->shape.back() *= 8;
      break;
  }
  const uint64_t row_values = Product(expansion->shape, 1, expansion->shape.size());
  if (row_values > kMaxRowValues) {
    return Invalid("a row on the device has less than 2^31 values: " + std::to_string(row_values));
  }
  const uint64_t values = Product(expansion->shape, 0, expansion->shape.size());
  if (values > (uint64_t{1} << 48)) return Invalid("a batch on the device has at most 2^48 values");
  expansion->bytes = values * ring::ElementBytes(static_cast<uint8_t>(expansion->dtype));
  return {};
}

Status Expander::Create(std::shared_ptr<const Device> device, std::span<const uint8_t> kernels,
                        std::unique_ptr<Expander>* out) {
  if (kernels.empty()) {
    return {Code::kUnimplemented,
            "this program was built without nvcc and has no kernels: build it where nvcc is, or "
            "leave `expand` out"};
  }
  ModuleHandle module = nullptr;
  {
    const Entered entered(*device);
    const Result result = device->driver().ModuleLoadData(&module, kernels.data());
    if (Status status = device->Check(result, "the device cannot run this program's kernels");
        !status.ok()) {
      return {Code::kFailedPrecondition, status.message};
    }
  }
  out->reset(new Expander(std::move(device), module));
  return {};
}

Expander::~Expander() {
  const Entered entered(*device_);
  device_->driver().ModuleUnload(module_);
}

Status Expander::Prepare(const Expansion& expansion, TensorDType from_dtype,
                         const std::vector<int64_t>& from_shape,
                         std::unique_ptr<ReadyExpansion>* out) const {
  std::unique_ptr<ReadyExpansion> ready(new ReadyExpansion(device_));
  const std::string dtype = NameOf(expansion.dtype);
  switch (expansion.kind) {
    case Expansion::Kind::kNormalize: {
      NormalizeArguments normalize = {};
      normalize.images = static_cast<uint64_t>(from_shape[0]);
      normalize.pixels = static_cast<uint32_t>(Product(from_shape, 1, from_shape.size() - 1));
      normalize.channels = static_cast<uint32_t>(from_shape.back());
      // One channel lies the same way either way.
      normalize.channels_first = expansion.channels_first && normalize.channels > 1;
      normalize.tables = IsPerChannel(expansion) ? normalize.channels : 1;
      // Rows whose layout stays follow each other without a gap: as one, all but its first item
      // begin where stores may.
      const uint64_t values = Product(from_shape, 0, from_shape.size());
      if (normalize.channels_first == 0 && values > 0 && values <= kMaxRowValues) {
        normalize.pixels *= static_cast<uint32_t>(std::exchange(normalize.images, 1));
      }
      ready->arguments_ = normalize;
      ready->name_ = "penstock_normalize_" + dtype;
      break;
    }
    case Expansion::Kind::kOneHot: {
      OneHotArguments one_hot = {};
      one_hot.indices = Product(from_shape, 0, from_shape.size());
      one_hot.depth = static_cast<uint32_t>(expansion.depth);
      ready->arguments_ = one_hot;
      ready->name_ = std::string("penstock_one_hot_") + NameOf(from_dtype) + "_" + dtype;
      break;
    }
    case Expansion::Kind::kUnpackBits: {
      UnpackBitsArguments unpack_bits = {};
      unpack_bits.bytes = Product(from_shape, 0, from_shape.size());
      ready->arguments_ = unpack_bits;
      ready->name_ = "penstock_unpack_bits_" + dtype;
      break;
    }
  }
  if (expansion.bytes > 0) {
    const uint64_t threads = (expansion.bytes + kStoreBytes - 1) / kStoreBytes;
    const auto multiprocessors =
        static_cast<uint64_t>(std::max(1, device_->Attribute(kAttributeMultiprocessors)));
    ready->blocks_ =
        static_cast<unsigned>(std::min((threads + kBlock - 1) / kBlock, kBlocks * multiprocessors));
  }
  {
    const Entered entered(*device_);
    const Result result =
        device_->driver().ModuleGetFunction(&ready->function_, module_, ready->name_.c_str());
    if (Status status = device_->Check(result, ("kernel " + ready->name_).c_str()); !status.ok()) {
      return status;
    }
  }
  if (auto* normalize = std::get_if<NormalizeArguments>(&ready->arguments_)) {
    if (Status status = ready->PutTable(NormalizeTable(expansion, normalize->channels));
        !status.ok()) {
      return status;
    }
    normalize->table = ready->table_;
  }
  *out = std::move(ready);
  return {};
}

Status ReadyExpansion::PutTable(const std::vector<uint8_t>& table) {
  const Entered entered(*device_);
  const Driver& driver = device_->driver();
  Status status = device_->Check(driver.MemAlloc(&table_, table.size()),
                                 "there is no memory for the table of an expansion");
  if (status.ok()) {
    status = device_->Check(driver.MemcpyHtoDAsync(table_, table.data(), table.size(), nullptr),
                            "the table of an expansion cannot be copied");
  }
  if (status.ok()) {
    status = device_->Check(driver.StreamSynchronize(nullptr),
                            "the table of an expansion was not copied");
  }
  return status;
}

ReadyExpansion::~ReadyExpansion() {
  if (table_ == 0) return;
  const Entered entered(*device_);
  device_->driver().MemFree(table_);
}

Status ReadyExpansion::Run(Address from, Address to, StreamHandle stream) const {
  if (blocks_ == 0) return {};
  return std::visit(
      [&](auto arguments) {
        arguments.from = from;
        arguments.to = to;
        void* pointers[] = {&arguments};
        const Entered entered(*device_);
        return device_->Check(device_->driver().LaunchKernel(function_, blocks_, 1, 1, kBlock, 1, 1,
                                                             0, stream, pointers, nullptr),
                              name_.c_str());
      },
      arguments_);
}

}  // namespace penstock::cuda
