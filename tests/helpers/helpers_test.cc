// Helpers: whoever makes a step, its bytes are those of a run alone; and whoever is late, gone or
// wrong is left out: fault 48 of docs/reliability.md.
#include "server/helpers/helpers.h"

#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/v1/helpers.pb.h"
#include "server/helpers/lendable.h"
#include "server/helpers/step_bytes.h"
#include "tests/helpers/served.h"
#include "tests/ops/contract_files.h"
#include "tests/ops/contract_pipelines.h"
#include "tests/support/catch.h"
#include "tests/support/helped_runs.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMostSteps = 40;

std::shared_ptr<const Plan> MustPlan(const std::string& spec) {
  auto plan = PlanText(spec);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// Where two runs differ first.
std::string Difference(const RunResult& helped, const RunResult& alone) {
  if (helped.status.ToString() != alone.status.ToString())
    return absl::StrCat(helped.status.ToString(), " instead of ", alone.status.ToString());
  if (helped.batches.size() != alone.batches.size())
    return absl::StrCat(helped.batches.size(), " steps instead of ", alone.batches.size());
  for (size_t i = 0; i < alone.batches.size(); ++i) {
    if (!(helped.batches[i] == alone.batches[i])) return absl::StrCat("step ", i);
    if (WithoutCounts(helped.batches[i].info.cursor) !=
        WithoutCounts(alone.batches[i].info.cursor)) {
      return absl::StrCat("the cursor of step ", i);
    }
  }
  return "";
}

uint64_t StepsOf(const RunResult& result) {
  uint64_t steps = 0;
  for (const HelperStats& helper : result.stats.helpers) steps += helper.steps;
  return steps;
}

TEST_CASE("whoever makes a step, its bytes and its cursor are those of a run alone") {
  const ContractFiles files;
  REQUIRE(RunText(files.Spec("$RANGE | map { out: 'a = value' out: 'b = random_uniform([3], "
                             "seed=1) + value' } | save { path: 'FOLDER/saved' } | batch { "
                             "batch_size: 50 }"))
              .status.ok());
  const GoodHelper first, second;
  uint64_t helped_steps = 0;
  int helped_pipelines = 0;
  for (const std::string text : kContractPipelines) {
    INFO(text);
    const auto plan = MustPlan(files.Spec(text));
    if (WhyNotLendable(plan->spec()) != "") continue;
    const RunResult alone = RunPlan(plan, {.max_steps = kMostSteps});
    RunOptions options{.workers = 1, .slots = 6, .max_steps = kMostSteps};
    const HelpedRuns helpers(std::make_shared<PatientHelpers>(HelpersAt({first.port, second.port})),
                             2);
    const RunResult helped = RunPlan(plan, options);
    CHECK(Difference(helped, alone) == "");
    helped_steps += StepsOf(helped);
    helped_pipelines += StepsOf(helped) > 0;
    // A machine at its limits has pauses.
    for (const HelperStats& helper : helped.stats.helpers)
      CHECK((helper.reason.empty() || absl::StrContains(helper.reason, "no sign of life")));
    // From the middle on.
    if (alone.batches.size() < 4) continue;
    options.cursor = alone.batches[1].info.cursor;
    options.max_steps = kMostSteps - 2;
    RunResult rest = alone;
    rest.batches.erase(rest.batches.begin(), rest.batches.begin() + 2);
    CHECK(Difference(RunPlan(plan, options), rest) == "");
  }
  CHECK(helped_pipelines > 60);
  CHECK(helped_steps > 1000);
}

// Slow enough that everybody takes part.
std::string SlowSpec(const ContractFiles& files, int passes = 3) {
  return files.Spec(absl::StrCat(
      "$RANGE | shuffle { buffer_size: 30 seed: 3 } | map { out: 'a = value' out: 'b = "
      "sum(random_uniform([40000], seed=1)) + value' } | batch { batch_size: 4 } | repeat { "
      "count: ",
      passes, " }"));
}
// For what takes some time to be noticed.
constexpr int kManyPasses = 12;

RunResult RunWith(const std::shared_ptr<const Plan>& plan, const std::vector<int>& ports,
                  size_t ready, int steps = 2) {
  // Many slots: what takes its time to be noticed is not taken back meanwhile.
  RunOptions options{.workers = 1, .slots = 40, .max_steps = 1000};
  const HelpedRuns helpers(HelpersAt(ports, steps), ready);
  return RunPlan(plan, options);
}

const HelperStats& Of(const RunResult& result, int port) {
  for (const HelperStats& helper : result.stats.helpers) {
    if (helper.address == absl::StrCat("127.0.0.1:", port)) return helper;
  }
  FAIL("no such helper");
  return result.stats.helpers.front();
}

// Runs until the helper was left out: on a busy machine a run may be over before it has answered.
RunResult RunUntilLeftOut(const std::shared_ptr<const Plan>& plan, const std::vector<int>& ports,
                          size_t ready, int left_out) {
  const RunResult alone = RunPlan(plan);
  RunResult helped;
  for (int i = 0; i < 20; ++i) {
    helped = RunWith(plan, ports, ready);
    CHECK(Difference(helped, alone) == "");
    if (!Of(helped, left_out).reason.empty()) break;
  }
  return helped;
}

TEST_CASE("a helper that gives no sign of life is left out, and its steps are made by others") {
  const ContractFiles files;
  const auto plan = MustPlan(SlowSpec(files, 2 * kManyPasses));
  const GoodHelper good;
  const BadHelper mute([](Wire&, uint64_t) { return absl::OkStatus(); }, /*shows_life=*/false);
  const RunResult helped = RunUntilLeftOut(plan, {good.port, mute.port()}, 2, mute.port());
  CHECK(Of(helped, mute.port()).steps == 0);
  CHECK(Of(helped, mute.port()).given_back > 0);
  CHECK(absl::StrContains(Of(helped, mute.port()).reason, "no sign of life"));
  CHECK(Of(helped, good.port).steps > 0);
}

TEST_CASE("a step that a helper keeps to itself is made by others") {
  const ContractFiles files;
  const auto plan = MustPlan(SlowSpec(files));
  const BadHelper idle([](Wire&, uint64_t) { return absl::OkStatus(); });
  const RunResult helped = RunWith(plan, {idle.port()}, 1);
  CHECK(Difference(helped, RunPlan(plan)) == "");
  CHECK(Of(helped, idle.port()).given_back > 0);
  CHECK(Of(helped, idle.port()).reason == "");
}

TEST_CASE("a helper that lies about a step is left out, and named") {
  const ContractFiles files;
  const auto plan = MustPlan(SlowSpec(files, kManyPasses));
  const RunResult alone = RunPlan(plan);
  const Wire::Patience patience{5'000, 0};
  const struct {
    std::string says;
    BadHelper::Answer answer;
  } liars[] = {
      {"another cursor",
       [&](Wire& wire, uint64_t step) {
         v1::HelperStep told;
         told.set_cursor("PNSC of another stream");
         return wire.WriteFrame({FrameKind::kStep, step}, told.SerializeAsString(), patience);
       }},
      {"was not asked for",
       [&](Wire& wire, uint64_t step) {
         return wire.WriteFrame({FrameKind::kStep, step + 7}, "", patience);
       }},
      {"the asker's",
       [&](Wire& wire, uint64_t step) {
         return wire.WriteFrame({FrameKind::kWant, step}, "", patience);
       }},
      {"no frame",
       [&](Wire& wire, uint64_t) {
         const std::vector<uint8_t> noise(200, 0x5b);
         return wire.Write(noise.data(), noise.size(), patience);
       }},
      {"no description",
       [&](Wire& wire, uint64_t step) {
         return wire.WriteFrame({FrameKind::kStep, step}, "\xff\xff\xff", patience);
       }},
      {"1099511627776 bytes",
       [&](Wire& wire, uint64_t step) {
         v1::HelperStep told;
         const StepInfo& own = alone.batches[step].info;
         told.set_cursor(own.cursor);
         told.set_rows(own.rows);
         told.set_shape_rows(own.shape_rows);
         told.set_epoch(own.epoch);
         Frame frame{FrameKind::kStep, step};
         frame.data_bytes = uint64_t{1} << 40;
         return wire.WriteFrame(frame, told.SerializeAsString(), patience);
       }},
      {"were changed on their way",
       [&](Wire& wire, uint64_t step) {
         v1::HelperStep told;
         const Batch& own = alone.batches[step];
         told.set_cursor(own.info.cursor);
         told.set_rows(own.info.rows);
         told.set_shape_rows(own.info.shape_rows);
         told.set_epoch(own.info.epoch);
         Frame frame{FrameKind::kStep, step};
         std::string bytes;
         for (const std::string& tensor : own.tensors) bytes += tensor;
         frame.data_bytes = bytes.size();
         frame.data_crc = 12345;
         absl::Status status = wire.WriteFrame(frame, told.SerializeAsString(), patience);
         if (status.ok()) {
           status =
               wire.Write(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), patience);
         }
         return status;
       }},
      {"has made none of 3 steps",
       [&](Wire& wire, uint64_t step) {
         return wire.WriteFrame({FrameKind::kUnmade, step}, "", patience);
       }},
  };
  for (const auto& liar : liars) {
    INFO(liar.says);
    const BadHelper helper(liar.answer);
    // What it answers counts as long as the step is its own.
    const HelpedRuns helpers(std::make_shared<PatientHelpers>(HelpersAt({helper.port()})), 1);
    const RunResult helped = RunPlan(plan, {.workers = 1, .slots = 40, .max_steps = 1000});
    CHECK(Difference(helped, alone) == "");
    const HelperStats& stats = Of(helped, helper.port());
    CHECK(stats.steps == 0);
    CHECK(stats.left_out == 1);
    INFO(stats.reason);
    CHECK(absl::StrContains(stats.reason, liar.says));
  }
}

uint64_t FixedSum(const Plan& plan, const StepInfo& info) {
  uint64_t sum = 0;
  for (const uint64_t bytes : FixedBytes(plan.tensors(), info.shape_rows)) sum += bytes;
  return sum;
}

TEST_CASE("parts of a step that lie outside of the slot are refused") {
  const ContractFiles files;
  const auto plan = MustPlan(files.Spec("$LISTS | ragged_batch { batch_size: 11 }"));
  const RunResult alone = RunPlan(plan);
  REQUIRE(alone.status.ok());
  const StepInfo& own = alone.batches[0].info;
  std::vector<TensorExtent> extents;
  const uint64_t room = uint64_t{4} << 20;
  const v1::HelperStep good = DescribeStep(own);
  const auto check = [&](const v1::HelperStep& told) {
    return CheckStep(told, own, plan->tensors(), room, told.variable_bytes() + FixedSum(*plan, own),
                     &extents);
  };
  CHECK(check(good).ok());
  REQUIRE(good.extents_size() >= 8);
  for (int i = 0; i < good.extents_size(); ++i) {
    for (const uint64_t wrong :
         {good.variable_bytes() + 64, room, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 63}) {
      v1::HelperStep told = good;
      told.set_extents(i, wrong);
      if (i % 2 == 0 && told.extents(i + 1) == 0 && wrong <= room) continue;  // no bytes there
      INFO(i << ": " << wrong);
      CHECK(check(told).code() == absl::StatusCode::kDataLoss);
    }
  }
  v1::HelperStep told = good;
  told.add_extents(0);
  CHECK(check(told).code() == absl::StatusCode::kDataLoss);
  told = good;
  told.set_variable_bytes(room + 64);
  CHECK(check(told).code() == absl::StatusCode::kDataLoss);
  told = good;
  told.set_rows(good.rows() + 1);
  CHECK(check(told).code() == absl::StatusCode::kFailedPrecondition);
}

// Between the two sides: of what the helper sends, one byte is changed, or the connection is cut
// there.
class Proxy {
 public:
  enum class Does { kFlips, kCuts, kStalls };
  Proxy(int port, Does does, uint64_t seed)
      : listening_(
            [port, does, seed, this](ring::Descriptor socket, const std::atomic<bool>& stop) {
              std::mt19937_64 dice(seed + connections_.fetch_add(1));
              const uint64_t at = std::uniform_int_distribution<uint64_t>(0, 30'000)(dice);
              Carry(std::move(socket), port, does, at, stop);
            }) {}
  int port() const { return listening_.port(); }
  int connections() const { return connections_.load(); }

 private:
  static void Carry(ring::Descriptor asker, int port, Does does, uint64_t at,
                    const std::atomic<bool>& stop) {
    ring::Descriptor helper(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(helper.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return;
    uint64_t carried = 0;
    std::vector<uint8_t> bytes(65536);
    while (!stop.load()) {
      pollfd waited[2] = {{asker.get(), POLLIN, 0}, {helper.get(), POLLIN, 0}};
      if (poll(waited, 2, 20) <= 0) continue;
      for (int side = 0; side < 2; ++side) {
        if (waited[side].revents == 0) continue;
        const int from = waited[side].fd, to = waited[1 - side].fd;
        const ssize_t got = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) continue;
        if (got <= 0) return;
        if (side == 1 && at >= carried && at < carried + got) {
          if (does == Does::kCuts) return;
          if (does == Does::kFlips) bytes[at - carried] ^= 0x10;
          while (does == Does::kStalls && !stop.load()) poll(nullptr, 0, 20);
        }
        if (side == 1) carried += got;
        for (ssize_t put = 0; put < got;) {
          const ssize_t more = send(to, bytes.data() + put, got - put, MSG_NOSIGNAL);
          if (more < 0 && errno == EAGAIN) continue;
          if (more <= 0) return;
          put += more;
        }
      }
    }
  }

  std::atomic<uint64_t> connections_{0};
  ListeningThread listening_;
};

TEST_CASE("whatever becomes of the bytes on their way, a step has its own or is made by others") {
  const ContractFiles files;
  const std::string specs[] = {
      SlowSpec(files, 6),
      files.Spec("$LISTS | map { out: 'w = words' out: 'i = ints' out: 'r = "
                 "sum(random_uniform([40000], seed=1))' } | padded_batch { batch_size: 5 } | "
                 "repeat { count: 6 }")};
  const GoodHelper good;
  uint64_t left_out = 0, steps = 0;
  for (const std::string& spec : specs) {
    const auto plan = MustPlan(spec);
    const RunResult alone = RunPlan(plan);
    for (const Proxy::Does does : {Proxy::Does::kFlips, Proxy::Does::kCuts, Proxy::Does::kStalls}) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        INFO("seed " << seed << " of " << static_cast<int>(does));
        const Proxy proxy(good.port, does, 100 * seed);
        const RunResult helped = RunWith(plan, {proxy.port()}, 0);
        CHECK(Difference(helped, alone) == "");
        left_out += Of(helped, proxy.port()).left_out;
        steps += StepsOf(helped);
      }
    }
  }
  CHECK(left_out > 0);
  CHECK(steps > 5);
}

// The same names with other files behind them.
class OtherFiles final : public FileSystem {
 public:
  OtherFiles(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    return LocalFileSystem().Open(path == from_ ? to_ : path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    auto listed = LocalFileSystem().List(pattern == from_ ? to_ : pattern);
    if (listed.ok() && pattern == from_) listed->front().path = from_;
    return listed;
  }

 private:
  const std::string from_, to_;
};

TEST_CASE("a helper with other files refuses, says what differs, and is left out") {
  const ContractFiles files;
  const std::string own = files.folder / "own.tfrecord", other = files.folder / "other.tfrecord";
  WriteShard(own, 1000, 60);
  WriteShard(other, 2000, 60);
  OtherFiles others(own, other);
  const GoodHelper helper(others);
  const auto plan = MustPlan(Stages(absl::StrCat(
      "tfrecord { files: '", own,
      "' } | parse_example { feature { key: 'n' int64 {} } } | map { out: 'r = n + "
      "sum(random_uniform([40000], seed=1))' } | batch { batch_size: 4 } | repeat { count: 5 }")));
  const RunResult helped = RunUntilLeftOut(plan, {helper.port}, 0, helper.port);
  INFO(Of(helped, helper.port).reason);
  CHECK(absl::StrContains(Of(helped, helper.port).reason, "begin or end with other bytes"));
  CHECK(Of(helped, helper.port).steps == 0);
}

TEST_CASE("a row that fails is told as it is without helpers") {
  const ContractFiles files;
  const GoodHelper good;
  const auto plan = MustPlan(files.Spec(
      "$RANGE | map { out: 'a = take([1, 2, 3], value // 20) + sum(random_uniform([40000], "
      "seed=1))' } | batch { batch_size: 4 }"));
  const RunResult alone = RunPlan(plan);
  CHECK(!alone.status.ok());
  CHECK(alone.batches.size() > 3);
  CHECK(Difference(RunWith(plan, {good.port}, 1), alone) == "");
}

TEST_CASE("a helper makes the rows of the asker's host") {
  const ContractFiles files;
  const GoodHelper good;
  const auto whole = MustPlan(SlowSpec(files));
  for (const uint32_t host : {0u, 2u}) {
    const auto plan = MakePlan(whole->spec(), LocalFileSystem(), {3, host});
    REQUIRE(plan.ok());
    const RunResult alone = RunPlan(*plan);
    REQUIRE(alone.status.ok());
    const RunResult helped = RunWith(*plan, {good.port}, 1);
    CHECK(Difference(helped, alone) == "");
    CHECK(StepsOf(helped) > 0);
  }
}

TEST_CASE("a helper whose memory does not suffice makes nothing, and holds nobody up") {
  const ContractFiles files;
  MemoryAccount::Options options;
  options.name = "a stream";
  options.bytes_max = 10'000;
  options.limit = "the test's";
  const auto account = MemoryAccount::Create(std::move(options));
  const auto plan = MustPlan(SlowSpec(files));
  {
    const GoodHelper small(LocalFileSystem(), 2, account);
    const RunResult helped = RunUntilLeftOut(plan, {small.port}, 0, small.port);
    const HelperStats& stats = Of(helped, small.port);
    CHECK(stats.steps == 0);
    INFO(stats.reason);
    CHECK((absl::StrContains(stats.reason, "it refuses") ||
           absl::StrContains(stats.reason, "it has made none")));
  }
  CHECK(account->taken() == 0);
}

TEST_CASE("a helper that has no place for a stream says so, and strangers take none") {
  const ContractFiles files;
  const auto plan = MustPlan(SlowSpec(files));
  const RunResult alone = RunPlan(plan);
  const GoodHelper full(LocalFileSystem(), 1, nullptr, /*most_streams=*/0);
  const RunResult refused = RunUntilLeftOut(plan, {full.port}, 0, full.port);
  INFO(Of(refused, full.port).reason);
  CHECK(absl::StrContains(Of(refused, full.port).reason, "it helps 0 streams already"));
  // Each of them says nothing.
  const GoodHelper good(LocalFileSystem(), 1, nullptr, /*most_streams=*/1);
  std::vector<ring::Descriptor> strangers;
  for (int i = 0; i < 2 * HelperServer::kMostStrangers; ++i) {
    ring::Descriptor& one = strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(good.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(one.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  const RunResult helped = RunWith(plan, {good.port}, 1);
  CHECK(Difference(helped, alone) == "");
  CHECK(StepsOf(helped) > 0);
}

TEST_CASE("what another host cannot make is not lent, and the reason is told") {
  const ContractFiles files;
  const GoodHelper good;
  std::vector<std::string> notices;
  RunOptions options;
  const HelpedRuns helpers(HelpersAt({good.port}), 0);
  options.notice = [&](const std::string& text) { notices.push_back(text); };
  const RunResult result =
      RunPlan(MustPlan(files.Spec("$RANGE | cache { filename: 'FOLDER/kept' } | batch { "
                                  "batch_size: 7 }")),
              options);
  CHECK(result.status.ok());
  CHECK(result.stats.helpers.empty());
  REQUIRE(notices.size() == 1);
  CHECK(absl::StrContains(notices[0], "no helper makes steps of it"));
}

TEST_CASE("wrong settings are told by their field") {
  const auto told = [](const std::function<void(v1::HelperOptions*)>& change) {
    v1::HelperOptions options;
    options.add_address("127.0.0.1:9466");
    change(&options);
    return std::string(CompleteHelpers(&options).message());
  };
  CHECK(told([](auto*) {}).empty());
  for (const char* const wrong :
       {"", "host", "host:", ":1", "host:0", "host:65536", "::1:9", "[]:9"}) {
    INFO(wrong);
    CHECK(
        absl::StrContains(told([&](auto* one) { one->set_address(0, wrong); }), "helpers.address"));
  }
  CHECK(told([](auto* one) { one->set_address(0, "[::1]:9466"); }).empty());
  CHECK(absl::StrContains(told([](auto* one) { one->set_steps_at_a_time(17); }),
                          "helpers.steps_at_a_time"));
  CHECK(absl::StrContains(told([](auto* one) { one->set_certificate("/a"); }), "helpers.key"));
  CHECK(absl::StrContains(told([](auto* one) {
                            one->set_certificate("/a");
                            one->set_plaintext(true);
                          }),
                          "helpers.plaintext"));
  v1::ServeOptions serve;
  serve.set_address("0.0.0.0:9466");
  CHECK(absl::StrContains(CompleteServe(&serve).message(), "is not the loopback's"));
  serve.set_plaintext(true);
  CHECK(CompleteServe(&serve).ok());
  serve.set_plaintext(false);
  serve.set_address("127.0.0.1:9466");
  CHECK(CompleteServe(&serve).ok());
  serve.set_address("a-name:9466");
  CHECK(absl::StrContains(CompleteServe(&serve).message(), "serve.address"));
}

}  // namespace
}  // namespace penstock::test
