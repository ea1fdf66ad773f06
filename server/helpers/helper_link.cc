#include "server/helpers/helper_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "base/new_thread.h"
#include "base/utf8.h"
#include "io/file/crc32c.h"
#include "penstock/v1/helpers.pb.h"
#include "server/helpers/step_bytes.h"

namespace penstock {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kConnectMs = 1'000;
constexpr int64_t kHandshakeMs = 3'000;
// To list files and to check them.
constexpr int64_t kPlanMs = 120'000;
constexpr int64_t kTellMs = 100;
constexpr int64_t kLateMs = 700;
// Beside what its steps took lately, and beside what a step takes the asker's workers.
constexpr int64_t kLateTimes = 4;
constexpr int64_t kLateTimesOwn = 16;
// How long a step that was given back may keep its place.
constexpr int64_t kLostMs = 30'000;
constexpr uint32_t kMaxStepMeta = uint32_t{1} << 20;
// A connection that brings less is no help.
constexpr uint64_t kSlowestBytesPerMs = 16'000;
constexpr int kMostUnmade = 3;
// Between two connections: doubled up to the second one where the helper was just gone, the third
// where it is wrong.
constexpr int64_t kFirstPauseMs = 250;
constexpr int64_t kLongPauseMs = 10'000;
constexpr int64_t kWrongPauseMs = 30'000;
// Of what a helper says in words.
constexpr size_t kMaxReason = 1'000;

// Whether trying soon again may change it.
bool IsGone(const absl::Status& why) {
  return absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why) || absl::IsCancelled(why) ||
         absl::IsResourceExhausted(why);
}

}  // namespace

HelperLink::HelperLink(std::shared_ptr<Common> common, HelperAddress address)
    : common_(std::move(common)),
      address_(std::move(address)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  window_ = common_->steps_at_a_time;
  stats_.address = address_.shown;
  stats_.state = "connecting";
}

HelperLink::~HelperLink() = default;

absl::StatusOr<std::shared_ptr<HelperLink>> HelperLink::Start(std::shared_ptr<Common> common,
                                                              HelperAddress address) {
  std::shared_ptr<HelperLink> link(new HelperLink(std::move(common), std::move(address)));
  if (!link->bell_) return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  absl::StatusOr<std::thread> thread = NewThread("a helper", [one = link.get()] { one->Run(); });
  if (!thread.ok()) return thread.status();
  link->thread_ = *std::move(thread);
  return link;
}

void HelperLink::Ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(bell_.get(), &one, sizeof(one));
}

void HelperLink::Stop() {
  stop_.store(true);
  Ring();
}

void HelperLink::Join() {
  if (thread_.joinable()) thread_.join();
}

void HelperLink::TellRoom() {
  const int room = is_ready_ && !is_over_ && !is_resting_
                       ? window_ - static_cast<int>(jobs_.size()) - reserved_
                       : 0;
  common_->room.fetch_add(std::max(room, 0) - room_told_, std::memory_order_relaxed);
  room_told_ = std::max(room, 0);
}

void HelperLink::Rest() {
  window_ = 1;
  is_resting_ = true;
  rest_ns_ = std::clamp(2 * rest_ns_, kFirstPauseMs * kMs, kLongPauseMs * kMs);
  rest_until_ns_ = MonotonicNs() + rest_ns_;
}

bool HelperLink::Reserve() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (room_told_ <= 0) return false;
  ++reserved_;
  TellRoom();
  return true;
}

void HelperLink::GiveUp() {
  std::lock_guard<std::mutex> lock(mutex_);
  --reserved_;
  TellRoom();
}

void HelperLink::Take(StepInfo* info, const ClaimedSlot& slot, Completion done) {
  // It may be called at once, and when all is over.
  done.OnCancel([weak = weak_from_this()] {
    if (const std::shared_ptr<HelperLink> link = weak.lock()) link->Stop();
  });
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --reserved_;
    if (is_ready_ && !is_over_ && info->step >= first_step_) {
      Job& job = jobs_.emplace_back();
      job.info = info;
      job.slot = &slot;
      job.step = info->step;
      job.done = std::move(done);
      TellRoom();
      Ring();
      return;
    }
    ++stats_.given_back;
    TellRoom();
  }
  done.End(absl::UnavailableError("the helper has gone"));
}

