// A condition on an element: an expression whose value is one truth.
//
// Threads: constant after construction; Run() is safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/expr/program.h"

namespace penstock {

class Predicate {
 public:
  // `source` has no outs yet. InvalidArgument when `condition` is no bool scalar of these features.
  static absl::StatusOr<Predicate> Create(const Signature& signature, expr::MapSource source,
                                          const std::string& condition);

  // One bool for each row, in memory of the arena.
  RowStatus Run(int rows, absl::Span<const Column> in, const uint8_t** holds, Arena& arena) const;

 private:
  explicit Predicate(std::unique_ptr<expr::Program> program) : program_(std::move(program)) {}
  std::unique_ptr<expr::Program> program_;
};

}  // namespace penstock
