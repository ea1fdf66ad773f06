#include "server/engine/order/away_work_op.h"

#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "server/engine/tasks/all_ended.h"

namespace penstock {

RowStatus AwayWorkOp::Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                          Arena& arena) const {
  absl::InlinedVector<Column, 8> made(out.size());
  AwayRows call{.rows = rows, .in = in, .out = absl::MakeSpan(made), .arena = &arena};
  const std::string where = place();
  absl::Status status;
  {
    const PendingCall waiting(doing(), where, 0, CallKind::kWork);
    AllEnded ended;
    Begin(&call, ended.One());
    status = ended.Wait();
  }
  CheckStop();
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
