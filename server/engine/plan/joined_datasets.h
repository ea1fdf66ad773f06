// Several datasets as one: side by side, or in turns.
//
// Threads:  functions without state.
#pragma once

#include <optional>
#include <vector>

#include "server/engine/order/dataset.h"

namespace penstock {

// That of their tuples, which `stage` makes. `make` gets the order ops of those inputs that have
// one, and gives the references of input i in front of those of input i + 1.
Dataset TupleOf(std::vector<Dataset> inputs, int stage, OrderFactory make);

// That of elements of any of the inputs, whose signatures are equal. The op's first input is
// `chooser`, if there is one, whose elements nobody else takes.
Dataset BranchesOf(std::vector<Dataset> inputs, int stage, OrderFactory make,
                   std::optional<Dataset> chooser);

}  // namespace penstock
