#include "server/service/pipeline/death_notes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/readable_bytes.h"
#include "ring/descriptor.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr char kPageName[] = "running";
constexpr char kDeathsSuffix[] = ".deaths";
constexpr uint64_t kMagic = 0x3147444e55525450;  // "PTRUNDG1"
constexpr uint64_t kUnknownKills = UINT64_MAX;
constexpr size_t kNameBytes = 120;
// A pipeline that has taken less did not take the machine's memory.
constexpr uint64_t kLeastBytes = uint64_t{16} << 20;

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

}  // namespace

// Written by its daemon alone, and read by the next one.
struct DeathNotes::Page {
  struct Entry {
    std::atomic<bool> taken;
    char name[kNameBytes];  // ends with 0
    MemoryAccount::Shown bytes;
  };

  uint64_t magic;
  uint64_t kills;               // when it began
  std::atomic<bool> ended;      // by itself
  std::atomic<int> signal;      // that ended it; 0: none
  std::atomic<uint32_t> entry;  // whose work the signal met; kMaxEntries: nobody's
  Entry entries[kMaxEntries];
};

namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "a signal's handler may not take a lock");

// Of the process: a handler has no other way to it. Null where nobody listens.
std::atomic<DeathNotes::Page*> noted{nullptr};

void OnFatalSignal(int number, siginfo_t* info, void*) {
  if (DeathNotes::Page* const page = noted.load(); page != nullptr) {
    const MemoryAccount* const account = MemoryAccount::OfThisThread();
    const auto* const shown = account == nullptr ? nullptr : account->shown();
    uint32_t entry = DeathNotes::kMaxEntries;
    for (uint32_t i = 0; i < DeathNotes::kMaxEntries && shown != nullptr; ++i) {
      if (&page->entries[i].bytes == shown) entry = i;
    }
    page->entry.store(entry);
    page->signal.store(number);
  }
  signal(number, SIG_DFL);
  // A fault comes again by itself when this returns; what somebody sent does not.
  if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), number);
}

std::optional<std::pair<std::string, DeathNotes::Death>> Read(const DeathNotes::Page& page,
                                                              int64_t now_unix_ms,
                                                              std::optional<uint64_t> kills) {
  if (page.magic != kMagic || page.ended.load()) return std::nullopt;
  const auto name_of = [](const DeathNotes::Page::Entry& entry) {
    return std::string(entry.name, strnlen(entry.name, sizeof(entry.name)));
  };
  if (const int number = page.signal.load(); number != 0) {
    const uint32_t entry = page.entry.load();
    if (entry >= DeathNotes::kMaxEntries || !page.entries[entry].taken.load()) return std::nullopt;
    return std::pair(name_of(page.entries[entry]),
                     DeathNotes::Death{now_unix_ms, absl::StrCat("signal ", number, " (",
                                                                 strsignal(number), ")")});
  }
  if (!kills || page.kills == kUnknownKills || *kills <= page.kills) return std::nullopt;
  const auto* const most = std::max_element(
      std::begin(page.entries), std::end(page.entries), [](const auto& a, const auto& b) {
        return (a.taken.load() ? a.bytes.load() : 0) < (b.taken.load() ? b.bytes.load() : 0);
      });
  if (!most->taken.load() || most->bytes.load() < kLeastBytes) return std::nullopt;
  return std::pair(
      name_of(*most),
      DeathNotes::Death{
          now_unix_ms,
          absl::StrCat("the kernel ended it for want of memory, of which the pipeline had ",
                       ReadableBytes(most->bytes.load()))});
}

}  // namespace

