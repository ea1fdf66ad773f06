#include "server/service/socket/call_places.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr char kOwnService[] = "/penstock.";
// It is answered without a thread.
constexpr char kHealthService[] = "/grpc.health.";

}  // namespace

class CallPlaces::Counter final : public grpc::experimental::Interceptor {
 public:
  Counter(CallPlaces& owner, const WhoCalls& who_calls, grpc::experimental::ServerRpcInfo* info)
      : owner_(owner), who_calls_(who_calls), info_(info) {}
  ~Counter() override {
    if (user_) owner_.places_.GiveBack(*user_);
    if (!is_refused_) return;
    std::lock_guard<std::mutex> lock(owner_.mutex_);
    owner_.refused_.erase(info_->server_context());
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_INITIAL_METADATA))
      Begin();
    methods->Proceed();
  }

 private:
  void Begin() {
    // Of synchronous services.
    auto* const context = static_cast<grpc::ServerContext*>(info_->server_context());
    const uint64_t user = who_calls_(*context);
    if (owner_.places_.Take(user, kMaxCalls)) {
      user_ = user;
      return;
    }
    if (!absl::StartsWith(info_->method(), kOwnService)) return context->TryCancel();
    std::lock_guard<std::mutex> lock(owner_.mutex_);
    owner_.refused_.insert(info_->server_context());
    is_refused_ = true;
  }

  CallPlaces& owner_;
  const WhoCalls& who_calls_;
  grpc::experimental::ServerRpcInfo* const info_;
  std::optional<uint64_t> user_;  // who has a place
  bool is_refused_ = false;
};

class CallPlaces::CounterFactory final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CounterFactory(CallPlaces& owner, WhoCalls who_calls)
      : owner_(owner), who_calls_(std::move(who_calls)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    using Type = grpc::experimental::ServerRpcInfo::Type;
    const bool is_own = absl::StartsWith(info->method(), kOwnService);
    if (absl::StartsWith(info->method(), kHealthService) || (is_own && info->type() != Type::UNARY))
      return nullptr;
    return new Counter(owner_, who_calls_, info);
  }

 private:
  CallPlaces& owner_;
  const WhoCalls who_calls_;
};

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallPlaces::Interceptors(
    WhoCalls who_calls) {
  return std::make_unique<CounterFactory>(*this, std::move(who_calls));
}

absl::Status CallPlaces::Check(const grpc::ServerContext& context) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!refused_.contains(static_cast<const grpc::ServerContextBase*>(&context)))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("too many calls at a time: at most ", kMaxCalls,
                   " run, and the last eighth is for users who have less than that; try again "
                   "when others have ended"));
}

}  // namespace penstock
