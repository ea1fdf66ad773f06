#include "server/engine/order/file_pull.h"

#include <algorithm>

#include "base/file_error.h"
#include "base/memory_account.h"

namespace penstock {
namespace {

// What the daemon may use, whose page cache is of its control group's memory too.
uint64_t MemoryOfProcess() {
  const MemoryAccount* const account = MemoryAccount::OfThisThread();
  return account == nullptr ? UINT64_MAX : account->memory_bytes();
}

}  // namespace

FilePull::FilePull(FrontContext& context, FileRange files, int stage)
    : context_(context), files_(files), format_{.stage = stage}, left_(MemoryOfProcess() / 4 * 3) {}

bool FilePull::AskNext(ReadRequest* request) {
  const auto entry = [&]() -> const FileEntry& {
    return context_.files.manifest()[files_.first + file_];
  };
  // No page cache holds what lies at an address.
  while (file_ < files_.count && (offset_ >= entry().size_bytes || IsAddress(entry().path))) {
    ++file_;
    offset_ = 0;
  }
  if (file_ == files_.count || left_ == 0) return false;
  request->files = &context_.files;
  request->file = files_.first + file_;
  request->format = &format_;
  request->offset = offset_;
  request->pull_bytes = std::min({kRequestBytes, entry().size_bytes - offset_, left_});
  request->done.store(false, std::memory_order_relaxed);
  offset_ += request->pull_bytes;
  left_ -= request->pull_bytes;
  context_.reads.Push(request);
  return true;
}

bool FilePull::IsOver() {
  bool over = true;
  for (Slot& slot : slots_) {
    if (slot.under_way && !slot.request.done.load(std::memory_order_acquire)) {  // SYNC chunk-ready
      over = false;
      continue;
    }
    slot.under_way = AskNext(&slot.request);
    over = over && !slot.under_way;
  }
  return over;
}

}  // namespace penstock
