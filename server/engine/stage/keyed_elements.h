// Elements with a number in front that an expression makes of each, so that the front can tell them
// apart by it.
//
// Threads: one thread, while a plan is made.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/stage/map_source.h"
#include "server/expr/program.h"

namespace penstock {

// Ends a section whose elements are as before, and have that number in their cells:
// ElementCells::First(). `field` is what messages call the expression, which is an integer of any
// type without axes. With `then`, elements are what that makes of them, of the same types but for
// sizes that only the data tells.
absl::Status AddKey(const expr::MapSource& source, const std::string& field,
                    const std::string& expression, PlanBuilder& plan,
                    std::unique_ptr<WorkOp> then = nullptr);

// The same where the number is no secret: elements become tuples of it and themselves.
absl::Status AddKeyAsPair(const expr::MapSource& source, const std::string& field,
                          const std::string& expression, PlanBuilder& plan);

// An expression that is an integer without axes, as an int64 feature `field`.
absl::StatusOr<std::unique_ptr<expr::Program>> CompileInteger(const Signature& signature,
                                                              expr::MapSource source,
                                                              const std::string& field,
                                                              const std::string& expression);

}  // namespace penstock
