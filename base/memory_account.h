// How much memory a pipeline has taken for what it computes and keeps, and the most that it may
// take.
//
// What is charged are wholes: chunks of an arena, slabs of cells, lists that grow. Nothing is
// charged for an element. A block of memory (base/memory_block.h) is charged to the account of the
// thread that asks for it, and given back to that account whoever frees it; what grows otherwise
// holds a MemoryCharge (base/memory_charge.h).
//
// Threads:  safe from any thread; a Scope belongs to one.
// Owns:     nothing; whatever is charged holds the account.
// Limits:   what a library takes by itself (an image that is being decoded), rings and the page
//           cache are not charged.
// Cost:     Take() and GiveBack() are an atomic addition for each account on the way to the whole
//           one, and now and then a call of the account's guard; OfThisThread() is a thread's own
//           variable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace penstock {

// Thrown where more is asked for than an account may take: what computes or keeps has no way back
// from the middle of a row. Whoever has asked for the work (a worker, the front) makes a status of
// it. Any other bad_alloc, of a system that has no memory for a small thing, ends the process, and
// its successor goes on with the next batch.
class MemoryLimitError final : public std::bad_alloc {
 public:
  explicit MemoryLimitError(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// ResourceExhausted.
absl::Status MemoryStatus(const MemoryLimitError& error);

class MemoryAccount final : public std::enable_shared_from_this<MemoryAccount> {
 public:
  // Called when so much more has been taken than at the last call; says why `bytes`, what is asked
  // for and what may be taken before the next call, may not be taken, if that is so.
  static constexpr uint64_t kGuardedBytes = uint64_t{64} << 20;
  using Guard = std::function<std::optional<std::string>(uint64_t bytes)>;

  // Where an account shows what has been taken, for those who look from outside.
  using Shown = std::atomic<uint64_t>;

  struct Options {
    std::string name;  // "pipeline chess": whose account it is, for messages
    uint64_t bytes_max = UINT64_MAX;
    std::string limit;  // which limit that is, and how it is raised, for messages
    uint64_t memory_bytes =
        UINT64_MAX;  // that the process may use in all: what defaults are shares of
    Guard guard = nullptr;
    std::shared_ptr<Shown> shown = nullptr;  // may be null
  };
  // `whole`: of all of the process, which is charged too; may be null.
  static std::shared_ptr<MemoryAccount> Create(Options options,
                                               std::shared_ptr<MemoryAccount> whole = nullptr);

  // Throws MemoryLimitError, with nothing taken.
  void Take(uint64_t bytes);
  void GiveBack(uint64_t bytes);

  // Whether so much more could be taken and what is computed would still have room: an eighth of
  // the limit, and kComputedBytes or, where that is less, half of the limit. For what is kept only
  // where there is room.
  static constexpr uint64_t kComputedBytes = uint64_t{384} << 20;
  bool HasRoomToKeep(uint64_t bytes) const;

  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  uint64_t bytes_max() const { return bytes_max_.load(std::memory_order_relaxed); }
  // For what is taken from now on.
  void set_bytes_max(uint64_t bytes) { bytes_max_.store(bytes, std::memory_order_relaxed); }
  uint64_t memory_bytes() const { return options_.memory_bytes; }
  const std::string& name() const { return options_.name; }
  // Where it is shown; may be null. Safe in a signal's handler.
  const Shown* shown() const { return options_.shown.get(); }

  // The account of the work that this thread does; null: what it takes is nobody's.
  static MemoryAccount* OfThisThread();

  // For the length of a C++ scope. `account` may be null and must outlive the scope.
  class Scope {
   public:
    explicit Scope(MemoryAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MemoryAccount* const outer_;
  };

  MemoryAccount(Options options, std::shared_ptr<MemoryAccount> whole)
      : options_(std::move(options)), whole_(std::move(whole)), bytes_max_(options_.bytes_max) {}

 private:
  void Show(uint64_t taken) const {
    if (options_.shown != nullptr) options_.shown->store(taken, std::memory_order_relaxed);
  }

  const Options options_;
  const std::shared_ptr<MemoryAccount> whole_;  // may be null
  std::atomic<uint64_t> bytes_max_;
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> guarded_{0};  // what had been taken when the guard was asked last
};

}  // namespace penstock
