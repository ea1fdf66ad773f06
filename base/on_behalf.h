// For which user a thread works: who asks for a plan, or whose pipeline it is. What runs code of
// the user's own looks at it.
//
// Threads: each has its own.
// Owns:    nothing.
// Limits:  where nobody has said it, nobody's code runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

namespace penstock {

class OnBehalf {
 public:
  // Of this thread; nothing where nobody has said it.
  static std::optional<uid_t> User() { return user_; }

  // On this thread, until its end.
  class Scope {
   public:
    explicit Scope(uid_t user) : outer_(std::exchange(user_, user)) {}
    ~Scope() { user_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::optional<uid_t> outer_;
  };

 private:
  static inline thread_local std::optional<uid_t> user_;
};

}  // namespace penstock
