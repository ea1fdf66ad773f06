#include "server/python/kept_pools.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/tick_clock.h"

namespace penstock::python {
namespace {

using Pools = std::vector<std::shared_ptr<PoolCore>>;

struct Entry {
  std::string key;
  std::shared_ptr<PoolCore> pool;
  int users = 0;
};

struct Keeper {
  std::mutex mutex;
  std::condition_variable given_back;
  std::vector<Entry> entries;  // those that nobody uses in the order in which they were given back
};

// As long as a new process takes on a busy machine.
constexpr std::chrono::milliseconds kLendingTime{300};

// Never destroyed: its pools' threads end with the process, and workers with them.
Keeper& TheKeeper() {
  static auto* const keeper = new Keeper;
  return *keeper;
}

// Takes out those that have closed themselves, and the oldest of too many that nobody uses.
void Sweep(std::vector<Entry>& entries, Pools* over) {
  size_t unused = std::count_if(entries.begin(), entries.end(),
                                [](const Entry& entry) { return entry.users == 0; });
  for (auto entry = entries.begin(); entry != entries.end();) {
    if (entry->users > 0 || (unused <= kMaxKept && !entry->pool->is_over())) {
      ++entry;
      continue;
    }
    --unused;
    over->push_back(std::move(entry->pool));
    entry = entries.erase(entry);
  }
}

std::string FileKey(const FunctionFile& function) {
  struct stat found = {};
  fstat(function.file->get(), &found);
  return absl::StrCat(found.st_dev, " ", found.st_ino);
}

void Close(const Pools& over) {
  for (const std::shared_ptr<PoolCore>& pool : over) pool->Close();
}

}  // namespace

std::string PoolKey(const FunctionFile& function, const PoolOptions& options) {
  std::string which = absl::StrCat("user ", function.user, " ", function.path, " ", function.code);
  if (function.file != nullptr) which = FileKey(function);
  return absl::StrCat(which, " ", options.workers, options.chooses ? "? " : " ", options.timeout_ms,
                      " ", options.max_rows_per_worker, " ", options.name, " ",
                      options.configuration);
}

std::string LoadKey(const FunctionFile& function, const PoolOptions& options) {
  return function.file == nullptr ? "" : absl::StrCat(FileKey(function), " ", options.threads);
}

std::shared_ptr<PoolCore> TakePool(const std::string& key,
                                   const std::function<std::shared_ptr<PoolCore>()>& make) {
  Pools over;
  std::shared_ptr<PoolCore> taken;
  {
    Keeper& keeper = TheKeeper();
    const std::lock_guard lock(keeper.mutex);
    for (Entry& entry : keeper.entries) {
      // One that cannot go on would fail whoever comes, too.
      if (entry.key != key || !entry.pool->Rouse()) continue;
      ++entry.users;
      taken = entry.pool;
      break;
    }
    if (taken == nullptr) {
      taken = make();
      keeper.entries.push_back({key, taken, 1});
    }
    Sweep(keeper.entries, &over);
  }
  Close(over);
  return taken;
}

void GivePoolBack(const std::shared_ptr<PoolCore>& pool) {
  Pools over;
  {
    Keeper& keeper = TheKeeper();
    const std::lock_guard lock(keeper.mutex);
    const auto entry = std::find_if(keeper.entries.begin(), keeper.entries.end(),
                                    [&](const Entry& other) { return other.pool == pool; });
    if (--entry->users > 0) return;
    keeper.given_back.notify_all();
    if (pool->Rest(MonotonicNanos() + kKeptNs)) {
      std::rotate(entry, entry + 1, keeper.entries.end());
    } else {
      over.push_back(pool);
      keeper.entries.erase(entry);
    }
    Sweep(keeper.entries, &over);
  }
  Close(over);
}

LentWorker BorrowWorker(const std::string& load_key, const PoolCore* borrower) {
  std::shared_ptr<PoolCore> lender;
  {
    Keeper& keeper = TheKeeper();
    std::unique_lock lock(keeper.mutex);
    const auto find = [&](bool is_used) {
      return std::find_if(keeper.entries.begin(), keeper.entries.end(), [&](const Entry& other) {
        return (other.users > 0) == is_used && other.pool.get() != borrower &&
               other.pool->Lends(load_key);
      });
    };
    // A pipeline that has described the function is about to end.
    keeper.given_back.wait_for(lock, kLendingTime,
                               [&] { return find(true) == keeper.entries.end(); });
    const auto entry = find(false);
    if (entry == keeper.entries.end()) return {};
    lender = std::move(entry->pool);
    keeper.entries.erase(entry);
  }
  LentWorker lent = lender->Lend();
  if (lent.process == nullptr) lender->Close();
  return lent;
}

}  // namespace penstock::python
