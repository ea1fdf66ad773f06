#include "server/engine/order/away_work_op.h"

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/pending_call.h"

namespace penstock {
namespace {

// Who waits for one end.
class Waiter final : public Completion::Sink {
 public:
  void End(absl::Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    over_ = true;
    ended_.notify_all();
  }
  // Who waits does so to the end.
  void OnCancel(std::function<void()>) override {}

  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return over_; });
    return std::move(status_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;  // under mutex_, as that below
  absl::Status status_;
};

}  // namespace

RowStatus AwayWorkOp::Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                          Arena& arena) const {
  absl::InlinedVector<Column, 8> made(out.size());
  AwayRows call{.rows = rows, .in = in, .out = absl::MakeSpan(made), .arena = &arena};
  const std::string where = place();
  absl::Status status;
  {
    const PendingCall waiting(doing(), where, 0, CallKind::kWork);
    Waiter waiter;
    Begin(&call, Completion(&waiter));
    status = waiter.Wait();
  }
  if (!status.ok()) return {std::move(status), 0};
  const auto count = static_cast<size_t>(call.failure.ok() ? rows : call.failure.row);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].data == nullptr) {
      out[i] = made[i];
      continue;
    }
    // Where it is to be written, all rows are of one size.
    out[i].row_bytes = count == 0 ? 0 : made[i].row_size(0);
    for (size_t row = 0; row < count; ++row)
      std::memcpy(out[i].data + row * out[i].row_bytes, made[i].row(row), out[i].row_bytes);
  }
  return std::move(call.failure);
}

}  // namespace penstock
