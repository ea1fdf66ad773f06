// Who comes back after a restart of the daemon, and who comes besides.

#include "server/service/attach/sessions.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "ring/reader.h"
#include "server/engine/plan/cursor.h"
#include "server/expr/function.h"
#include "server/service/state/split_file.h"
#include "server/service/state/text_proto.h"
#include "tests/service/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

using test::Running;
using test::Trainer;

constexpr uint64_t kHangsNs = 60'000'000'000;
constexpr uint64_t kKnown = 5;  // an identity

// Workers that compute a zero are held in it, from Arm() until Free().
class Gate {
 public:
  void Pass(int64_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (number != 0 || !is_armed_) return;
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_armed_; });
  }
  void Arm() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_armed_ = true;
    held_ = 0;
  }
  void Free() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_armed_ = false;
    changed_.notify_all();
  }
  bool WaitForOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(kHangsNs),
                             [this] { return held_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_armed_ = false;  // under mutex_
  int held_ = 0;           // under mutex_
};
Gate gate;

class PassGate : public expr::RowKernel {
 public:
  absl::Status Run(absl::Span<const expr::RowValue> arguments, Arena&,
                   expr::RowOutput& out) const override {
    int64_t number;
    std::memcpy(&number, arguments[0].data, sizeof(number));
    gate.Pass(number);
    std::memcpy(out.Reserve(sizeof(number)), &number, sizeof(number));
    out.Commit();
    return absl::OkStatus();
  }
};

const expr::RowFunctionRegistration kPassGate({
    .name = "pass_gate",
    .signature = "pass_gate(number)",
    .doc = "",
    .bind =
        [](absl::Span<const expr::Argument> arguments) -> absl::StatusOr<expr::BoundRowFunction> {
      expr::BoundRowFunction bound;
      bound.type = arguments[0].type;
      bound.kernel = std::make_shared<PassGate>();
      bound.tensor_arguments = {0};
      return bound;
    },
});

v1::PipelineSpec Counter(const test::ScratchFolder& folder, const std::string& more = "") {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'counter' stage { tfrecord { files: '" + (folder / "n.tfrecord") +
                             "' } } stage { parse_example { feature { key: 'n' int64 {} } } } " +
                             more + " stage { batch { batch_size: 4 } } stage { repeat {} }",
                         "spec", &spec)
              .ok());
  return spec;
}

// What a daemon has while nothing listens at its socket.
class Daemon {
 public:
  explicit Daemon(const test::ScratchFolder& folder)
      : journal_(*StateFolder::Open(folder / "state")),
        table_(LocalFileSystem(), OneWorker(), &journal_) {}

  PipelineJournal& journal() { return journal_; }
  PipelineTable& table() { return table_; }
  // The pipeline of an earlier daemon.
  std::shared_ptr<Pipeline> Restored() {
    const std::vector<std::string> names = table_.ExpectKept();
    REQUIRE(names.size() == 1);
    auto pipeline = table_.BringBack(names[0]);
    REQUIRE(pipeline.ok());
    return *std::move(pipeline);
  }

 private:
  static v1::WorkerDefaults OneWorker() {
    v1::WorkerDefaults defaults;
    defaults.set_workers(1);
    return defaults;
  }

  PipelineJournal journal_;
  PipelineTable table_;
};

// A daemon that has come back: the one before was killed while a trainer was attached to its
// pipeline, and that one is waited for.
class Returned {
 public:
  // `is_back`: its pipeline is there already.
  explicit Returned(absl::Duration rejoin = absl::Hours(1),
                    std::unique_ptr<TaskPool> pool = nullptr, bool is_back = true,
                    uint64_t known = kKnown)
      : daemon_(LeaveBehind(folder_, known)),
        loop_(*EventLoop::Create()),
        sessions_(*loop_, daemon_.table(), 16, &daemon_.journal(), rejoin, std::move(pool)) {
    if (is_back) sessions_.Expect(daemon_.Restored());
  }
  const test::ScratchFolder& folder() const { return folder_; }
  PipelineTable& table() { return daemon_.table(); }
  EventLoop& loop() { return *loop_; }
  Sessions& sessions() { return sessions_; }

