// Trains a linear model on chess positions: who stands better?  train_linear [SOCKET [STEPS]]
//
//   penstock create config/pipelines/chess_float32.textproto
//   g++ -std=c++20 -O2 train_linear.cc -IPREFIX/include -LPREFIX/lib -lpenstock
//
// Batches are read where the daemon wrote them, in shared memory.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "penstock.hpp"

namespace {

class Model {
 public:
  // Returns the mean squared error of the batch before its update.
  double Step(const penstock::Batch& batch) {
    const std::span<const float> boards = batch["board"].values<float>();
    const std::span<const float> scores = batch["score"].values<float>();
    const size_t width = boards.size() / scores.size();
    weights_.resize(width);
    std::vector<double> slope(width);
    double sum = 0;
    for (size_t row = 0; row < scores.size(); ++row) {
      const std::span<const float> board = boards.subspan(row * width, width);
      double x = 0;
      for (size_t i = 0; i < width; ++i) x += weights_[i] * static_cast<double>(board[i]);
      const double y = std::tanh(x), error = y - static_cast<double>(scores[row]);
      sum += error * error;
      const double change = 2 * error * (1 - y * y) / static_cast<double>(scores.size());
      for (size_t i = 0; i < width; ++i) slope[i] += change * static_cast<double>(board[i]);
    }
    for (size_t i = 0; i < width; ++i) weights_[i] -= 0.02 * slope[i];
    return sum / static_cast<double>(scores.size());
  }

 private:
  std::vector<double> weights_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    penstock_attach_options options = penstock::Loader::DefaultOptions();
    options.pipeline = "chess_float32";
    options.socket = argc > 1 ? argv[1] : nullptr;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
    penstock::Loader loader(options);
    Model model;
    double first = 0, last = 0;
    const int tenth = steps < 10 ? 1 : steps / 10;
    for (int step = 0; step < steps; ++step) {
      const std::optional<penstock::Batch> batch = loader.Next();
      if (!batch) break;
      const double loss = model.Step(*batch);
      if (step < tenth) first += loss / tenth;
      if (step >= steps - tenth) last += loss / tenth;
    }
    std::printf("%d steps, loss %.4f -> %.4f\n", steps, first, last);
  } catch (const penstock::Error& error) {
    std::fprintf(stderr, "train_linear: %s\n", error.what());
    return 1;
  }
  return 0;
}
