// Workers that another user's process starts: who is asked for them, and what comes of it where
// that process refuses, ends or says nothing.
#include "server/python/offers.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/python/keeper.h"
#include "tests/python/shell_worker.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::python {
namespace {

using penstock::test::ScratchFolder;
using test::Keeper;
using test::kHangs;
using test::NewPool;
using test::NewUser;
using test::OfUser;
using test::Packets;
using test::Receive;
using test::Request;
using test::Runs;
using test::ShellFunction;
using test::Sink;
using test::Use;

TEST_CASE("An offer is a socket of packets, of a user whom the kernel can name") {
  Offers offers;
  CHECK(absl::IsInvalidArgument(offers.Add(1, {}, {})));
  CHECK(absl::IsInvalidArgument(offers.Add(1, Packets(SOCK_STREAM).first, {})));
  CHECK(absl::IsPermissionDenied(offers.Add(kUnnamedUser, Packets().first, {})));
  CHECK(offers.Of(1).empty());
  auto [ours, theirs] = Packets();
  CHECK(offers.Add(1, std::move(theirs), {}).ok());
  CHECK(offers.Of(1).size() == 1);
  CHECK(offers.Of(2).empty());
  ours = ring::Descriptor();
  CHECK(offers.Of(1).empty());
}

TEST_CASE("One user's offers are limited, and do not take others' places") {
  Offers offers;
  std::vector<ring::Descriptor> kept;
  for (size_t i = 0; i < kMaxOffersOfUser; ++i) {
    auto [ours, theirs] = Packets();
    kept.push_back(std::move(ours));
    REQUIRE(offers.Add(1, std::move(theirs), {}).ok());
  }
  auto [mine, another] = Packets();
  CHECK(absl::IsResourceExhausted(offers.Add(1, std::move(another), {})));
  auto [yours, last] = Packets();
  CHECK(offers.Add(2, std::move(last), {}).ok());
  // Who has gone makes room.
  kept.pop_back();
  auto [again, place] = Packets();
  CHECK(offers.Add(1, std::move(place), {}).ok());
}

TEST_CASE("Who takes no request holds few descriptors, and is asked again when he does") {
  Offers offers;
  auto [ours, theirs] = Packets();
  REQUIRE(offers.Add(1, std::move(theirs), {}).ok());
  const auto offer = offers.Of(1).front();
  const ring::Descriptor file(memfd_create("some", MFD_CLOEXEC));
  const int files[] = {file.get()};
  int asked = 0;
  while (asked < 1000 && offer->Ask("{}", files)) ++asked;
  CHECK(asked >= 16);
  CHECK(asked < 200);
  for (int i = 0; i < asked; ++i) CHECK(Receive(ours.get()).files.size() == 1);
  CHECK(offer->Ask("{}", files));
}

TEST_CASE("Who listens is told of his user's offers alone, until he stops") {
  Offers offers;
  int told = 0;
  auto listens = offers.Listen(1, [&] { ++told; });
  auto [first, one] = Packets();
  REQUIRE(offers.Add(2, std::move(one), {}).ok());
  CHECK(told == 0);
  auto [second, two] = Packets();
  REQUIRE(offers.Add(1, std::move(two), {}).ok());
  CHECK(told == 1);
  listens = nullptr;
  auto [third, three] = Packets();
  REQUIRE(offers.Add(1, std::move(three), {}).ok());
  CHECK(told == 1);
}

TEST_CASE("Rows of another user's function are made by workers that a process of his starts") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper stranger(NewUser(), [](Request) {});
  Keeper keeper(user, Runs(ShellFunction(folder)));
  const auto pool = NewPool(OfUser(user));
  CHECK(Use(*pool).ok());
  CHECK(keeper.asked() == 1);
  CHECK(keeper.last() == R"({"path":"/proc/1/fd/1","code":"abc","configuration_bytes":2})");
  CHECK(stranger.asked() == 0);
  const AwayWorkers workers = pool->Workers();
  CHECK(workers.user == user);
  CHECK(workers.offers == 1);
  CHECK_FALSE(workers.is_unoffered);
  CHECK(workers.started == 1);
  CHECK(workers.rows == 3);
  pool->Close();
}

