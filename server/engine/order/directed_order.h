// The order of ops that take each element from one of several inputs, as a chooser says:
// sample_from_datasets and choose_from_datasets.
//
// The position is the chooser's, and for each input whether it has ended or where it is.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/order/order_op.h"

namespace penstock {

class Chooser {
 public:
  virtual ~Chooser() = default;

  // The number of the next input; `ended` tells which inputs have no more elements, at least one
  // has. kEnd and kFailed as OrderOp::Pull().
  virtual Pulled Next(const std::vector<bool>& ended, uint64_t* input) = 0;
  virtual void Restart(uint64_t epoch) = 0;
  virtual void Save(Position& position) const = 0;
  virtual absl::Status Restore(Position& position) = 0;
  virtual absl::Status status() const { return absl::OkStatus(); }
  // Whether it takes all elements of an input, if the end of one does not end the pass; nullopt
  // where only running it tells.
  virtual std::optional<bool> TakesAll(size_t input) const { return std::nullopt; }
};

// `stop_on_empty`: an input that is chosen and has no more elements ends the pass; otherwise that
// choice is passed over.
std::unique_ptr<OrderOp> DirectedOrder(FrontContext& context, std::unique_ptr<Chooser> chooser,
                                       OrderInputs inputs, bool stop_on_empty);

}  // namespace penstock