 private:
  static const test::ScratchFolder& LeaveBehind(const test::ScratchFolder& folder, uint64_t known) {
    test::WriteShard(folder / "n.tfrecord", 0, 40);
    Daemon daemon(folder);
    REQUIRE(daemon.table().Create(Counter(folder)).ok());
    daemon.journal().PutConsumers("counter", {{known, getpid()}});
    return folder;
  }

  const test::ScratchFolder folder_;
  Daemon daemon_;
  const std::unique_ptr<EventLoop> loop_;
  Sessions sessions_;
};

TEST_CASE("fault 49: a pipeline that has begun again begins no second time, whoever comes") {
  Returned daemon;
  Trainer known(daemon.sessions(), kKnown);
  // Nobody is missing any more, but it has not begun yet. One of these has no identity.
  Trainer stranger(daemon.sessions(), 0), other(daemon.sessions(), kKnown + 1);
  const Running running(daemon.loop());
  for (Trainer* trainer : {&known, &stranger, &other}) trainer->Enter();
  for (int step = 0; step < 30; ++step) {
    for (Trainer* trainer : {&known, &stranger, &other}) trainer->TakeStep();
  }
}

TEST_CASE("a pipeline waits for whom it knows, and for no others that have no identity") {
  Returned daemon;
  Trainer stranger(daemon.sessions(), 0);
  CHECK(daemon.table().List()[0]->Stats().steps() == 0);
  Trainer known(daemon.sessions(), kKnown);
  const Running running(daemon.loop());
  stranger.Enter();
  known.Enter();
}

TEST_CASE("who is there before its pipeline is not waited for") {
  Returned daemon(absl::Hours(1), nullptr, /*is_back=*/false);
  REQUIRE(daemon.table().ExpectKept() == std::vector<std::string>{"counter"});
  daemon.sessions().ExpectLater("counter");
  Trainer known(daemon.sessions(), kKnown);
  daemon.sessions().Expect(*daemon.table().BringBack("counter"));
  const Running running(daemon.loop());
  known.Enter();
  known.TakeStep();
}

TEST_CASE("nobody is waited for who has no identity, whatever was written down") {
  Returned daemon(absl::Hours(1), nullptr, /*is_back=*/true, /*known=*/0);
  Trainer stranger(daemon.sessions(), kKnown);
  const Running running(daemon.loop());
  stranger.Enter();
  stranger.TakeStep();
}

TEST_CASE("another pipeline of the name of one that was waited for has nothing to do with it") {
  Returned daemon(absl::ZeroDuration());
  REQUIRE(daemon.table().Delete("counter").ok());
  REQUIRE(daemon.table().Create(Counter(daemon.folder())).ok());
  Trainer trainer(daemon.sessions(), kKnown + 1);
  const Running running(daemon.loop());
  trainer.Enter();
  for (int step = 0; step < 30; ++step) trainer.TakeStep();
}

TEST_CASE("where no pipeline rests the loop is hardly woken") {
  Returned daemon;
  int looks = 0;
  daemon.sessions().RestAfter([&looks] {
    ++looks;
    return absl::ZeroDuration();
  });
  daemon.loop().StartTimer(absl::Milliseconds(200), [&daemon] { daemon.loop().Stop(); });
  daemon.loop().Run();
  // The one at once, and on a slow machine another one.
  CHECK(looks <= 2);
}

TEST_CASE("a pipeline that finds no room for its beginning begins when there is some") {
  auto pool = std::make_unique<TaskPool>(1);
  std::promise<void> begun, freed;
  const std::shared_future<void> free = freed.get_future().share();
  REQUIRE(pool->Run([&begun, free] {
    begun.set_value();
    free.wait();
  }));
  begun.get_future().wait();
  while (pool->Run([] {})) {
  }
  Returned daemon(absl::Hours(1), std::move(pool));
  Trainer known(daemon.sessions(), kKnown);
  // By then it has been looked for room.
  daemon.loop().StartTimer(absl::Milliseconds(200), [&freed] { freed.set_value(); });
  const Running running(daemon.loop());
  known.Enter();
  known.TakeStep();
}

