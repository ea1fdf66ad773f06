#include "server/service/attach/spec_requests.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/new_thread.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "penstock/v1/control.pb.h"
#include "server/engine/run/step_count.h"
#include "server/python/offers.h"
#include "server/service/socket/fair_places.h"
#include "server/service/state/overrides.h"
#include "server/service/stream/ring_sink.h"

namespace penstock {
namespace {

struct Parts {
  std::string text;
  std::string file_name;
  std::string base_directory;
  std::string cursor;
};

// `bytes` is at most ring::kMaxPartsBytes. The file is its sender's: it may shrink at any time,
// which a read survives and a mapping does not.
absl::Status ReadPart(int fd, uint64_t offset, uint32_t bytes, std::string* part) {
  part->resize(bytes);
  uint32_t have = 0;
  while (have < bytes) {
    const ssize_t count = pread(fd, part->data() + have, bytes - have, offset + have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::InvalidArgumentError(
          "the memory file of a request is missing, or shorter than the request says");
    }
    have += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> ReadParts(int fd, const uint32_t (&part_bytes)[4]) {
  Parts parts;
  std::string* const fields[] = {&parts.text, &parts.file_name, &parts.base_directory,
                                 &parts.cursor};
  // A pipe or a terminal would keep the thread.
  if (fd >= 0 && fcntl(fd, F_GET_SEALS) < 0) {
    return absl::InvalidArgumentError("a request's descriptor is no memory file");
  }
  uint64_t offset = 0;
  for (int i = 0; i < 4; ++i) {
    absl::Status status = ReadPart(fd, offset, part_bytes[i], fields[i]);
    if (!status.ok()) return status;
    offset += part_bytes[i];
  }
  return parts;
}

// A sealed memory file, which its reader may map.
absl::StatusOr<ring::Descriptor> ToMemoryFile(const std::string& text) {
  ring::Descriptor file(memfd_create("penstock-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return absl::ErrnoToStatus(errno, "cannot make a memory file");
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(file.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::ErrnoToStatus(errno, "cannot write a memory file");
    written += count;
  }
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return file;
}

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& response) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(response, &json, options);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("cannot write JSON: ", std::string(status.message())));
  }
  return json;
}

absl::StatusOr<std::string> ToJson(v1::Pipeline pipeline, std::string explanation) {
  // What the client has sent, and constants may be long.
  pipeline.clear_spec();
  v1::ValidatePipelineResponse response;
  *response.mutable_pipeline() = std::move(pipeline);
  response.set_explanation(std::move(explanation));
  return ToJson(response);
}

absl::StatusOr<std::string> ToJson(const StepCount& count) {
  google::protobuf::Struct answer;
  auto& fields = *answer.mutable_fields();
  if (count.steps) {
    // As JSON of protobuf has numbers of 64 bits.
    fields["steps"].set_string_value(absl::StrCat(*count.steps));
  } else {
    fields["why_not"].set_string_value(count.why_not);
  }
  return ToJson(answer);
}

World WorldOf(const ring::ParsedRequest& request) {
  const bool is_given = request.world_hosts > 0 || request.world_host > 0;
  return is_given ? World{request.world_hosts, request.world_host} : World();
}

// Until the other side of the connection has gone.
Unwanted WhileConnected(int socket) {
  return [socket]() -> absl::Status {
    pollfd look{socket, POLLRDHUP, 0};
    if (poll(&look, 1, 0) <= 0 || (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
      return absl::OkStatus();
    return absl::CancelledError("the caller has gone");
  };
}

}  // namespace

SpecRequests::SpecRequests(EventLoop& loop, PipelineTable& table, Access& access, StatsOf stats)
    : loop_(loop), table_(table), access_(access), stats_(std::move(stats)) {
  for (int i = 0; i < kThreads; ++i) {
    absl::StatusOr<std::thread> thread = NewThread("control plane", [this] { Work(); });
    if (thread.ok()) {
      threads_.push_back(*std::move(thread));
    } else if (threads_.empty()) {
      status_ = thread.status();
    }
  }
}

SpecRequests::~SpecRequests() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (auto& [key, watched] : watched_) {
    loop_.Unwatch(watched.socket_watch);
    loop_.Unwatch(watched.process_watch);
  }
}

void SpecRequests::Serve(Visitor visitor, const ring::ParsedRequest& parsed,
                         ring::Descriptor file) {
  auto request = std::make_shared<Request>();
  request->visitor = std::move(visitor);
  request->parsed = parsed;
  request->file = std::move(file);
  const int socket = request->visitor.socket.get();
  const uid_t user = request->visitor.who.uid;
  if (!HasRoomFor(user)) {
    ring::SendAnswer(socket,
                     {ring::Code::kResourceExhausted,
                      absl::StrCat("too many requests at a time: limit ", kMaxRequests)},
                     -1);
    return;
  }
  if (parsed.temporary && !WatchOver(next_key_++, request)) {
    ring::SendAnswer(socket, {ring::Code::kResourceExhausted, "no descriptor can be watched"}, -1);
    return;
  }
  Enqueue({user, [this, request] { Answer(*request); }});
}

bool SpecRequests::HasRoomFor(uid_t user) {
  const auto temporary =
      static_cast<size_t>(std::count_if(watched_.begin(), watched_.end(), [user](const auto& item) {
        return item.second.request->visitor.who.uid == user;
      }));
  if (!MayTakePlace(watched_.size(), temporary, kMaxRequests)) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto waiting = static_cast<size_t>(std::count_if(
      queue_.begin(), queue_.end(), [user](const Task& task) { return task.user == user; }));
  return MayTakePlace(queue_.size(), waiting, kMaxRequests);
}

bool SpecRequests::WatchOver(Key key, const std::shared_ptr<Request>& request) {
  // As in Sessions: a forked child keeps the socket open after its parent's death.
  const auto socket = loop_.Watch(request->visitor.socket.get(), EPOLLRDHUP | EPOLLHUP,
                                  [this, key](uint32_t) { Abandon(key); });
  if (!socket.ok()) return false;
  Watched watched{request, *socket, 0};
  if (request->visitor.pidfd) {
    const auto process =
        loop_.Watch(request->visitor.pidfd.get(), EPOLLIN, [this, key](uint32_t) { Abandon(key); });
    if (!process.ok()) {
      loop_.Unwatch(*socket);
      return false;
    }
    watched.process_watch = *process;
  }
  watched_[key] = std::move(watched);
  return true;
}

void SpecRequests::Abandon(Key key) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  const std::shared_ptr<Request> request = std::move(found->second.request);
  loop_.Unwatch(found->second.socket_watch);
  loop_.Unwatch(found->second.process_watch);
  watched_.erase(found);
  std::lock_guard<std::mutex> lock(request->mutex);
  request->abandoned = true;
  // Else Create() sees it.
  if (request->created.expired()) return;
  Enqueue({request->visitor.who.uid, [this, created = request->created] { Delete(created); }});
}

void SpecRequests::Delete(const std::weak_ptr<Pipeline>& created) {
  const std::shared_ptr<Pipeline> pipeline = created.lock();
  if (pipeline == nullptr) return;
  table_.Delete(pipeline->name(), /*visible=*/nullptr, /*expected=*/pipeline.get()).IgnoreError();
}

void SpecRequests::Enqueue(Task task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::deque<SpecRequests::Task>::iterator SpecRequests::NextTask() {
  return std::find_if(queue_.begin(), queue_.end(), [this](const Task& task) {
    const auto running = running_.find(task.user);
    return running == running_.end() || running->second < kThreadsOfUser;
  });
}

void SpecRequests::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || NextTask() != queue_.end(); });
    if (stopping_) return;
    const auto next = NextTask();
    Task task = std::move(*next);
    queue_.erase(next);
    ++running_[task.user];
    lock.unlock();
    task.work();
    // It may own a visitor, whose end takes system calls.
    task.work = nullptr;
    lock.lock();
    // The others looked past this user's further tasks, which this thread takes up again.
    if (--running_[task.user] == 0) running_.erase(task.user);
  }
}

