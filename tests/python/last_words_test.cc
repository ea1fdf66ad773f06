// What a worker, or the process that has started it, said before it ended is heard, though messages
// to it are left unread: the kernel then tells of the end by an error that comes first.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/python/offered_worker.h"
#include "server/python/pool_core.h"
#include "tests/python/keeper.h"
#include "tests/support/catch.h"

namespace penstock::python {
namespace {

using test::Keeper;
using test::kHangs;
using test::NewUser;
using test::OfUser;
using test::Packets;
using test::Receive;
using test::Request;

struct Offered {
  std::unique_ptr<WorkerProcess> worker;
  Request request;  // what whoever is asked for it has got
};

Offered Ask() {
  Offers offers;
  auto [ours, theirs] = Packets();
  REQUIRE(offers.Add(1, std::move(theirs), {}).ok());
  auto worker = OfferedWorker::Start(OfUser(1), "{}", *offers.Of(1).front());
  REQUIRE(worker.ok());
  return {*std::move(worker), Receive(ours.get())};
}

bool Say(int socket, const Message& message) {
  return send(socket, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message);
}

TEST_CASE("fault 64: what a worker has made is heard behind its end, with work left unread") {
  Offered offered = Ask();
  for (const uint64_t sheet : {1, 2, 3})
    REQUIRE(offered.worker->Send({.what = static_cast<uint32_t>(What::kWork), .sheet = sheet}));
  ring::Descriptor& theirs = offered.request.files[2];
  Message message;
  REQUIRE(recv(theirs.get(), &message, sizeof(message), 0) == sizeof(message));
  REQUIRE(Say(theirs.get(), {.what = static_cast<uint32_t>(What::kMade), .sheet = message.sheet}));
  theirs = ring::Descriptor();
  std::string text;
  REQUIRE(offered.worker->Receive(&message, &text) == WorkerProcess::Received::kMessage);
  CHECK(message.what == static_cast<uint32_t>(What::kMade));
  CHECK(message.sheet == 1);
  CHECK(offered.worker->Receive(&message, &text) == WorkerProcess::Received::kClosed);
  CHECK(offered.worker->Receive(&message, &text) == WorkerProcess::Received::kClosed);
}

TEST_CASE("fault 64: how a worker ended is heard from whoever has not read that it is to end") {
  Offered offered = Ask();
  offered.worker->Kill();
  constexpr char kText[] = "ended SIGSEGV";
  ring::Descriptor& control = offered.request.files[4];
  REQUIRE(send(control.get(), kText, sizeof(kText) - 1, MSG_NOSIGNAL) == sizeof(kText) - 1);
  control = ring::Descriptor();
  CHECK(offered.worker->Wait() == "SIGSEGV");
  CHECK_FALSE(offered.worker->was_withdrawn());
}

// --- a pool whose thread hears nothing for a while ----------------------------------------------

constexpr uint64_t kPoison = 37;
// Rows of one sheet each.
constexpr size_t kRowBytes = size_t{7} << 20;

// Tells of the rows' end, and then waits until it may go on.
struct HeldSink final : Completion::Sink {
  void End(absl::Status status) override {
    ended.set_value(std::move(status));
    go_on.get_future().wait();
  }
  void OnCancel(std::function<void()>) override {}
  std::promise<absl::Status> ended;
  std::promise<void> go_on;
};

// Some rows, each of whose first bytes are a number.
struct Rows {
  explicit Rows(const std::vector<uint64_t>& numbers) : bytes(numbers.size() * kRowBytes) {
    for (size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(bytes.data() + i * kRowBytes, &numbers[i], sizeof(numbers[i]));
    in = {.data = bytes.data(), .row_bytes = kRowBytes};
    rows = {.rows = static_cast<int>(numbers.size()),
            .in = {&in, 1},
            .out = {&out, 1},
            .arena = &arena};
  }
  std::vector<uint8_t> bytes;
  Column in, out;
  Arena arena;
  AwayRows rows;
};

TEST_CASE("fault 64: a row that ends two workers is that row's failure, whenever the pool hears") {
  const uid_t user = NewUser();
  std::atomic<int> made{0}, deaths{0};
  std::promise<void> first_death;
  // A worker that dies at the poison, the first time with work left unread. What it made of the row
  // in front of it has not been heard by then.
  const auto work = [&](Request request) {
    ring::Descriptor& socket = request.files[2];
    const int control = request.files[4].get();
    Say(socket.get(), {.what = static_cast<uint32_t>(What::kReady)});
    Message message;
    while (recv(socket.get(), &message, sizeof(message), 0) == sizeof(message)) {
      uint64_t number = 0;
      pread(request.files[0].get(), &number, sizeof(number),
            static_cast<off_t>((message.tray + 1) * kTrayStride));
      if (number != kPoison) {
        ++made;
        message.what = static_cast<uint32_t>(What::kMade);
        message.bytes = 64;
        pwrite(request.files[1].get(), &number, sizeof(number),
               static_cast<off_t>((message.tray + 1) * kTrayStride));
        Say(socket.get(), message);
        continue;
      }
      const bool is_first = deaths++ == 0;
      if (is_first) {
        pollfd look = {socket.get(), POLLIN, 0};
        poll(&look, 1, static_cast<int>(std::chrono::milliseconds(kHangs).count()));
      }
      const uint64_t progress[3] = {message.sheet, 1, 1};
      pwrite(request.files[1].get(), progress, sizeof(progress), 0);
      socket = ring::Descriptor();
      if (is_first) first_death.set_value();
      // Whoever ends it has read that he is to.
      char told[8];
      recv(control, told, sizeof(told), 0);
      constexpr char kText[] = "ended SIGKILL";
      send(control, kText, sizeof(kText) - 1, MSG_NOSIGNAL);
      return;
    }
  };
  Keeper keeper(user, work);
  const Signature given = {{"", {DType::kUint8, {int64_t{kRowBytes}}}}};
  const Signature number = {{"", {DType::kUint64, {}}}};
  const auto pool =
      std::make_shared<PoolCore>(OfUser(user), SheetForm(given), SheetForm(number),
                                 PoolOptions{.name = "poisoned", .configuration = "{}"});
  const auto begin = [&](Rows& rows, Completion::Sink& sink) {
    pool->Begin(&rows.rows, Completion(&sink));
  };
  // The pool learns that rows take next to no time, so that it lays several ahead.
  Rows many(std::vector<uint64_t>(20, 1));
  test::Sink warm;
  begin(many, warm);
  std::future<absl::Status> ended = warm.ended.get_future();
  REQUIRE(ended.wait_for(kHangs) == std::future_status::ready);
  REQUIRE(ended.get().ok());
  made = 0;

  Rows one({1});
  HeldSink held;
  begin(one, held);
  ended = held.ended.get_future();
  REQUIRE(ended.wait_for(kHangs) == std::future_status::ready);
  // Its thread is held there, and lays nothing and hears nothing.
  Rows rows({1, kPoison, 2});
  test::Sink sink;
  begin(rows, sink);
  REQUIRE(first_death.get_future().wait_for(kHangs) == std::future_status::ready);
  held.go_on.set_value();

  ended = sink.ended.get_future();
  REQUIRE(ended.wait_for(kHangs) == std::future_status::ready);
  const absl::Status status = ended.get();
  INFO(status.ToString());
  CHECK(status.ok());
  const absl::Status failure = rows.rows.failure.status;
  INFO(failure.ToString());
  CHECK(absl::IsDataLoss(failure));
  CHECK(absl::StrContains(failure.message(), "poisoned ended its process (SIGKILL) twice"));
  CHECK(rows.rows.failure.row == 1);
  CHECK(deaths == 2);
  CHECK(pool->Workers().deaths == 2);
  // That of the call before, and the one in front of the poison, once.
  CHECK(made == 2);
  pool->Close();
}

}  // namespace
}  // namespace penstock::python
