#include "server/python/pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "base/tick_clock.h"
#include "server/python/kept_pools.h"
#include "server/python/pool_core.h"

namespace penstock::python {
namespace {

// What a sheet is to take: far more than a wake-up (some 40 µs on a virtual machine), far less than
// what anybody waits for.
constexpr uint64_t kSheetNs = 3'000'000;
// And what it is to hold, either way. As much as that costs a wake-up on both sides as seldom as
// may be; but there are to be sheets for all workers, though a few batches are all that lie ready.
constexpr uint64_t kSheetBytes = 12 << 20;
constexpr uint64_t kSheetBytesOfAll = 2 * kSheetBytes;
constexpr uint64_t kLeastSheetBytes = 1 << 20;
// As long as nobody knows what a row takes.
constexpr uint32_t kFirstRows = 4;

// Of features of fixed size.
uint64_t RowBytesOf(const Signature& features) {
  uint64_t bytes = 1;
  for (const Feature& feature : features)
    bytes += static_cast<uint64_t>(NumBytes(feature.type).value_or(0));
  return bytes;
}

}  // namespace

Pool::Pool(FunctionFile function, SheetForm in, SheetForm out, PoolOptions options)
    : outlives_(options.outlives || (options.lends && function.file != nullptr)), core_([&] {
        const auto make = [&] {
          return std::make_shared<PoolCore>(std::move(function), std::move(in), std::move(out),
                                            std::move(options));
        };
        return outlives_ ? TakePool(PoolKey(function, options), make) : make();
      }()) {}

Pool::~Pool() {
  if (outlives_) {
    GivePoolBack(core_);
  } else {
    core_->Close();
  }
}

void Pool::Begin(AwayRows* rows, Completion end) { core_->Begin(rows, std::move(end)); }

AwayWorkers Pool::Workers() const { return core_->Workers(); }

std::vector<AwaySpan> Pool::SpansSince(uint64_t monotonic_ns) const {
  return core_->SpansSince(monotonic_ns);
}

PoolCore::PoolCore(FunctionFile function, SheetForm in, SheetForm out, PoolOptions options)
    : function_(std::move(function)),
      in_(std::move(in)),
      out_(std::move(out)),
      options_(std::move(options)),
      load_key_(LoadKey(function_, options_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      offers_(function_.file != nullptr ? nullptr
                                        : TheOffers().Listen(function_.user, [this] { Wake(); })),
      count_(options_.workers),
      wanted_(options_.chooses ? 1 : options_.workers) {}

PoolCore::~PoolCore() = default;

void PoolCore::Close() {
  {
    const Lock lock(mutex_);
    is_closed_ = true;
  }
  lent_changes_.notify_all();
  Wake();
  // Begin() has ended long since.
  if (thread_.joinable()) thread_.join();
}

bool PoolCore::Rest(uint64_t until_ns) {
  const Lock lock(mutex_);
  // Workers that are still at rows which nobody wants end them soon, or are ended.
  if (workers_.empty() || !waiting_.empty() || is_closed_ || !broken_.ok()) return false;
  rest_until_ns_ = until_ns;
  Wake();
  return true;
}

bool PoolCore::Rouse() {
  const Lock lock(mutex_);
  if (is_closed_ || !broken_.ok()) return false;
  rest_until_ns_ = 0;
  return true;
}

bool PoolCore::is_over() {
  const Lock lock(mutex_);
  return is_closed_;
}

bool PoolCore::Lends(const std::string& load_key) const {
  return options_.lends && !load_key_.empty() && load_key_ == load_key;
}

LentWorker PoolCore::Lend() {
  Lock lock(mutex_);
  if (is_closed_ || !thread_.joinable()) return {};
  is_lent_ = true;
  Wake();
  lent_changes_.wait(lock, [this] { return has_handed_over_ || is_closed_; });
  if (handed_over_.process == nullptr) return {};
  // Whoever lent it to this pool, too, is kept until it has ended.
  return {.lender = {nullptr, [core = shared_from_this(),
                               first = std::move(handed_over_.lender)](void*) { core->Close(); }},
          .process = std::move(handed_over_.process)};
}

void PoolCore::Wake() {
  const uint64_t one = 1;
  // Full means that it is awake.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

uint32_t PoolCore::RowsOfSheet(uint32_t rows) const {
  const uint64_t row_ns = row_ns_.load(std::memory_order_relaxed);
  if (row_ns == 0) return std::min(rows, kFirstRows);
  const uint64_t row_bytes = std::max(RowBytesOf(in_.features()), RowBytesOf(out_.features()));
  const uint64_t bytes = std::clamp(kSheetBytesOfAll / static_cast<uint64_t>(std::max(wanted_, 1)),
                                    kLeastSheetBytes, kSheetBytes);
  const auto most = static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min(kSheetNs / row_ns, bytes / row_bytes), 1, rows));
  // Equal ones, so that the last one is no crumb.
  const uint32_t sheets = (rows + most - 1) / most;
  return (rows + sheets - 1) / sheets;
}

void PoolCore::Begin(AwayRows* rows, Completion end) {
  auto call = std::make_shared<Call>();
  if (MemoryAccount* const account = MemoryAccount::OfThisThread())
    call->account = account->shared_from_this();
  end.OnCancel([weak = weak_from_this(), call] {
    if (const std::shared_ptr<PoolCore> core = weak.lock()) core->Cancel(call);
  });
  std::vector<std::shared_ptr<Call>> ended;
  {
    const Lock lock(mutex_);
    call->rows = rows;
    call->has_begun = true;
    call->end = std::move(end);
    if (broken_.ok() && !thread_.joinable()) {
      absl::StatusOr<std::thread> thread = NewThread("penstock-python", [this] { Run(); });
      if (thread.ok()) {
        thread_ = *std::move(thread);
      } else {
        broken_ = thread.status();
      }
    }
    if (!broken_.ok() && !call->is_over) {
      call->is_over = true;
      call->status = broken_;
    }
    const auto count = static_cast<uint32_t>(rows->rows);
    const uint32_t at_once = call->is_over ? count : RowsOfSheet(count);
    for (uint32_t first = 0; first < count && !call->is_over; first += at_once) {
      waiting_.push_back({call, first, std::min(at_once, count - first), 0, next_sheet_++});
      ++call->open;
    }
    EndIfDone(call, &ended);
  }
  Tell(std::move(ended));
  Deal(/*wakes=*/true);
}

void PoolCore::Cancel(const std::shared_ptr<Call>& call) {
  std::vector<std::shared_ptr<Call>> ended;
  {
    const Lock lock(mutex_);
    // It may have ended, or be cancelled before it begins.
    if (call->rows == nullptr && call->has_begun) return;
    call->is_over = true;
    call->status = absl::CancelledError("nobody waits for these rows");
    DropWaiting(call, 0, &ended);
    if (call->has_begun) EndIfDone(call, &ended);
  }
  Tell(std::move(ended));
  // Its workers are looked at.
  Wake();
}

void PoolCore::EndSheet(const std::shared_ptr<Call>& call,
                        std::vector<std::shared_ptr<Call>>* ended) {
  --call->open;
  EndIfDone(call, ended);
}

void PoolCore::EndIfDone(const std::shared_ptr<Call>& call,
                         std::vector<std::shared_ptr<Call>>* ended) {
  if (call->rows == nullptr || call->busy > 0 || (call->open > 0 && !call->is_over)) return;
  call->rows = nullptr;
  ended->push_back(call);
}

void PoolCore::Tell(std::vector<std::shared_ptr<Call>> ended) {
  for (const std::shared_ptr<Call>& call : ended) {
    Completion end = std::move(call->end);
    end.End(std::move(call->status));
  }
}

void PoolCore::DropWaiting(const std::shared_ptr<Call>& call, uint32_t from_row,
                           std::vector<std::shared_ptr<Call>>* ended) {
  int dropped = 0;
  for (auto sheet = waiting_.begin(); sheet != waiting_.end();) {
    if (sheet->call == call && sheet->first >= from_row) {
      sheet = waiting_.erase(sheet);
      ++dropped;
    } else {
      ++sheet;
    }
  }
  for (int i = 0; i < dropped; ++i) EndSheet(call, ended);
}

void PoolCore::FailRow(const Sheet& sheet, uint32_t row, absl::Status status,
                       std::vector<std::shared_ptr<Call>>* ended) {
  const std::shared_ptr<Call>& call = sheet.call;
  if (call->rows != nullptr) {
    RowStatus& failure = call->rows->failure;
    if (failure.ok() || failure.row > static_cast<int>(row))
      failure = {std::move(status), static_cast<int>(row)};
    DropWaiting(call, row + 1, ended);
  }
}

void PoolCore::Break(absl::Status status, std::vector<std::shared_ptr<Call>>* ended) {
  broken_ = std::move(status);
  const auto end = [&](const std::shared_ptr<Call>& call) {
    if (call->rows == nullptr) return;
    call->is_over = true;
    call->status = broken_;
    EndIfDone(call, ended);
  };
  for (const Sheet& sheet : std::exchange(waiting_, {})) {
    --sheet.call->open;
    end(sheet.call);
  }
  for (const std::shared_ptr<Worker>& worker : workers_) {
    for (const Tray& tray : worker->trays)
      if (tray.is_taken && tray.sheet.call != nullptr) end(tray.sheet.call);
    worker->is_leaving = true;
    worker->process->Kill();
  }
}

}  // namespace penstock::python