std::optional<uint64_t> DeathNotes::OutOfMemoryKills(const std::string& root) {
  std::ifstream file(root + "/proc/vmstat");
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "oom_kill") return value;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<DeathNotes>> DeathNotes::Open(const StateFolder& folder,
                                                             int64_t now_unix_ms,
                                                             std::optional<uint64_t> kills) {
  const std::string path = folder.PathOf(kPageName);
  const ring::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  // Its room is taken now: a disk that is full later would end the daemon by SIGBUS.
  if (const int error = posix_fallocate(file.get(), 0, sizeof(Page)); error != 0)
    return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
  void* const memory =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", path));
  auto* const page = static_cast<Page*>(memory);
  std::unique_ptr<DeathNotes> notes(new DeathNotes(folder, now_unix_ms, page));
  notes->last_ = Read(*page, now_unix_ms, kills);
  if (notes->last_) notes->WriteDown(notes->last_->first, notes->last_->second);
  std::memset(memory, 0, sizeof(Page));
  page->magic = kMagic;
  page->kills = kills.value_or(kUnknownKills);
  page->entry.store(kMaxEntries);
  return notes;
}

DeathNotes::DeathNotes(const StateFolder& folder, int64_t now_unix_ms, Page* page)
    : folder_(folder), now_unix_ms_(now_unix_ms), page_(page, [](Page* mapped) {
        Page* expected = mapped;
        noted.compare_exchange_strong(expected, nullptr);
        munmap(mapped, sizeof(Page));
      }) {}

DeathNotes::~DeathNotes() { page_->ended.store(true); }

std::vector<DeathNotes::Death> DeathNotes::DeathsOf(const std::string& pipeline) const {
  std::vector<Death> deaths;
  const absl::StatusOr<std::string> text = folder_.Read(absl::StrCat(pipeline, kDeathsSuffix));
  if (!text.ok()) return deaths;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    Death death;
    if (!absl::SimpleAtoi(parts.first, &death.unix_ms)) continue;
    death.cause = std::string(parts.second);
    deaths.push_back(std::move(death));
  }
  return deaths;
}

void DeathNotes::WriteDown(const std::string& pipeline, const Death& death) {
  std::vector<Death> deaths = DeathsOf(pipeline);
  deaths.push_back(death);
  if (deaths.size() > kDeathsMax) deaths.erase(deaths.begin(), deaths.end() - kDeathsMax);
  std::string text;
  for (const Death& one : deaths) absl::StrAppend(&text, one.unix_ms, " ", one.cause, "\n");
  const absl::Status status =
      folder_.Write(absl::StrCat(pipeline, kDeathsSuffix), text, StateFolder::Durability::kCrash);
  if (!status.ok()) spdlog::warn("pipeline {}: {}", pipeline, status.ToString());
}

std::optional<std::string> DeathNotes::SetAside(const std::string& pipeline) const {
  const std::vector<Death> deaths = DeathsOf(pipeline);
  if (deaths.size() < kDeathsMax) return std::nullopt;
  // It stays set aside until somebody says otherwise: the time is that between the deaths.
  if (deaths.back().unix_ms - deaths[deaths.size() - kDeathsMax].unix_ms > kWithinMs)
    return std::nullopt;
  return absl::StrCat(kDeathsMax, " daemons died under it within ",
                      (deaths.back().unix_ms - deaths[deaths.size() - kDeathsMax].unix_ms) / 1000,
                      " s, the last one of ", deaths.back().cause);
}

void DeathNotes::Forget(const std::string& pipeline) {
  (void)folder_.Remove(absl::StrCat(pipeline, kDeathsSuffix));
}

std::shared_ptr<MemoryAccount::Shown> DeathNotes::Enter(const std::string& pipeline) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Page::Entry& entry : page_->entries) {
    if (entry.taken.load()) continue;
    std::memset(entry.name, 0, sizeof(entry.name));
    std::memcpy(entry.name, pipeline.data(), std::min(pipeline.size(), sizeof(entry.name) - 1));
    entry.bytes.store(0);
    entry.taken.store(true);
    // The account may outlive the notes, and then shows to a page that nobody reads any more.
    return {&entry.bytes,
            [page = page_, &entry](MemoryAccount::Shown*) { entry.taken.store(false); }};
  }
  return nullptr;
}

void DeathNotes::NoteSignals() {
  noted.store(page_.get());
  for (const int number : kFatal) {
    struct sigaction action = {};
    action.sa_sigaction = OnFatalSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace penstock