bool HelperLink::TakeBack(uint64_t step) {
  Completion done;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto job = std::find_if(jobs_.begin(), jobs_.end(), [step](const Job& one) {
      return one.step == step && !one.given_back;
    });
    if (job == jobs_.end()) return false;
    // Its bytes are being written: it is there soon, or late.
    if (is_reading_ && job == jobs_.begin()) return true;
    job->given_back = true;
    done = std::move(job->done);
    ++stats_.given_back;
    Rest();
    TellRoom();
  }
  done.End(absl::DeadlineExceededError("everything waits for it"));
  return true;
}

HelperStats HelperLink::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  HelperStats stats = stats_;
  if (is_ready_ && is_resting_) stats.state = "resting";
  stats.steps_away = static_cast<uint32_t>(jobs_.size());
  return stats;
}

void HelperLink::EndFirst(absl::Status status) {
  Job job;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    job = std::move(jobs_.front());
    jobs_.pop_front();
    is_reading_ = false;
    if (sent_ > 0) --sent_;
    if (!job.given_back && !status.ok()) ++stats_.given_back;
    TellRoom();
  }
  if (!job.given_back) job.done.End(std::move(status));
}

void HelperLink::GiveAllBack(const absl::Status& why) {
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (jobs_.empty()) return;
    }
    EndFirst(absl::UnavailableError(why.message()));
  }
}

void HelperLink::LeaveOut(const absl::Status& why) {
  bool is_new = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_new = stats_.reason != why.message();
    stats_.state = "left out";
    stats_.reason = std::string(why.message());
    ++stats_.left_out;
    is_ready_ = false;
    TellRoom();
  }
  GiveAllBack(why);
  if (is_new && common_->notice != nullptr) {
    common_->notice(absl::StrCat("helper ", address_.shown,
                                 " is left out: ", std::string(why.message()),
                                 "; its steps are made by others, with the same bytes"));
  }
}

void HelperLink::Run() {
  int64_t pause_ms = kFirstPauseMs;
  while (!stop_.load()) {
    const absl::Status why = Session();
    if (stop_.load()) break;
    LeaveOut(why);
    // One that has helped is met again soon.
    if (std::exchange(has_helped_, false)) pause_ms = kFirstPauseMs;
    const int64_t until_ns = MonotonicNs() + (IsGone(why) ? pause_ms : kWrongPauseMs) * kMs;
    pause_ms = std::min(2 * pause_ms, kLongPauseMs);
    while (!stop_.load() && MonotonicNs() < until_ns) {
      pollfd waited{bell_.get(), POLLIN, 0};
      poll(&waited, 1, static_cast<int>((until_ns - MonotonicNs()) / kMs + 1));
      uint64_t count;
      [[maybe_unused]] const ssize_t got = read(bell_.get(), &count, sizeof(count));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.state = "connecting";
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
    TellRoom();
  }
  GiveAllBack(absl::CancelledError("the stream is being stopped"));
  is_ended_.store(true);
}

absl::StatusOr<ring::Descriptor> HelperLink::Connect() const {
  ring::Descriptor socket(
      ::socket(address_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return absl::UnavailableError("no socket can be made");
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  const auto failed = [](int error) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect: ", std::string(std::strerror(error))));
  };
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_.storage), address_.size) ==
      0) {
    return socket;
  }
  if (errno != EINPROGRESS) return failed(errno);
  const int64_t until_ns = MonotonicNs() + kConnectMs * kMs;
  while (!stop_.load() && MonotonicNs() < until_ns) {
    pollfd waited{socket.get(), POLLOUT, 0};
    if (poll(&waited, 1, Wire::kLookMs) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return failed(error);
    return socket;
  }
  return absl::UnavailableError("cannot connect: no answer for 1 s");
}

