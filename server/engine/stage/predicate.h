// A condition on an element: an expression whose value is one truth.
//
// Threads: constant after construction; Run() is safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/engine/stage/map_source.h"
#include "server/expr/program.h"

namespace penstock {

class Predicate {
 public:
  // Of a stage's options with the fields constant, let and predicate; batches before it become
  // elements. InvalidArgument when the condition is no bool scalar of an element's features.
  template <typename Options>
  static absl::StatusOr<Predicate> Read(const Options& options, PlanBuilder& plan) {
    if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
    absl::StatusOr<expr::MapSource> source = ReadMapSource(options.constant(), options.let(), plan);
    if (!source.ok()) return source.status();
    return Create(plan.signature(), *std::move(source), options.predicate());
  }

  // Whether `in` must have the rows' identities behind the features.
  bool draws() const { return program_->draws(); }

  // One bool for each row, in memory of the arena.
  RowStatus Run(int rows, absl::Span<const Column> in, const uint8_t** holds, Arena& arena) const;

 private:
  static absl::StatusOr<Predicate> Create(const Signature& signature, expr::MapSource source,
                                          const std::string& condition);
  explicit Predicate(std::unique_ptr<expr::Program> program) : program_(std::move(program)) {}
  std::unique_ptr<expr::Program> program_;
};

}  // namespace penstock
