// The calls that run at the same time, each in a thread of gRPC's: no user has so many that others
// get none. Calls that go on telling are not counted here; they have places of their own.
//
// A call takes its place before its method begins, by an interceptor, and gives it back in whatever
// way it is left. One that gets none is refused by its method, with a sentence, or, of gRPC's own
// services, cancelled.
//
// Threads:  safe from any thread.
// Limits:   kMaxCalls.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "absl/status/status.h"
#include "server/service/socket/user_places.h"

namespace penstock {

class CallPlaces {
 public:
  // Each is short, but a drain waits for its consumers, and a creation may allocate for a second.
  static constexpr size_t kMaxCalls = 32;

  // Whose call it is: as UserKey().
  using WhoCalls = std::function<uint64_t(const grpc::ServerContext& context)>;

  // What has the calls of a server counted. Both must outlive the server.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptors(
      WhoCalls who_calls);

  // ResourceExhausted for a call that got no place.
  absl::Status Check(const grpc::ServerContext& context) const;

 private:
  class Counter;
  class CounterFactory;

  UserPlaces places_;
  mutable std::mutex mutex_;
  std::set<const void*> refused_;  // under mutex_: contexts of calls without a place
};

}  // namespace penstock