absl::Status HelperLink::Greet(Wire& wire) {
  uint64_t first_step = 0;
  const std::string hello = common_->hello(&first_step);
  absl::Status status = wire.WriteFrame({FrameKind::kHello}, hello, {kHandshakeMs, 0});
  if (!status.ok()) return status;
  const absl::StatusOr<Frame> frame = wire.ReadFrame(&meta_, kMaxStepMeta, {kPlanMs, 0});
  if (!frame.ok()) return frame.status();
  if (frame->kind == FrameKind::kRefused) {
    v1::HelperRefusal refusal;
    if (!refusal.ParseFromString(meta_) || refusal.code() == 0)
      return absl::DataLossError("it refuses without a reason");
    return absl::Status(
        static_cast<absl::StatusCode>(refusal.code()),
        absl::StrCat("it refuses: ", ReadableUtf8(refusal.message()).substr(0, kMaxReason)));
  }
  if (frame->kind != FrameKind::kReady) return absl::DataLossError("it answers what was not asked");
  passed_told_ = passed_seen_ = first_step;
  unmade_ = 0;
  std::lock_guard<std::mutex> lock(mutex_);
  is_ready_ = true;
  first_step_ = first_step;
  sent_ = 0;
  window_ = common_->steps_at_a_time;
  is_resting_ = false;
  stats_.state = "ready";
  TellRoom();
  return absl::OkStatus();
}

absl::Status HelperLink::Session() {
  absl::StatusOr<ring::Descriptor> socket = Connect();
  if (!socket.ok()) return socket.status();
  TlsSession session;
  if (common_->tls != nullptr) {
    absl::StatusOr<TlsSession> made = common_->tls->NewSession(socket->get(), address_.host);
    if (!made.ok()) return made.status();
    session = *std::move(made);
  }
  Wire wire(*std::move(socket), std::move(session), stop_, bell_.get());
  absl::Status status = wire.Handshake({kHandshakeMs, 0});
  if (status.ok()) status = Greet(wire);
  while (status.ok() && !stop_.load()) {
    status = Ask(wire);
    if (!status.ok()) break;
    if (wire.Wait(Wire::kLookMs) == Wire::Woken::kByBytes) {
      status = Hear(wire);
    } else if (MonotonicNs() - wire.heard_ns() > kSilenceMs * kMs) {
      status = absl::DeadlineExceededError(
          absl::StrCat("it has given no sign of life for ", kSilenceMs, " ms"));
    }
    if (status.ok()) status = FindLate();
  }
  return status;
}

absl::Status HelperLink::Ask(Wire& wire) {
  const Wire::Patience patience{kSilenceMs, 0};
  const int64_t now_ns = MonotonicNs();
  // What is told has been passed for a while: a step below it that is being lent has been asked
  // for.
  if (now_ns - passed_ns_ >= kTellMs * kMs) {
    passed_told_ = std::exchange(passed_seen_, common_->passed());
    passed_ns_ = now_ns;
    absl::Status status = wire.WriteFrame({FrameKind::kPassed, passed_told_}, "", patience);
    if (!status.ok()) return status;
  }
  while (true) {
    uint64_t step = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      // What was taken back before it was asked for.
      while (sent_ < jobs_.size() && jobs_[sent_].given_back) jobs_.erase(jobs_.begin() + sent_);
      if (sent_ == jobs_.size()) return absl::OkStatus();
      jobs_[sent_].sent_ns = now_ns;
      step = jobs_[sent_++].step;
    }
    absl::Status status = wire.WriteFrame({FrameKind::kWant, step}, "", patience);
    if (!status.ok()) return status;
  }
}

