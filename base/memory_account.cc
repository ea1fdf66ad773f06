#include "base/memory_account.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/readable_bytes.h"

namespace penstock {
namespace {

thread_local MemoryAccount* current = nullptr;

}  // namespace

absl::Status MemoryStatus(const MemoryLimitError& error) {
  return absl::ResourceExhaustedError(error.what());
}

std::shared_ptr<MemoryAccount> MemoryAccount::Create(Options options,
                                                     std::shared_ptr<MemoryAccount> whole) {
  return std::make_shared<MemoryAccount>(std::move(options), std::move(whole));
}

void MemoryAccount::Take(uint64_t bytes) {
  if (whole_ != nullptr) whole_->Take(bytes);
  const uint64_t max = bytes_max();
  const uint64_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
  std::optional<std::string> refused;
  if (before > max || bytes > max - before) {
    refused = absl::StrCat("more memory than the limit: ", ReadableBytes(before),
                           " in use by what is computed and kept, and ", ReadableBytes(bytes),
                           " more asked for > ", ReadableBytes(max), " (", options_.limit, ")");
  } else if (options_.guard != nullptr &&
             before + bytes > guarded_.load(std::memory_order_relaxed) + kGuardedBytes) {
    // And so much as may be taken before it is asked again.
    refused = options_.guard(bytes + kGuardedBytes);
    if (!refused) guarded_.store(before + bytes, std::memory_order_relaxed);
  }
  if (!refused) return Show(before + bytes);
  GiveBack(bytes);
  throw MemoryLimitError(options_.name.empty() ? *std::move(refused)
                                               : absl::StrCat(options_.name, " takes ", *refused));
}

void MemoryAccount::GiveBack(uint64_t bytes) {
  const uint64_t left = taken_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
  Show(left);
  // What grows again is looked at again.
  uint64_t guarded = guarded_.load(std::memory_order_relaxed);
  if (left < guarded) guarded_.compare_exchange_strong(guarded, left, std::memory_order_relaxed);
  if (whole_ != nullptr) whole_->GiveBack(bytes);
}

bool MemoryAccount::HasRoomToKeep(uint64_t bytes) const {
  const uint64_t max = bytes_max();
  const uint64_t most = max - std::max(max / 8, std::min(max / 2, kComputedBytes));
  const uint64_t before = taken();
  if (before > most || bytes > most - before) return false;
  return whole_ == nullptr || whole_->HasRoomToKeep(bytes);
}

MemoryAccount* MemoryAccount::OfThisThread() { return current; }

MemoryAccount::Scope::Scope(MemoryAccount* account) : outer_(current) { current = account; }
MemoryAccount::Scope::~Scope() { current = outer_; }

}  // namespace penstock
