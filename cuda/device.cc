#include "cuda/device.h"

namespace penstock::cuda {

using ring::Code;
using ring::Status;

Status Device::Retain(const Driver& driver, int32_t ordinal, std::shared_ptr<const Device>* out) {
  const std::string named = " (CUDA device " + std::to_string(ordinal) + ")";
  std::shared_ptr<Device> device(new Device());
  device->driver_ = driver;
  device->ordinal_ = ordinal;
  Result result = driver.DeviceGet(&device->number_, ordinal);
  if (result == kSuccess) result = driver.DriverGetVersion(&device->driver_version_);
  if (result == kSuccess) result = driver.DeviceGetUuid(&device->uuid_, device->number_);
  if (result != kSuccess) return CallError(driver, result, "the device does not answer" + named);
  ContextHandle context = nullptr;
  result = driver.DevicePrimaryCtxRetain(&context, device->number_);
  if (result == kErrorDeviceUnavailable) {
    const int32_t mode = device->Attribute(kAttributeComputeMode);
    if (mode == kComputeProhibited || mode == kComputeExclusive) {
      return {
          Code::kFailedPrecondition,
          std::string("the device is ") +
              (mode == kComputeProhibited ? "closed to all processes" : "another process's alone") +
              " by its compute mode, and penstockd and trainers use one device together: set "
              "the mode to default (nvidia-smi -c 0), or run the service of CUDA MPS" +
              named};
    }
  }
  if (result != kSuccess) return CallError(driver, result, "no context on the device" + named);
  device->context_ = context;
  *out = std::move(device);
  return {};
}

Status Device::Open(const std::string& library, int32_t ordinal,
                    std::shared_ptr<const Device>* out) {
  Driver driver;
  if (Status status = LoadDriver(library, &driver); !status.ok()) return status;
  int32_t count = 0;
  if (const Result result = driver.DeviceGetCount(&count); result != kSuccess) {
    return CallError(driver, result, "the devices cannot be counted");
  }
  if (count == 0) return {Code::kFailedPrecondition, "no CUDA device: the driver finds none"};
  if (ordinal < 0 || ordinal >= count) {
    return {Code::kNotFound, "no such CUDA device: " + std::to_string(ordinal) + "; there are " +
                                 std::to_string(count) + ", counted from 0"};
  }
  return Retain(driver, ordinal, out);
}

Device::~Device() {
  if (context_ != nullptr) driver_.DevicePrimaryCtxRelease(number_);
}

int32_t Device::Attribute(int32_t attribute) const {
  int32_t value = 0;
  return driver_.DeviceGetAttribute(&value, attribute, number_) == kSuccess ? value : 0;
}

Status Device::Check(Result result, const char* what) const {
  if (result == kSuccess) return {};
  return CallError(driver_, result,
                   std::string(what) + " (CUDA device " + std::to_string(ordinal_) + ")");
}

}  // namespace penstock::cuda