TEST_CASE("one who was behind and leaves while its batch is being made holds up nobody else") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 400);
  Daemon daemon(folder);
  REQUIRE(daemon.table().Create(Counter(folder, "stage { map { out: 'n = pass_gate(n)' } }")).ok());
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, daemon.table(), 16);
  Trainer first(sessions, 1);
  const Running running(*loop);
  first.Enter();
  for (int step = 0; step < 20; ++step) first.TakeStep();
  gate.Arm();
  const absl::Cleanup free = [] { gate.Free(); };
  // On the loop's thread; false when that does not get on.
  const auto on_loop = [&loop](std::function<void()> what) {
    auto done = std::make_shared<std::promise<void>>();
    loop->Post([done, what = std::move(what)] {
      what();
      done->set_value();
    });
    return done->get_future().wait_for(std::chrono::nanoseconds(kHangsNs)) ==
           std::future_status::ready;
  };
  std::unique_ptr<Trainer> behind;
  REQUIRE(on_loop([&] {
    behind = std::make_unique<Trainer>(sessions, 2, ring::ConsumerPosition{0, "", {}, {}});
  }));
  behind->Enter();
  REQUIRE(gate.WaitForOne());
  behind->Die();
  auto left = std::make_shared<size_t>(2);
  while (*left == 2) REQUIRE(on_loop([&sessions, left] { *left = sessions.size(); }));
  first.TakeStep();
}

TEST_CASE("fault 49: what a worker of a split group holds is still its own when the daemon stops") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  {
    Daemon daemon(folder);
    REQUIRE(daemon.table().Create(Counter(folder)).ok());
    const auto loop = *EventLoop::Create();
    auto sessions = std::make_unique<Sessions>(*loop, daemon.table(), 16, &daemon.journal());
    Trainer worker(*sessions, kKnown, {}, "counter", ring::GroupMode::kSplit);
    {
      const Running running(*loop);
      ring::Lease held;
      REQUIRE(worker.Enter().Next(kHangsNs, &held) == ring::Reader::Result::kBatch);
    }
    daemon.table().Close(absl::UnavailableError("penstockd was stopped"));
    sessions.reset();
  }
  const auto state = StateFolder::Open(folder / "state");
  const auto groups = SplitFiles(**state, "counter").Load();
  REQUIRE(groups.count("default") == 1);
  const std::vector<ring::SplitEntry>& steps = groups.at("default").entries;
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].step == 0);
  CHECK(steps[0].identity == kKnown);
  CHECK_FALSE(steps[0].redelivered);
}

TEST_CASE("who waits for the end of a split group hears of it though its pipeline was deleted") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 4);
  Daemon daemon(folder);
  v1::PipelineSpec spec = Counter(folder);
  spec.mutable_stage()->RemoveLast();
  const auto pipeline = *daemon.table().Create(spec);
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, daemon.table(), 16);
  Trainer first(sessions, 1, {}, "counter", ring::GroupMode::kSplit);
  Trainer second(sessions, 2, {}, "counter", ring::GroupMode::kSplit);
  const Running running(*loop);
  ring::Reader& holder = first.Enter();
  ring::Reader& waits = second.Enter();
  ring::Lease held, none;
  REQUIRE(holder.Next(kHangsNs, &held) == ring::Reader::Result::kBatch);
  while (pipeline->Stats().state() != v1::PIPELINE_STATE_FINISHED) std::this_thread::yield();
  REQUIRE(waits.Next(0, &none) == ring::Reader::Result::kTimeout);
  REQUIRE(daemon.table().Delete("counter").ok());
  holder.Release(held);
  CHECK(waits.Next(kHangsNs, &none) == ring::Reader::Result::kEnd);
}

// Somebody of this user, for this group of "counter"; its end.
ring::Descriptor Asks(Sessions& sessions, uid_t user, const std::string& group,
                      uint64_t identity = 0, const ring::ConsumerPosition& position = {}) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  Visitor visitor;
  visitor.socket = ring::Descriptor(ends[1]);
  visitor.pid = getpid();
  visitor.who.uid = user;
  ring::ParsedRequest request;
  request.pipeline = "counter";
  request.consumer.group = group;
  request.consumer.identity = identity;
  request.position = position;
  sessions.Attach(std::move(visitor), request, /*may_send_away=*/true);
  return ring::Descriptor(ends[0]);
}

