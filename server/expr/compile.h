// Compiling for something else than speed: the scalar twin of a program, which tests compare with.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/expr/program.h"
#include "server/expr/region.h"

namespace penstock::expr {

// Compile() with a choice of lanes. A program keeps the instruction set that was current when it
// was compiled.
absl::StatusOr<std::unique_ptr<Program>> CompileFor(const Signature& inputs,
                                                    absl::Span<const MapSource> maps, Lanes lanes);

}  // namespace penstock::expr
