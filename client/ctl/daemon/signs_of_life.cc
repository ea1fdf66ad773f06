#include "client/ctl/daemon/signs_of_life.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "base/new_thread.h"

namespace penstock::ctl {
namespace {

constexpr int kQuestions = 3;
// An empty HealthCheckRequest asks for the server as a whole.
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

}  // namespace

SignsOfLife::SignsOfLife(std::shared_ptr<grpc::Channel> channel, grpc::ClientContext* call,
                         uint64_t silence_ns_max)
    : channel_(std::move(channel)), call_(call), pause_ns_(silence_ns_max / (kQuestions + 1)) {
  absl::StatusOr<std::thread> thread = NewThread("signs of life", [this] { Watch(); });
  status_ = thread.status();
  if (thread.ok()) thread_ = *std::move(thread);
}

SignsOfLife::~SignsOfLife() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    if (question_ != nullptr) question_->TryCancel();
  }
  wake_.notify_all();
  thread_.join();
}

void SignsOfLife::Watch() {
  int unanswered = 0;
  while (unanswered < kQuestions) {
    if (unanswered == 0) {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns_), [this] { return ended_; });
    }
    const bool answered = Ask();
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    unanswered = answered ? 0 : unanswered + 1;
  }
  missing_ = true;
  call_->TryCancel();
}

bool SignsOfLife::Ask() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(pause_ns_));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return true;
    question_ = &context;
  }
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const auto question =
      stub.PrepareUnaryCall(&context, kHealthCheck, grpc::ByteBuffer(nullptr, 0), &queue);
  question->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  question->Finish(&answer, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  std::lock_guard<std::mutex> lock(mutex_);
  question_ = nullptr;
  // An error is an answer too; a connection that breaks ends the call by itself.
  return status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

}  // namespace penstock::ctl