TEST_CASE(
    "fault 64: rows wait while nobody offers workers, and say so, and go on with the first offer") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  const auto pool = NewPool(OfUser(user));
  std::future<absl::Status> used = std::async(std::launch::async, [&] { return Use(*pool); });
  while (!pool->Workers().is_unoffered) std::this_thread::yield();
  CHECK(pool->Workers().offers == 0);
  CHECK(pool->Workers().workers == 0);
  Keeper keeper(user, Runs(ShellFunction(folder)));
  REQUIRE(used.wait_for(kHangs) == std::future_status::ready);
  CHECK(used.get().ok());
  CHECK_FALSE(pool->Workers().is_unoffered);
  pool->Close();
}

TEST_CASE("fault 64: rows that wait for an offer end with whoever wants them") {
  const auto pool = NewPool(OfUser(NewUser()));
  uint64_t number = 1;
  const Column in = {.data = reinterpret_cast<uint8_t*>(&number), .row_bytes = 8};
  Column out;
  Arena arena;
  AwayRows rows = {.rows = 1, .in = {&in, 1}, .out = {&out, 1}, .arena = &arena};
  struct Cancels final : Completion::Sink {
    void End(absl::Status status) override { ended.set_value(std::move(status)); }
    void OnCancel(std::function<void()> call) override { cancel = std::move(call); }
    std::promise<absl::Status> ended;
    std::function<void()> cancel;
  } sink;
  std::future<absl::Status> ended = sink.ended.get_future();
  pool->Begin(&rows, Completion(&sink));
  sink.cancel();
  REQUIRE(ended.wait_for(kHangs) == std::future_status::ready);
  CHECK(absl::IsCancelled(ended.get()));
  pool->Close();
}

TEST_CASE("fault 64: an offer that refuses is no death, and another one is asked") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder)));
  // The newest is asked first.
  Keeper refuses(user, [](Request request) {
    constexpr char kText[] = "refused this process has no such function";
    send(request.files[4].get(), kText, sizeof(kText) - 1, MSG_NOSIGNAL);
  });
  const auto pool = NewPool(OfUser(user));
  CHECK(Use(*pool).ok());
  CHECK(refuses.asked() == 1);
  CHECK(keeper.asked() == 1);
  CHECK(pool->Workers().deaths == 0);
  CHECK(pool->Workers().started == 1);
  pool->Close();
}

TEST_CASE("fault 64: what answers nonsense, or hangs up, is given up for another offer") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder)));
  Keeper hangs_up(user, [](Request) {});
  Keeper babbles(user, [](Request request) {
    const std::string text(400, '\xff');
    send(request.files[4].get(), text.data(), text.size(), MSG_NOSIGNAL);
    pollfd look = {request.files[4].get(), POLLIN, 0};
    poll(&look, 1, -1);
  });
  const auto pool = NewPool(OfUser(user));
  CHECK(Use(*pool).ok());
  CHECK(babbles.asked() == 1);
  CHECK(hangs_up.asked() == 1);
  CHECK(pool->Workers().deaths == 0);
  pool->Close();
}

TEST_CASE("fault 64: the end of a process takes its workers along, and is no row's failure") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder)));
  const auto dies = std::make_unique<Keeper>(user, [](Request request) {
    // It has a worker that is ready, and then neither of them is there any more.
    Message ready = {.what = static_cast<uint32_t>(What::kReady)};
    send(request.files[2].get(), &ready, sizeof(ready), MSG_NOSIGNAL);
    char work[sizeof(Message)];
    recv(request.files[2].get(), work, sizeof(work), 0);
  });
  const auto pool = NewPool(OfUser(user));
  CHECK(Use(*pool).ok());
  CHECK(dies->asked() == 1);
  CHECK(pool->Workers().deaths == 0);
  pool->Close();
}