void SpecRequests::Answer(Request& request) {
  absl::StatusOr<std::string> answer = Run(request);
  absl::Status status = answer.status();
  ring::Descriptor file;
  if (answer.ok() && !answer->empty()) {
    absl::StatusOr<ring::Descriptor> made = ToMemoryFile(*answer);
    status = made.status();
    if (made.ok()) file = *std::move(made);
  }
  ring::SendAnswer(request.visitor.socket.get(), ToRing(status), file.get());
}

absl::StatusOr<std::string> SpecRequests::Run(Request& request) {
  const ring::ParsedRequest& parsed = request.parsed;
  if (parsed.operation == ring::Operation::kDelete) {
    absl::Status status = access_.Admit(request.visitor.who, v1::RIGHT_CONTROL, parsed.pipeline);
    const auto visible = [&](const std::string& name) {
      return access_.Has(request.visitor.who, v1::RIGHT_READ, name);
    };
    if (status.ok()) {
      status = table_.Delete(parsed.pipeline, visible, /*expected=*/nullptr,
                             AskerOf(request.visitor.who));
    }
    if (!status.ok()) return status;
    return std::string();
  }
  if (parsed.operation == ring::Operation::kSkipped) return Skipped(request);
  if (parsed.operation == ring::Operation::kStats) return Stats(request);
  if (parsed.operation == ring::Operation::kOffer) return Offer(request);
  absl::StatusOr<Parts> parts = ReadParts(request.file.get(), parsed.part_bytes);
  if (!parts.ok()) return parts.status();
  if (parsed.operation == ring::Operation::kRedivide) return Redivide(request, parts->text);
  v1::SpecSource source;
  source.mutable_text()->set_text(std::move(parts->text));
  source.mutable_text()->set_file_name(std::move(parts->file_name));
  source.set_base_directory(std::move(parts->base_directory));
  source.mutable_overrides()->set_name(parsed.pipeline);
  const auto spec = ResolveSource(source);
  if (!spec.ok()) return spec.status();
  absl::Status admitted = access_.Admit(request.visitor.who, v1::RIGHT_CONTROL, spec->name());
  if (!admitted.ok()) return admitted;
  if (parsed.operation == ring::Operation::kCreate) return Create(request, *spec, parts->cursor);
  const auto checked = table_.Check(*spec, WhileConnected(request.visitor.socket.get()),
                                    WorldOf(parsed), request.visitor.who.uid);
  if (!checked.ok()) return checked.status();
  if (parsed.operation == ring::Operation::kCount) return ToJson(CountSteps(*checked->plan));
  return ToJson(Describe(*checked), checked->plan->Explain());
}

