#include "server/helpers/served_stream.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/monotonic_clock.h"
#include "base/release.h"
#include "penstock/v1/helpers.pb.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/run/executor.h"
#include "server/helpers/lendable.h"
#include "server/helpers/step_bytes.h"
#include "server/helpers/step_sink.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kAliveMs = 100;
constexpr int64_t kAskerSilenceMs = 10'000;
constexpr int64_t kHelloMs = 20'000;
constexpr Wire::Patience kPatience{5'000, 0};

// What was asked for, checked: the plan is this host's, the stream the asker's.
struct Asked {
  std::shared_ptr<const Plan> plan;
  ExecutorOptions options;
  int most_steps = 1;
};

absl::StatusOr<Asked> Understand(const v1::HelperHello& hello, const ServedStream::Means& means) {
  if (hello.release() != kRelease) {
    return absl::FailedPreconditionError(
        absl::StrCat("the asker is of release ", hello.release(), ", this helper of ", kRelease,
                     ": equal bytes are promised within one release"));
  }
  if (const std::string why = WhyNotLendable(hello.spec()); !why.empty())
    return absl::InvalidArgumentError(absl::StrCat("it cannot be helped: ", why));
  const World world{hello.world_hosts(), hello.world_host()};
  if (absl::Status status = world.Check(); !status.ok()) return status;
  Asked asked;
  if (means.account != nullptr) {
    absl::StatusOr<std::shared_ptr<MemoryAccount>> account = means.account(hello.spec());
    if (!account.ok()) return account.status();
    asked.options.memory = *std::move(account);
  }
  const MemoryAccount::Scope charged(asked.options.memory.get());
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(hello.spec(), *means.files, world);
  if (!plan.ok()) return plan.status();
  asked.plan = *std::move(plan);
  absl::StatusOr<v1::Fingerprint> own = FingerprintOf(*asked.plan);
  if (!own.ok()) return own.status();
  absl::StatusOr<ResumePoint> start = ReadCursor(hello.cursor(), *own);
  if (!start.ok()) return start.status();
  ExecutorOptions& options = asked.options;
  options.start = *std::move(start);
  // It fits, and its cursors are the asker's byte for byte, whatever indices there are here.
  options.fingerprint = hello.fingerprint();
  options.skip_steps = hello.skip_steps();
  if (hello.has_start_pass()) options.start_pass = hello.start_pass();
  options.workers = means.workers;
  options.worker_nice = means.worker_nice;
  options.maps = means.maps;
  options.read_deadline_ns = means.read_deadline_ns;
  asked.most_steps =
      static_cast<int>(std::clamp(hello.steps_at_a_time(), 1u, ServedStream::kMostSteps));
  return asked;
}

absl::Status Send(Wire& wire, const StepSink::Made& made, const std::vector<BatchTensor>& tensors) {
  if (!made.is_made) return wire.WriteFrame({FrameKind::kUnmade, made.step}, "", kPatience);
  const v1::HelperStep told = DescribeStep(made.info);
  const std::vector<uint64_t> fixed = FixedBytes(tensors, made.info.shape_rows);
  std::vector<absl::Span<const uint8_t>> parts;
  for (size_t i = 0; i < fixed.size(); ++i) parts.emplace_back(made.slot.tensors[i], fixed[i]);
  parts.emplace_back(made.slot.variable, told.variable_bytes());
  return wire.WriteWithData({FrameKind::kStep, made.step}, told.SerializeAsString(), parts,
                            kPatience);
}

// One question, or a sign of life.
absl::Status Hear(Wire& wire, StepSink& sink, std::string* meta) {
  const absl::StatusOr<Frame> frame = wire.ReadFrame(meta, 0, kPatience);
  if (!frame.ok()) return frame.status();
  if (frame->kind == FrameKind::kWant) {
    if (!sink.Want(frame->step))
      return absl::ResourceExhaustedError("the asker asks for more steps than it has said");
  } else if (frame->kind == FrameKind::kPassed) {
    sink.Passed(frame->step);
  } else {
    return absl::DataLossError("the asker has sent a frame that is the helper's");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServedStream::CheckPeer(Wire& wire) const {
  if (means_.tls == nullptr || means_.certificate_names.empty()) return absl::OkStatus();
  const std::vector<std::string> names = PeerNames(wire.session());
  for (const std::string& name : names) {
    const auto& allowed = means_.certificate_names;
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("a certificate for ", absl::StrJoin(names, ", "),
                                                  " is not in serve.certificate_names"));
}

absl::Status ServedStream::Serve(ring::Descriptor socket) {
  TlsSession session;
  if (means_.tls != nullptr) {
    absl::StatusOr<TlsSession> made = means_.tls->NewSession(socket.get(), "");
    if (!made.ok()) return made.status();
    session = *std::move(made);
  }
  const ring::Descriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  Wire wire(std::move(socket), std::move(session), stop_, bell.get());
  absl::Status status = wire.Handshake(kPatience);
  if (!status.ok()) return status;
  return Run(wire, bell.get());
}

absl::Status ServedStream::Run(Wire& wire, int bell) {
  std::string meta;
  Wire::Patience patience = kPatience;
  patience.until_ns = MonotonicNs() + kHelloMs * kMs;
  const absl::StatusOr<Frame> first = wire.ReadFrame(&meta, kMaxMetaBytes, patience);
  if (!first.ok()) return first.status();
  v1::HelperHello hello;
  if (first->kind != FrameKind::kHello || !hello.ParseFromString(meta))
    return absl::DataLossError("what comes first is no question of a daemon");
  absl::StatusOr<Asked> asked = absl::UnknownError("");
  std::optional<StepSink> sink;
  std::unique_ptr<Executor> executor;
  const auto begin = [&]() -> absl::Status {
    absl::Status status = CheckPeer(wire);
    if (status.ok()) status = enter_();
    if (!status.ok()) return status;
    asked = Understand(hello, means_);
    if (!asked.ok()) return asked.status();
    sink.emplace(*asked->plan, asked->options.start.step, asked->most_steps, asked->options.memory,
                 [bell] {
                   const uint64_t one = 1;
                   [[maybe_unused]] const ssize_t put = write(bell, &one, sizeof(one));
                 });
    absl::StatusOr<std::unique_ptr<Executor>> made =
        Executor::Create(asked->plan, *sink, asked->options);
    if (!made.ok()) return made.status();
    executor = *std::move(made);
    return executor->Start();
  };
  absl::Status status;
  try {
    status = begin();
  } catch (const MemoryLimitError& error) {
    status = MemoryStatus(error);
  }
  if (!status.ok()) {
    v1::HelperRefusal refusal;
    refusal.set_code(static_cast<int>(status.code()));
    refusal.set_message(std::string(status.message()));
    wire.WriteFrame({FrameKind::kRefused}, refusal.SerializeAsString(), kPatience).IgnoreError();
    return status;
  }
  spdlog::info("helps pipeline {} of {} from step {} on", hello.spec().name(), from_,
               asked->options.start.step);
  status = wire.WriteFrame({FrameKind::kReady}, "", kPatience);
  int64_t told_ns = MonotonicNs();
  bool has_failed = false;
  while (status.ok() && !stop_.load(std::memory_order_relaxed)) {
    while (status.ok()) {
      const std::optional<StepSink::Made> made = sink->TakeMade();
      if (!made) break;
      status = Send(wire, *made, asked->plan->tensors());
      sink->GiveBack(*made);
      told_ns = MonotonicNs();
    }
    if (const auto failure = sink->Failure(); failure && !std::exchange(has_failed, true)) {
      spdlog::warn("makes no more steps of pipeline {} for {}: {}", hello.spec().name(), from_,
                   failure->ToString());
    }
    if (status.ok() && MonotonicNs() - told_ns >= kAliveMs * kMs) {
      executor->EndAtHungRead();
      status = wire.WriteFrame({FrameKind::kAlive}, "", kPatience);
      told_ns = MonotonicNs();
    }
    if (!status.ok()) break;
    if (wire.Wait(kAliveMs / 2) == Wire::Woken::kByBytes) {
      status = Hear(wire, *sink, &meta);
    } else if (MonotonicNs() - wire.heard_ns() > kAskerSilenceMs * kMs) {
      status = absl::DeadlineExceededError("the asker has not said anything for 10 s");
    }
  }
  executor->Stop();
  return status;
}

}  // namespace penstock
