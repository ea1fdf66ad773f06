#include "server/service/sessions.h"

#include <sys/epoll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/ring_sink.h"
#include "spdlog/spdlog.h"

namespace penstock {

Sessions::~Sessions() {
  while (!sessions_.empty()) End(sessions_.begin()->first, "penstockd is stopping");
}

void Sessions::Attach(Visitor visitor, const ring::ParsedRequest& request) {
  Session session;
  ring::ConsumerHandle handle;
  const ring::Status status = TryAttach(visitor, request, &session, &handle);
  if (status.code != ring::Code::kOk) {
    ring::SendReply(visitor.socket.get(), status, nullptr);
    return;
  }
  session.visitor = std::move(visitor);
  const Key key = next_key_++;
  Session& kept = sessions_[key] = std::move(session);
  ring::Status watched = WatchOver(key, kept);
  const int socket = kept.visitor.socket.get();
  const ring::Status sent =
      ring::SendReply(socket, watched, watched.code == ring::Code::kOk ? &handle : nullptr);
  if (watched.code != ring::Code::kOk || sent.code != ring::Code::kOk) {
    End(key, "could not be answered");
    return;
  }
  spdlog::info("pipeline {}: consumer {} of group {} attached (process {})", kept.pipeline->name(),
               kept.consumer, request.group, kept.visitor.pid);
}

ring::Status Sessions::TryAttach(const Visitor& visitor, const ring::ParsedRequest& request,
                                 Session* session, ring::ConsumerHandle* handle) {
  if (sessions_.size() >= max_consumers_) {
    return {
        ring::Code::kResourceExhausted,
        absl::StrCat("too many consumers: connection_limits.max_consumers is ", max_consumers_)};
  }
  const auto pipeline = table_.Find(request.pipeline);
  if (!pipeline.ok()) return ToRing(pipeline.status());
  const ring::Status status = (*pipeline)->Attach(request.group, visitor.pid, handle);
  if (status.code != ring::Code::kOk) return status;
  session->pipeline = *pipeline;
  session->consumer = handle->id;
  return status;
}

ring::Status Sessions::WatchOver(Key key, Session& session) {
  // Whichever comes first: a forked child keeps the socket open after its parent's death, and a
  // process that closes the socket lives on. Without EPOLLIN nothing that a consumer writes wakes
  // us.
  const auto socket = loop_.Watch(session.visitor.socket.get(), EPOLLRDHUP | EPOLLHUP,
                                  [this, key](uint32_t) { End(key, "left"); });
  if (!socket.ok()) return ToRing(socket.status());
  session.socket_watch = *socket;
  if (!session.visitor.pidfd) return {};
  const auto process = loop_.Watch(session.visitor.pidfd.get(), EPOLLIN,
                                   [this, key](uint32_t) { End(key, "died"); });
  if (!process.ok()) return ToRing(process.status());
  session.process_watch = *process;
  return {};
}

void Sessions::End(Key key, const char* why) {
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return;
  Session session = std::move(found->second);
  sessions_.erase(found);
  loop_.Unwatch(session.socket_watch);
  loop_.Unwatch(session.process_watch);
  session.pipeline->Detach(session.consumer);
  spdlog::info("pipeline {}: consumer {} {} (process {})", session.pipeline->name(),
               session.consumer, why, session.visitor.pid);
}

}  // namespace penstock