PipelineTable::Visible SpecRequests::VisibleTo(const Request& request) const {
  return [this, who = request.visitor.who](const std::string& name) {
    return access_.Has(who, v1::RIGHT_READ, name);
  };
}

absl::StatusOr<std::shared_ptr<Pipeline>> SpecRequests::Readable(const Request& request) const {
  const std::string& name = request.parsed.pipeline;
  if (absl::Status status = access_.Admit(request.visitor.who, v1::RIGHT_READ, name); !status.ok())
    return status;
  return table_.Find(name, VisibleTo(request));
}

absl::StatusOr<std::string> SpecRequests::Skipped(const Request& request) const {
  const auto pipeline = Readable(request);
  if (!pipeline.ok()) return pipeline.status();
  return ToJson((*pipeline)->Skipped());
}

absl::StatusOr<std::string> SpecRequests::Stats(const Request& request) const {
  const auto pipeline = Readable(request);
  if (!pipeline.ok()) return pipeline.status();
  return ToJson(stats_(**pipeline, VisibleTo(request)));
}

absl::StatusOr<std::string> SpecRequests::Redivide(const Request& request,
                                                   const std::string& text) const {
  const ring::ParsedRequest& parsed = request.parsed;
  absl::Status status = access_.Admit(request.visitor.who, v1::RIGHT_CONTROL, parsed.pipeline);
  if (!status.ok()) return status;
  const auto pipeline = table_.Find(parsed.pipeline, VisibleTo(request));
  if (!pipeline.ok()) return pipeline.status();
  uint64_t step = 0;
  if (!absl::SimpleAtoi(text, &step) || step > kMaxChangeStep) {
    return absl::InvalidArgumentError(absl::StrCat("step: expected a number of at most ",
                                                   kMaxChangeStep, ", found \"", text.substr(0, 32),
                                                   "\""));
  }
  RequestedChange requested;
  requested.step = step;
  requested.change.set_time_unix_ms(absl::ToUnixMillis(absl::Now()));
  requested.change.mutable_world()->set_hosts(parsed.world_hosts);
  requested.change.mutable_world()->set_host(parsed.world_host);
  v1::UpdatePipelineResponse response;
  absl::StatusOr<v1::Change> change = (*pipeline)->Update(requested, response.mutable_notice());
  if (!change.ok()) return change.status();
  *response.mutable_change() = *std::move(change);
  response.set_etag((*pipeline)->etag());
  return ToJson(response);
}

absl::StatusOr<std::string> SpecRequests::Offer(Request& request) {
  const Identity& who = request.visitor.who;
  if (absl::Status status = access_.CountRequest(who); !status.ok()) return status;
  if (who.uid == geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat("this daemon is of user ", who.uid,
                                                      ", and starts that user's workers itself"));
  }
  absl::Status added =
      python::TheOffers().Add(who.uid, std::move(request.file), std::move(request.visitor.pidfd));
  if (!added.ok()) return added;
  return std::string();
}

absl::StatusOr<std::string> SpecRequests::Create(Request& request, const v1::PipelineSpec& spec,
                                                 const std::string& cursor) {
  PipelineOptions options;
  options.cursor = cursor;
  options.world = WorldOf(request.parsed);
  options.fewest_hosts = request.parsed.fewest_hosts;
  options.owner = {"", request.visitor.who.uid, request.visitor.pid};
  options.created_by = AskerOf(request.visitor.who);
  options.unwanted = WhileConnected(request.visitor.socket.get());
  const auto pipeline = table_.Create(
      spec, std::move(options),
      request.parsed.temporary ? PipelineTable::Life::kTemporary : PipelineTable::Life::kKept);
  if (!pipeline.ok()) return pipeline.status();
  if (request.parsed.temporary) {
    bool abandoned;
    {
      std::lock_guard<std::mutex> lock(request.mutex);
      abandoned = request.abandoned;
      request.created = *pipeline;
    }
    if (abandoned) {
      Delete(*pipeline);
      return absl::CancelledError("the creator of a temporary pipeline has gone");
    }
  }
  return ToJson((*pipeline)->Describe(), "");
}

}  // namespace penstock