// What it is told; its descriptors are closed.
ring::Status Answer(ring::Descriptor visitor, ring::Descriptor* stays = nullptr) {
  ring::Attachment attachment;
  bool done = false;
  const ring::Status status = ring::FinishAttach("", visitor.get(), kHangsNs, &attachment, &done);
  if (!status.ok()) return status;
  REQUIRE(done);
  for (const int fd : {attachment.segment_fd, attachment.control_fd, attachment.bell_fd}) close(fd);
  if (stays != nullptr) *stays = std::move(visitor);
  return status;
}

TEST_CASE("a group whose name is not UTF-8 is refused") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  Daemon daemon(folder);
  REQUIRE(daemon.table().Create(Counter(folder)).ok());
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, daemon.table(), 16);
  const ring::Status refused = Answer(Asks(sessions, getuid(), "caf\xe9"));
  CHECK(refused.code == ring::Code::kInvalidArgument);
  CHECK(sessions.size() == 0);
}

TEST_CASE("who was refused is not waited for after a restart, and keeps no place") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  Daemon daemon(folder);
  REQUIRE(daemon.table().Create(Counter(folder)).ok());
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, daemon.table(), /*max_consumers=*/16, &daemon.journal());
  constexpr uid_t kOne = 1, kOther = 2;
  std::vector<ring::Descriptor> stay;
  const Running running(*loop);
  // What so many of a user's are told, who all come at once.
  const auto answers = [&](uid_t user, int count, const ring::ConsumerPosition& position) {
    std::promise<std::vector<ring::Descriptor>> asked;
    loop->Post([&] {
      std::vector<ring::Descriptor> visitors;
      for (int i = 0; i < count; ++i)
        visitors.push_back(Asks(sessions, user, "g", user == kOne ? kKnown : 0, position));
      asked.set_value(std::move(visitors));
    });
    std::set<ring::Code> codes;
    for (ring::Descriptor& visitor : asked.get_future().get())
      codes.insert(Answer(std::move(visitor), &stay.emplace_back()).code);
    return codes;
  };
  using Codes = std::set<ring::Code>;
  CHECK(answers(kOne, 2, {1000, "", {}, {}}) == Codes{ring::Code::kOutOfRange});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kHangsNs);
  while (!daemon.journal().LoadConsumers("counter").empty() &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(daemon.journal().LoadConsumers("counter").empty());
  CHECK(answers(kOther, 14, {}) == Codes{ring::Code::kOk});
  // The last places are for those who have few.
  CHECK(answers(kOne, 1, {}) == Codes{ring::Code::kOk});
}

TEST_CASE("who is sent away and goes at once is told as sent away first") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  Daemon daemon(folder);
  const auto pipeline = *daemon.table().Create(Counter(folder));
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, daemon.table(), 16);
  const auto listener = daemon.table().events().Listen(0, [](const std::string&) { return true; });
  Trainer trainer(sessions, 1);
  const Running running(*loop);
  trainer.Enter();
  // Before anybody looks who was sent away.
  loop->Post([&] {
    CHECK(pipeline->DetachConsumer(1, 0).ok());
    trainer.Die();
  });
  std::vector<v1::EventKind> kinds;
  while (kinds.empty() || kinds.back() != v1::EVENT_KIND_LEFT) {
    v1::WatchEventsResponse heard;
    REQUIRE(listener->Take(absl::Nanoseconds(kHangsNs), &heard));
    REQUIRE(heard.events_size() > 0);
    for (const v1::Event& event : heard.events()) kinds.push_back(event.kind());
  }
  REQUIRE(kinds.size() >= 2);
  CHECK(kinds[kinds.size() - 2] == v1::EVENT_KIND_EVICTED);
}

