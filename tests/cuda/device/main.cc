// Tests on a CUDA device. Where there is none: a line that says why, and exit code 77.
#define CATCH_CONFIG_RUNNER
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "tests/cuda/device/real_device.h"

namespace penstock::cuda {
namespace {
const char* program_path = "";
}  // namespace

const char* ProgramPath() { return program_path; }

std::string LibraryBeside(const char* name) {
  const std::string path = ProgramPath();
  return path.substr(0, path.rfind('/')) + "/../lib/" + name;
}

}  // namespace penstock::cuda

int main(int argc, char** argv) {
  static char path[PATH_MAX];
  if (realpath("/proc/self/exe", path) == nullptr) return 1;
  penstock::cuda::program_path = path;
  std::shared_ptr<const penstock::cuda::Device> device;
  const penstock::ring::Status status =
      penstock::cuda::Device::Open(penstock::cuda::DriverLibrary(), 0, &device);
  if (!status.ok()) {
    std::printf("NOT RUN, no device: %s\n", status.message.c_str());
    return 77;
  }
  using namespace penstock::cuda;
  std::printf(
      "driver of CUDA %d.%d, compute capability %d.%d, compute mode %d; attributes: virtual memory "
      "%d, descriptors %d, read-only "
      "registration %d, host's page tables %d, memory pools %d, events between processes %d\n",
      device->driver_version() / 1000, device->driver_version() % 1000 / 10,
      device->Attribute(kAttributeComputeCapabilityMajor),
      device->Attribute(kAttributeComputeCapabilityMinor), device->Attribute(kAttributeComputeMode),
      device->Attribute(kAttributeVirtualMemory), device->Attribute(kAttributeDescriptors),
      device->Attribute(kAttributeReadOnlyHostRegister),
      device->Attribute(kAttributeHostPageTables), device->Attribute(kAttributeMemoryPools),
      device->Attribute(kAttributeIpcEvents));
  std::fflush(stdout);
  return Catch::Session().run(argc, argv);
}
