// Told how long the steps of programs take, on a thread that somebody asks it of: for a profile.
//
// Threads:  a Scope, Add() and what they tell belong to one thread.
// Cost:     where nobody asks, a look at a variable of the thread for each run of a program; else
//           two readings of the clock for each step of a group of rows.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace penstock {

class StepTimes {
 public:
  virtual ~StepTimes() = default;

  // Of one run of a program: ticks[i] went by in the step that is called names[i], which lives as
  // long as the program.
  virtual void Add(absl::Span<const std::string> names, absl::Span<const uint64_t> ticks) = 0;

  // Who is told of what this thread runs; null: nobody.
  static StepTimes* OfThisThread();

  class Scope {
   public:
    // `times` may be null, and must outlive the scope.
    explicit Scope(StepTimes* times);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepTimes* const outer_;
  };
};

}  // namespace penstock
