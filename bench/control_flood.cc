// What the control plane is flooded with by bench/control/run.py: unary calls at a rate, and
// streams that nobody reads. Prints a line of JSON a second: calls answered and their latency.
//
//   bench_control_flood SOCKET PIPELINE CALLS_PER_S STREAMS SECONDS
//
// It opens several connections, as each takes 16 calls at a time.

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "penstock/v1/control.grpc.pb.h"
#include "ring/attach.h"

namespace {

using Clock = std::chrono::steady_clock;
namespace v1 = penstock::v1;

constexpr int kStreamsAConnection = 12;
// A window of HTTP/2 is filled by some of these, and then the daemon's call stands still.
constexpr int kStreamIntervalMs = 50;

std::unique_ptr<v1::PipelineService::Stub> Connect(const std::string& socket) {
  int fd = -1;
  const penstock::ring::Status status =
      penstock::ring::ConnectToDaemon(socket, 10'000'000'000, &fd);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_control_flood: %s\n", status.message.c_str());
    std::exit(1);
  }
  return v1::PipelineService::NewStub(grpc::CreateInsecureChannelFromFd("penstockd", fd));
}

struct Stalled {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchStatsResponse>> reader;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr,
                 "usage: bench_control_flood SOCKET PIPELINE CALLS_PER_S STREAMS SECONDS\n");
    return 2;
  }
  const std::string socket = argv[1], name = argv[2];
  const double calls_per_s = std::atof(argv[3]), seconds = std::atof(argv[5]);
  const int streams = std::atoi(argv[4]);

  std::vector<std::unique_ptr<v1::PipelineService::Stub>> stubs;
  std::vector<std::unique_ptr<Stalled>> stalled;
  for (int i = 0; i < streams; ++i) {
    if (i % kStreamsAConnection == 0) stubs.push_back(Connect(socket));
    auto one = std::make_unique<Stalled>();
    v1::WatchStatsRequest request;
    request.set_name(name);
    request.set_interval_ms(kStreamIntervalMs);
    one->reader = stubs.back()->WatchStats(&one->context, request);
    stalled.push_back(std::move(one));
  }
  const auto stub = Connect(socket);
  std::printf("ready\n");
  std::fflush(stdout);

  std::vector<double> latencies_us;
  uint64_t failed = 0;
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (uint64_t call = 0;; ++call) {
    const Clock::time_point due =
        calls_per_s > 0
            ? begin + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(static_cast<double>(call) / calls_per_s))
            : end;
    if (due >= end) break;
    std::this_thread::sleep_until(due);
    grpc::ClientContext context;
    v1::GetStatsRequest request;
    request.set_name(name);
    v1::GetStatsResponse response;
    const Clock::time_point sent = Clock::now();
    if (!stub->GetStats(&context, request, &response).ok()) ++failed;
    latencies_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent).count());
    if (Clock::now() >= end) break;
  }
  std::this_thread::sleep_until(end);
  std::sort(latencies_us.begin(), latencies_us.end());
  const auto at = [&](double part) {
    if (latencies_us.empty()) return 0.0;
    return latencies_us[static_cast<size_t>(part * static_cast<double>(latencies_us.size() - 1))];
  };
  std::printf("{\"calls\": %zu, \"failed\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
              latencies_us.size(), static_cast<unsigned long long>(failed), at(0.5), at(0.99));
  for (const auto& one : stalled) one->context.TryCancel();
  for (const auto& one : stalled) one->reader->Finish();
  return 0;
}