absl::Status HelperLink::Hear(Wire& wire) {
  const absl::StatusOr<Frame> frame = wire.ReadFrame(&meta_, kMaxStepMeta, {kSilenceMs, 0});
  if (!frame.ok()) return frame.status();
  if (frame->kind == FrameKind::kAlive) return absl::OkStatus();
  if (frame->kind != FrameKind::kStep && frame->kind != FrameKind::kUnmade)
    return absl::DataLossError("it sends a frame that is the asker's");
  Job* first = nullptr;
  bool is_wanted = false;
  int64_t sent_ns = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (sent_ > 0 && jobs_.front().step == frame->step) {
      first = &jobs_.front();
      is_wanted = !first->given_back;
      sent_ns = first->sent_ns;
      // From here on nobody takes it back.
      is_reading_ = is_wanted && frame->kind == FrameKind::kStep;
    }
  }
  if (first == nullptr)
    return absl::DataLossError(
        absl::StrCat("it sends step ", frame->step, ", which was not asked for now"));
  if (frame->kind == FrameKind::kUnmade) {
    EndFirst(absl::UnavailableError("the helper has not made it"));
    if (++unmade_ < kMostUnmade) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "it has made none of ", unmade_, " steps, up to step ", frame->step, ": its log says why"));
  }
  const int64_t took_ns = MonotonicNs() - sent_ns;
  answer_ns_ = answer_ns_ == 0 ? took_ns : (3 * answer_ns_ + took_ns) / 4;
  absl::Status status = TakeStep(wire, *frame, is_wanted ? first : nullptr);
  if (!status.ok()) return status;
  unmade_ = 0;
  has_helped_ = true;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.step_ns = static_cast<uint64_t>(answer_ns_);
    if (is_wanted) {
      ++stats_.steps;
      stats_.bytes += frame->data_bytes;
      window_ = std::min(window_ + 1, common_->steps_at_a_time);
      rest_ns_ /= 2;
    }
  }
  EndFirst(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status HelperLink::TakeStep(Wire& wire, const Frame& frame, Job* job) {
  const Wire::Patience patience{
      kSilenceMs,
      MonotonicNs() +
          (kSilenceMs + static_cast<int64_t>(frame.data_bytes / kSlowestBytesPerMs)) * kMs};
  if (job == nullptr) return wire.Drop(frame.data_bytes, patience);
  v1::HelperStep told;
  if (!told.ParseFromString(meta_)) return absl::DataLossError("its step has no description");
  std::vector<TensorExtent> extents;
  const ClaimedSlot& slot = *job->slot;
  absl::Status status = CheckStep(told, *job->info, common_->tensors, slot.variable_bytes,
                                  frame.data_bytes, &extents);
  if (!status.ok()) return status;
  if (slot.grows != nullptr && told.variable_bytes() > 0)
    slot.grows->MakeRoom(slot.slot, told.variable_bytes());
  const std::vector<uint64_t> fixed = FixedBytes(common_->tensors, job->info->shape_rows);
  uint32_t crc = 0;
  for (size_t i = 0; i < fixed.size() && status.ok(); ++i)
    status = wire.ReadData(slot.tensors[i], fixed[i], patience, &crc);
  if (status.ok()) status = wire.ReadData(slot.variable, told.variable_bytes(), patience, &crc);
  if (!status.ok()) return status;
  if (wire.has_checksums() && crc != frame.data_crc) {
    return absl::DataLossError(
        absl::StrCat("the bytes of step ", frame.step, " were changed on their way (CRC-32C)"));
  }
  job->info->extents = std::move(extents);
  return absl::OkStatus();
}

int64_t HelperLink::LatePatienceNs() const {
  const auto own_ns = static_cast<int64_t>(common_->own_ns.load(std::memory_order_relaxed));
  int64_t patience_ns = kLateTimes * answer_ns_;
  if (own_ns > 0) patience_ns = std::min(patience_ns, kLateTimesOwn * own_ns);
  return std::max(kLateMs * kMs, patience_ns);
}

absl::Status HelperLink::FindLate() {
  const int64_t now_ns = MonotonicNs();
  std::vector<Completion> late;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_resting_ && now_ns >= rest_until_ns_) {
      is_resting_ = false;
      TellRoom();
    }
    for (size_t i = 0; i < sent_; ++i) {
      Job& job = jobs_[i];
      const int64_t age_ns = now_ns - job.sent_ns;
      if (age_ns > kLostMs * kMs + LatePatienceNs()) {
        return absl::DeadlineExceededError(
            absl::StrCat("step ", job.step, " has not come for ", age_ns / kMs, " ms"));
      }
      if (job.given_back || age_ns < LatePatienceNs()) continue;
      job.given_back = true;
      ++stats_.given_back;
      late.push_back(std::move(job.done));
      Rest();
      TellRoom();
    }
  }
  for (Completion& done : late) done.End(absl::DeadlineExceededError("the helper takes too long"));
  return absl::OkStatus();
}

}  // namespace penstock
