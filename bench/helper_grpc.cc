// The same bytes as bench_helper_transport moves, by a plain gRPC stream:
// `bench_helper_grpc BYTES STEPS [FOLDER]`.
//
// Two processes on this machine: one that sends a step in pieces of 1 MiB for each question, and
// one that copies them into one of four slots. No checksum is computed. FOLDER as there: then by
// TLS, with certificates on both sides. Prints a line of JSON.

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/monotonic_clock.h"

namespace penstock {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int kSlots = 4;
constexpr int kAhead = 2;

double Seconds(const rusage& used) {
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

std::string Text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One stream: answers each question with a step, until the asker goes.
class Steps final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Steps(const std::vector<uint8_t>& step) : step_(step) { StartRead(&question_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    at_ = 0;
    WriteOne();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (at_ < step_.size()) return WriteOne();
    StartRead(&question_);
  }
  void OnDone() override { delete this; }

 private:
  void WriteOne() {
    const size_t bytes = std::min(kPieceBytes, step_.size() - at_);
    const grpc::Slice slice(step_.data() + at_, bytes, grpc::Slice::STATIC_SLICE);
    piece_ = grpc::ByteBuffer(&slice, 1);
    at_ += bytes;
    StartWrite(&piece_);
  }

  const std::vector<uint8_t>& step_;
  size_t at_ = 0;
  grpc::ByteBuffer question_, piece_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(uint64_t bytes) : step_(bytes, 7) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Steps(step_);
  }

 private:
  const std::vector<uint8_t> step_;
};

[[noreturn]] void Help(uint64_t bytes, const char* folder, int told) {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (folder != nullptr) {
    const std::string at = std::string(folder) + "/";
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = Text(at + "authority.pem");
    options.pem_key_cert_pairs.push_back({Text(at + "key.pem"), Text(at + "certificate.pem")});
    credentials = grpc::SslServerCredentials(options);
  }
  Service service(bytes);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || write(told, &port, sizeof(port)) != sizeof(port)) _exit(1);
  server->Wait();
  _exit(0);
}

int Run(uint64_t bytes, int steps, const char* folder) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t helper = fork();
  if (helper == 0) Help(bytes, folder, ends[1]);
  int port = 0;
  if (read(ends[0], &port, sizeof(port)) != sizeof(port)) return 1;
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (folder != nullptr) {
    const std::string at = std::string(folder) + "/";
    credentials = grpc::SslCredentials(
        {Text(at + "authority.pem"), Text(at + "key.pem"), Text(at + "certificate.pem")});
  }
  grpc::GenericStub stub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port), credentials));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/bench.Steps/Take", &queue);
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    if (queue.Next(&tag, &ok) && ok) return;
    std::fprintf(stderr, "the stream has ended\n");
    kill(helper, SIGKILL);
    std::exit(1);
  };
  std::vector<std::vector<uint8_t>> memory(kSlots, std::vector<uint8_t>(bytes, 1));
  const grpc::Slice eight("question", 8);
  const auto ask = [&] {
    call->Write(grpc::ByteBuffer(&eight, 1), nullptr);
    wait();
  };
  const auto take = [&](int step) {
    uint8_t* to = memory[step % kSlots].data();
    for (uint64_t got = 0; got < bytes;) {
      grpc::ByteBuffer piece;
      call->Read(&piece, nullptr);
      wait();
      std::vector<grpc::Slice> slices;
      if (!piece.Dump(&slices).ok()) std::exit(1);
      for (const grpc::Slice& slice : slices) {
        std::memcpy(to + got, slice.begin(), slice.size());
        got += slice.size();
      }
    }
  };
  call->StartCall(nullptr);
  wait();
  ask();
  take(0);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const int64_t begin_ns = MonotonicNs();
  for (int step = 1; step <= std::min(kAhead, steps); ++step) ask();
  for (int step = 1; step <= steps; ++step) {
    take(step);
    if (step + kAhead <= steps) ask();
  }
  const double seconds = 1e-9 * static_cast<double>(MonotonicNs() - begin_ns);
  getrusage(RUSAGE_SELF, &after);
  const double gib = static_cast<double>(bytes) * steps / static_cast<double>(uint64_t{1} << 30);
  kill(helper, SIGTERM);
  rusage used{};
  int end = 0;
  wait4(helper, &end, 0, &used);
  std::printf("{\"asker_s_per_gib\": %.3f, \"helper_s_per_gib\": %.3f, \"gib_per_s\": %.2f}\n",
              (Seconds(after) - Seconds(before)) / gib, Seconds(used) / gib, gib / seconds);
  std::fflush(stdout);
  // Without waiting for what gRPC would put away.
  _exit(0);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return penstock::Run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]),
                       argc > 3 ? argv[3] : nullptr);
}
