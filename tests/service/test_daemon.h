// A whole daemon on a thread of the test, with a folder of its own.
#pragma once

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>
#include <filesystem>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "penstock/v1/control.grpc.pb.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/reader.h"
#include "server/service/daemon/daemon.h"
#include "server/service/daemon/daemon_config.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {

class TestDaemon {
 public:
  explicit TestDaemon(v1::DaemonConfig config = {}) {
    BlockStopSignals();
    int owner[2], ready[2];
    REQUIRE(pipe2(owner, O_CLOEXEC) == 0);
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    const ring::Descriptor ready_end(ready[0]);
    owner_ = ring::Descriptor(owner[1]);
    owner_reading_ = ring::Descriptor(owner[0]);
    DaemonOptions options;
    options.config = std::move(config);
    options.config.set_socket(socket());
    options.config.mutable_worker_defaults()->set_workers(1);
    REQUIRE(CompleteDaemonConfig(&options.config).ok());
    options.owner_fd = owner[0];
    options.ready_fd = ready[1];
    thread_ = std::thread([this, &options] { result_ = RunDaemon(std::move(options)); });
    char byte;
    REQUIRE(read(ready_end.get(), &byte, 1) == 1);
  }
  ~TestDaemon() { (void)Stop(); }

  absl::Status Stop() {
    { const ring::Descriptor closed = std::move(owner_); }
    if (thread_.joinable()) thread_.join();
    // What would end the process if the daemon had not ended in time.
    alarm(0);
    return result_;
  }

  std::string socket() const { return folder_ / "run/penstock.sock"; }
  const ScratchFolder& folder() const { return folder_; }

  int Connect() const {
    int fd = -1;
    REQUIRE(ring::ConnectToDaemon(socket(), 1'000'000'000, &fd).ok());
    return fd;
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateInsecureChannelFromFd("test", Connect());
  }
  std::unique_ptr<v1::PipelineService::Stub> Stub() const {
    return v1::PipelineService::NewStub(Channel());
  }

  // Creates a pipeline over one shard of `records` records in batches of 4.
  grpc::Status CreateCounter(const std::string& name, int64_t records,
                             const std::string& more_stages = "") const {
    // A shard that is written again is another one, to a pipeline that reads it.
    const std::string shard = folder_ / (name + ".tfrecord");
    if (!std::filesystem::exists(shard)) WriteShard(shard, 0, records);
    v1::CreatePipelineRequest request;
    request.mutable_source()->mutable_text()->set_text(CounterSpec(name) + more_stages);
    request.mutable_source()->set_base_directory(folder_.path());
    v1::CreatePipelineResponse response;
    grpc::ClientContext context;
    return Stub()->CreatePipeline(&context, request, &response);
  }
  static std::string CounterSpec(const std::string& name) {
    return "name: '" + name + "' stage { tfrecord { files: '" + name +
           ".tfrecord' } } stage { parse_example { feature { key: 'n' int64 {} } } }"
           " stage { batch { batch_size: 4 } }";
  }

  ring::Status Attach(const std::string& pipeline, std::unique_ptr<ring::Reader>* reader) const {
    ring::Attachment attachment;
    const ring::Status status =
        ring::Attach(socket(), pipeline, "default", 5'000'000'000, &attachment);
    if (!status.ok()) return status;
    return ring::Reader::Open(attachment, reader);
  }

 private:
  ScratchFolder folder_;
  ring::Descriptor owner_;
  ring::Descriptor owner_reading_;
  std::thread thread_;
  absl::Status result_;
};

}  // namespace penstock::test
