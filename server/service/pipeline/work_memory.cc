#include "server/service/pipeline/work_memory.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

uint64_t Share(uint64_t bytes, uint64_t parts, uint64_t of) { return bytes / of * parts; }

// Why the system has not got so much, if that is so.
std::optional<std::string> WhyNot(uint64_t bytes) {
  const ring::MemoryAtHand at_hand = ring::ReadMemoryAtHand("", ring::CachedFiles::kAll);
  const ring::Status status = ring::CheckMemory("what is computed and kept", bytes, at_hand);
  if (status.ok()) return std::nullopt;
  return absl::StrCat("memory that is not there: ", status.message);
}

std::shared_ptr<MemoryAccount> MakeWhole(const ring::MemoryAtHand& in_all) {
  MemoryAccount::Options options;
  options.name = "the daemon";
  options.bytes_max = Share(in_all.bytes, 3, 4);
  options.limit = absl::StrCat(
      "memory.max_work_bytes of the daemon's configuration: three quarters, as ", in_all.source);
  options.memory_bytes = in_all.bytes;
  options.guard = WhyNot;
  return MemoryAccount::Create(std::move(options));
}

}  // namespace

WorkMemory::WorkMemory(const ring::MemoryAtHand& in_all)
    : in_all_(in_all), whole_(MakeWhole(in_all)) {}

void WorkMemory::SetLimits(const v1::MemoryLimits& limits) {
  whole_->set_bytes_max(limits.max_work_bytes() > 0 ? static_cast<uint64_t>(limits.max_work_bytes())
                                                    : Share(in_all_.bytes, 3, 4));
  std::lock_guard<std::mutex> lock(mutex_);
  limits_ = limits;
}

absl::Status WorkMemory::Check(const v1::PipelineSpec& spec) const {
  const int64_t asked = spec.max_work_bytes();
  if (asked != 0 && asked < kLeastBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_work_bytes: expected 0 (the daemon's default) or at least ", kLeastBytes,
                     ", found ", asked));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t most = limits_.max_pipeline_work_bytes();
  if (most > 0 && asked > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_work_bytes: expected at most ", most,
        " (memory.max_pipeline_work_bytes of the daemon's configuration), found ", asked));
  }
  return absl::OkStatus();
}

std::shared_ptr<MemoryAccount> WorkMemory::AccountOf(
    const v1::PipelineSpec& spec, std::shared_ptr<MemoryAccount::Shown> shown) const {
  MemoryAccount::Options options;
  options.name = absl::StrCat("pipeline ", spec.name());
  options.memory_bytes = in_all_.bytes;
  options.shown = std::move(shown);
  std::lock_guard<std::mutex> lock(mutex_);
  if (spec.max_work_bytes() > 0) {
    options.bytes_max = static_cast<uint64_t>(spec.max_work_bytes());
    options.limit = "max_work_bytes of its spec";
  } else if (limits_.max_pipeline_work_bytes() > 0) {
    options.bytes_max = static_cast<uint64_t>(limits_.max_pipeline_work_bytes());
    options.limit = "memory.max_pipeline_work_bytes of the daemon's configuration";
  } else {
    options.bytes_max = Half();
    options.limit = absl::StrCat("half of the memory, as ", in_all_.source,
                                 "; max_work_bytes in the spec raises it");
  }
  return MemoryAccount::Create(std::move(options), whole_);
}

}  // namespace penstock