TEST_CASE(
    "fault 64: how an offered worker ended is told by the process that started it, and a function "
    "whose workers all end is given up") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder, "kill -11 $$")));
  const auto pool = NewPool(OfUser(user));
  const absl::Status status = Use(*pool, 1);
  INFO(status.ToString());
  // The shell tells nothing of the row that it is at.
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(absl::StrContains(status.message(), "ended its process (SIGSEGV)"));
  CHECK(pool->Workers().deaths > 2);
  pool->Close();
}

TEST_CASE("fault 64: a worker that claims rows that no sheet has is ended, and nothing is copied") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder)));
  // The newest is asked first. Each one claims another number of rows.
  std::vector<std::unique_ptr<Keeper>> forgers;
  for (const uint64_t claimed : {UINT64_MAX, UINT64_MAX - 1, uint64_t{UINT32_MAX}, uint64_t{3}}) {
    forgers.push_back(std::make_unique<Keeper>(user, [claimed](Request request) {
      Message message = {.what = static_cast<uint32_t>(What::kReady)};
      send(request.files[2].get(), &message, sizeof(message), MSG_NOSIGNAL);
      recv(request.files[2].get(), &message, sizeof(message), 0);
      message.what = static_cast<uint32_t>(What::kFailed);
      message.rows = claimed;
      send(request.files[2].get(), &message, sizeof(message), MSG_NOSIGNAL);
      // It is told to end.
      pollfd look = {request.files[4].get(), POLLIN, 0};
      poll(&look, 1, -1);
    }));
  }
  const auto pool = NewPool(OfUser(user));
  const absl::Status status = Use(*pool);
  INFO(status.ToString());
  CHECK(status.ok());
  for (const auto& forger : forgers) CHECK(forger->asked() >= 1);
  pool->Close();
}

TEST_CASE("fault 64: nobody who looks waits for a process that says nothing of a worker's end") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  Keeper keeper(user, Runs(ShellFunction(folder)));
  std::promise<void> over;
  std::shared_future<void> ends = over.get_future().share();
  // The newest is asked first.
  Keeper silent(user, [ends](Request request) {
    Message message = {.what = static_cast<uint32_t>(What::kReady)};
    send(request.files[2].get(), &message, sizeof(message), MSG_NOSIGNAL);
    recv(request.files[2].get(), &message, sizeof(message), 0);
    request.files[2] = ring::Descriptor();
    ends.wait();
  });
  const auto pool = NewPool(OfUser(user));
  std::future<absl::Status> used = std::async(std::launch::async, [&] { return Use(*pool); });
  AwayWorkers seen;
  do {
    std::this_thread::yield();
    seen = pool->Workers();
  } while (seen.deaths == 0 && (seen.started == 0 || seen.workers > 0));
  // The pool's thread still waits for a word about it.
  CHECK(seen.deaths == 0);
  over.set_value();
  REQUIRE(used.wait_for(kHangs) == std::future_status::ready);
  CHECK(used.get().ok());
  pool->Close();
}

TEST_CASE("fault 64: nobody waits for a process that ends no worker as it is told") {
  const ScratchFolder folder;
  const uid_t user = NewUser();
  std::promise<void> over;
  std::shared_future<void> ends = over.get_future().share();
  Keeper keeper(user, [ends](Request request) {
    Message ready = {.what = static_cast<uint32_t>(What::kReady)};
    send(request.files[2].get(), &ready, sizeof(ready), MSG_NOSIGNAL);
    // It says that it is at the row, and is told to end.
    Message work;
    recv(request.files[2].get(), &work, sizeof(work), 0);
    const uint64_t progress[3] = {work.sheet, 1, 1};
    pwrite(request.files[1].get(), progress, sizeof(progress), 0);
    ends.wait();
  });
  const auto pool = NewPool(OfUser(user), {.timeout_ms = 50});
  const absl::Status status = Use(*pool, 1);
  INFO(status.ToString());
  CHECK(absl::IsDataLoss(status));
  CHECK(status.message().find("took longer than timeout_ms (50) twice") != std::string::npos);
  over.set_value();
  pool->Close();
}

}  // namespace
}  // namespace penstock::python