// Where the stream begins that these consumers come back to.
uint64_t BeginsAt(Pipeline& pipeline, const std::vector<ring::ConsumerPosition>& positions) {
  std::vector<Newcomer> newcomers(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    newcomers[i].spec.group = "default";
    newcomers[i].spec.identity = i + 1;
    newcomers[i].position = positions[i];
  }
  const auto attached = pipeline.StartAgain(newcomers);
  for (size_t i = 0; i < positions.size(); ++i) {
    INFO(attached[i].status().ToString());
    REQUIRE(attached[i].ok());
    CHECK(attached[i]->handle.start_step == positions[i].step);
  }
  // It is paused: nothing has been made.
  return attached[0]->stream->writer().published();
}

TEST_CASE("a pipeline begins again where its consumers are, though not all of them have cursors") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  std::string cursor;
  {
    Daemon daemon(folder);
    const auto pipeline = *daemon.table().Create(Counter(folder));
    Newcomer newcomer;
    newcomer.spec.group = "default";
    const auto attached = pipeline->Attach(newcomer);
    REQUIRE(attached.ok());
    const ring::Writer& writer = attached->stream->writer();
    while (writer.published() < 3) std::this_thread::yield();
    cursor = writer.Cursor(3);
    REQUIRE_FALSE(cursor.empty());
    REQUIRE(pipeline->Pause(true).ok());
  }
  const ring::ConsumerPosition with = {3, cursor, {}, {}}, without = {3, "", {}, {}};
  {
    Daemon daemon(folder);
    CHECK(BeginsAt(*daemon.Restored(), {with, without}) == 3);
  }
  {
    Daemon daemon(folder);
    CHECK(BeginsAt(*daemon.Restored(), {without, with}) == 3);
  }
  {
    // Further on: from there nothing can be made.
    Daemon daemon(folder);
    CHECK(BeginsAt(*daemon.Restored(), {{5, "", {}, {}}, with}) == 3);
  }
  {
    // The nearest that is known is where it began at all.
    Daemon daemon(folder);
    CHECK(BeginsAt(*daemon.Restored(), {{5, "", {}, {}}}) == 0);
    REQUIRE(daemon.table().Delete("counter").ok());
    const auto pipeline = daemon.table().Create(Counter(folder), cursor);
    REQUIRE(pipeline.ok());
    REQUIRE((*pipeline)->Pause(true).ok());
  }
  Daemon daemon(folder);
  CHECK(BeginsAt(*daemon.Restored(), {{5, "", {}, {}}}) == 3);
}

// A cursor of the pipeline's own stream whose position is none.
std::string WrongCursor(Daemon& daemon, const test::ScratchFolder& folder, uint64_t step) {
  const auto checked = daemon.table().Check(Counter(folder));
  REQUIRE(checked.ok());
  const Position position({7, 7, 7, 7, 7, 7, 7, 7, 7});
  return *CursorMaker(*FingerprintOf(*checked->plan)).Make(step, position);
}

TEST_CASE("promise 3: a position that nothing can be made from is the matter of who came with it") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  std::string wrong, cursor;
  {
    Daemon daemon(folder);
    const auto pipeline = *daemon.table().Create(Counter(folder));
    wrong = WrongCursor(daemon, folder, 1000);
    Newcomer stranger;
    stranger.spec.group = "default";
    stranger.position = {1000, wrong, {}, {}};
    CHECK(pipeline->Attach(stranger).status().code() == absl::StatusCode::kInvalidArgument);
    Newcomer honest;
    honest.spec.group = "default";
    const auto attached = pipeline->Attach(honest);
    INFO(attached.status().ToString());
    REQUIRE(attached.ok());
    CHECK(attached->handle.start_step == 0);
    const ring::Writer& writer = attached->stream->writer();
    while (writer.published() < 3) std::this_thread::yield();
    cursor = writer.Cursor(3);
    REQUIRE(pipeline->Pause(true).ok());
  }
  Daemon daemon(folder);
  std::vector<Newcomer> newcomers(2);
  for (size_t i = 0; i < newcomers.size(); ++i) {
    newcomers[i].spec.group = "default";
    newcomers[i].spec.identity = i + 1;
  }
  newcomers[0].position = {2, WrongCursor(daemon, folder, 2), {}, {}};
  newcomers[1].position = {3, cursor, {}, {}};
  const auto attached = daemon.Restored()->StartAgain(newcomers);
  CHECK(attached[0].status().code() == absl::StatusCode::kInvalidArgument);
  INFO(attached[1].status().ToString());
  REQUIRE(attached[1].ok());
  CHECK(attached[1]->handle.start_step == 3);
}

