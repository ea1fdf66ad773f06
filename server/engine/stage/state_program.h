// A program that computes, from the features of an element and from a state, the state behind the
// element and new features: what scan and reduce run.
//
// Threads: constant after Create(); Run() is safe from any thread, each with its own Arena.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/arena.h"
#include "base/column.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/plan_builder.h"
#include "server/expr/program.h"

namespace penstock {

class StateProgram {
 public:
  // The bytes of each of a state's tensors, as a column has them.
  using State = std::vector<std::string>;

  // Of a stage's options with the fields constant, let, initial_state and state; `outs` as in Map.
  // InvalidArgument where the state behind an element has other types than the initial one.
  template <typename Options>
  static absl::StatusOr<std::shared_ptr<const StateProgram>> Read(
      const Options& options, const google::protobuf::RepeatedPtrField<std::string>& outs,
      PlanBuilder& plan) {
    absl::StatusOr<expr::MapSource> source = ReadSource(options.constant(), options.let(), plan);
    if (!source.ok()) return source.status();
    return Create(*std::move(source), options.initial_state(), options.state(), outs,
                  plan.signature());
  }

  // The features of a state, and those of `outs`.
  const Signature& state() const { return state_; }
  const Signature& output() const { return output_; }
  const State& initial() const { return initial_; }

  // The columns of a state, of one row.
  std::vector<Column> StateColumns(const State& state, Arena& arena) const;

  // Of one element: renews the state and gives the columns of output(), of one row.
  absl::Status Run(absl::Span<const Column> element, State* state, absl::Span<Column> out,
                   Arena& arena) const;

 private:
  static absl::StatusOr<expr::MapSource> ReadSource(
      const google::protobuf::RepeatedPtrField<v1::Constant>& constants,
      const google::protobuf::RepeatedPtrField<std::string>& lets, PlanBuilder& plan);
  static absl::StatusOr<std::shared_ptr<const StateProgram>> Create(
      expr::MapSource source,
      const google::protobuf::RepeatedPtrField<v1::TensorValues>& initial_state,
      const google::protobuf::RepeatedPtrField<std::string>& state,
      const google::protobuf::RepeatedPtrField<std::string>& outs, const Signature& element);

  Signature state_;
  State initial_;
  std::vector<size_t> position_;   // of each of the state's tensors among the program's outputs
  Signature output_;               // behind the state's
  std::vector<size_t> row_bytes_;  // of the program's outputs; 0 where only the data tells
  std::unique_ptr<expr::Program> program_;
};

}  // namespace penstock
