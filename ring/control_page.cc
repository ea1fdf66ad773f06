#include "ring/control_page.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "ring/memory_file.h"

namespace penstock::ring {

Status ConsumerPage::Create(uint64_t generation, uint32_t consumer, uint32_t index,
                            std::unique_ptr<ConsumerPage>* out) {
  std::unique_ptr<ConsumerPage> made(new ConsumerPage);
  // Sealed in size: a client that could shrink it would kill the daemon by SIGBUS.
  if (Status status =
          CreateMemoryFile("penstock-control", sizeof(ControlPage),
                           F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, &made->fd_, &made->region_);
      !status.ok()) {
    return status;
  }
  made->bell_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->bell_) {
    return {Code::kResourceExhausted,
            std::string("cannot create an eventfd: ") + std::strerror(errno)};
  }
  ControlPage& page = made->page();
  page.abi_version = kAbiVersion;
  page.page_bytes = sizeof(ControlPage);
  page.generation = generation;
  page.consumer = consumer;
  page.index = index;
  page.wake_at.store(kAwake, std::memory_order_relaxed);
  page.stop_at.store(kNeverStops, std::memory_order_relaxed);
  page.magic = kControlMagic;
  *out = std::move(made);
  return {};
}

}  // namespace penstock::ring