constexpr uint64_t kRejoinNs = 1'000'000'000;

// Of two.
Newcomer Rank(uint32_t rank) {
  Newcomer newcomer;
  newcomer.spec.group = "ranks";
  newcomer.spec.mode = ring::GroupMode::kRank;
  newcomer.spec.rank = rank;
  newcomer.spec.world_size = 2;
  newcomer.spec.identity = rank + 1;
  return newcomer;
}

TEST_CASE("a rank group that was never complete waits for its ranks over a restart too") {
  for (const uint32_t ranks : {1, 2}) {
    INFO("ranks that were there: " << ranks);
    const test::ScratchFolder folder;
    test::WriteShard(folder / "n.tfrecord", 0, 40);
    {
      Daemon daemon(folder);
      const auto pipeline = *daemon.table().Create(Counter(folder));
      for (uint32_t number = 0; number < ranks; ++number)
        REQUIRE(pipeline->Attach(Rank(number)).ok());
    }
    Daemon daemon(folder);
    const auto pipeline = daemon.Restored();
    const auto attached = pipeline->StartAgain({Rank(0)});
    REQUIRE(attached[0].ok());
    pipeline->Tick(kRejoinNs, kRejoinNs);
    pipeline->Tick(3 * kRejoinNs, kRejoinNs);
    CHECK(attached[0]->stream->writer().Consumers()[0].detached == (ranks == 2));
  }
}

// A pipeline that begins at step 3: who asks for an earlier one is served by itself.
std::shared_ptr<Pipeline> CreateBehind(Daemon& daemon, const test::ScratchFolder& folder) {
  std::string cursor;
  {
    const auto pipeline = *daemon.table().Create(Counter(folder));
    const auto attached = pipeline->Attach(Newcomer());
    REQUIRE(attached.ok());
    while (attached->stream->writer().published() < 3) std::this_thread::yield();
    cursor = attached->stream->writer().Cursor(3);
    REQUIRE(daemon.table().Delete("counter").ok());
  }
  return *daemon.table().Create(Counter(folder), cursor);
}

TEST_CASE("those who catch up and have gone leave their places at once") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  Daemon daemon(folder);
  const auto pipeline = CreateBehind(daemon, folder);
  const auto first = pipeline->Attach(Newcomer());
  REQUIRE(first.ok());
  Newcomer behind;
  behind.position.step = 0;
  // Their streams end later.
  std::vector<Attached> gone, living;
  for (int i = 0; i < 10; ++i) {
    const auto attached = pipeline->Attach(behind);
    REQUIRE(attached.ok());
    REQUIRE(attached->is_replay);
    attached->stream->writer().Detach(attached->handle.id);
    gone.push_back(*attached);
  }
  absl::StatusOr<Attached> attached = pipeline->Attach(behind);
  for (; attached.ok(); attached = pipeline->Attach(behind)) living.push_back(*attached);
  CHECK(living.size() == 8);
  CHECK(absl::IsResourceExhausted(attached.status()));
}

TEST_CASE("a rank that has come back and catches up is not missed") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  Daemon daemon(folder);
  const auto pipeline = CreateBehind(daemon, folder);
  const auto first = pipeline->Attach(Rank(0)), second = pipeline->Attach(Rank(1));
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  ring::Writer& shared = first->stream->writer();
  shared.Detach(second->handle.id);
  Newcomer behind = Rank(1);
  behind.position.step = 0;
  const auto back = pipeline->Attach(behind);
  REQUIRE(back.ok());
  REQUIRE(back->is_replay);
  uint64_t now_ns = kRejoinNs;
  for (; now_ns < 5 * kRejoinNs; now_ns += kRejoinNs) pipeline->Tick(now_ns, kRejoinNs);
  CHECK_FALSE(shared.Consumers()[0].detached);
  back->stream->writer().Detach(back->handle.id);
  pipeline->Tick(now_ns + kRejoinNs, kRejoinNs);
  CHECK(shared.Consumers()[0].detached);
}

}  // namespace
}  // namespace penstock
