// The daemon's session loop in its smallest form: accepts, attaches to one ring, and detaches
// whoever hangs up or dies. Tests and benches of the ring use it in place of the service.
//
// Threads:  one of its own, from Start() to the destructor.
// Owns:     the listening socket, its path, and the connections; the writer is the caller's.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/liveness.h"
#include "ring/writer.h"

namespace penstock {

class AttachServer {
 public:
  AttachServer(ring::Writer* writer, std::string pipeline, std::string socket_path)
      : writer_(writer), pipeline_(std::move(pipeline)), path_(std::move(socket_path)) {}

  ~AttachServer() {
    if (thread_.joinable()) {
      eventfd_write(stop_.get(), 1);
      thread_.join();
    }
    unlink(path_.c_str());
  }

  bool Start() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    unlink(path_.c_str());
    listener_ = ring::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    stop_ = ring::Descriptor(eventfd(0, EFD_CLOEXEC));
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 64) != 0) {
      return false;
    }
    thread_ = std::thread([this] { Serve(); });
    return true;
  }

 private:
  struct Session {
    ring::Descriptor socket;
    ring::Descriptor pidfd;
    int32_t pid = 0;
    uint32_t consumer = 0;  // 0 until it has attached
    std::vector<uint8_t> request;
  };

  void Serve() {
    std::list<Session> sessions;
    while (true) {
      std::vector<pollfd> entries = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Session& session : sessions) {
        entries.push_back({session.socket.get(), POLLIN | POLLRDHUP, 0});
        entries.push_back({session.pidfd.get(), POLLIN, 0});
      }
      if (poll(entries.data(), entries.size(), -1) < 0) continue;
      if (entries[0].revents != 0) return;
      size_t i = 2;
      for (auto session = sessions.begin(); session != sessions.end(); i += 2) {
        const bool died = (entries[i + 1].revents & POLLIN) != 0;
        const bool alive =
            !died && (entries[i].revents == 0 || Read(&*session, entries[i].revents));
        if (alive) {
          ++session;
          continue;
        }
        if (session->consumer != 0) writer_->Detach(session->consumer);
        session = sessions.erase(session);
      }
      if (entries[1].revents != 0) Accept(&sessions);
    }
  }

  void Accept(std::list<Session>* sessions) {
    ring::Descriptor made(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ring::Peer peer;
    if (!made || !ring::CheckPeer(made.get(), &peer).ok()) return;
    Session session;
    session.socket = std::move(made);
    session.pidfd = ring::Descriptor(peer.pidfd);
    session.pid = peer.pid;
    sessions->push_back(std::move(session));
  }

  // False when the session is over.
  bool Read(Session* session, short events) {
    uint8_t bytes[sizeof(ring::AttachRequest)];
    const ssize_t count = recv(session->socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0 || session->consumer != 0) return false;
    session->request.insert(session->request.end(), bytes, bytes + count);
    ring::ParsedRequest request;
    ring::Status status;
    switch (
        ring::ParseRequest(session->request.data(), session->request.size(), &request, &status)) {
      case ring::ParseState::kNeedMore:
        return (events & POLLRDHUP) == 0;
      case ring::ParseState::kRefused:
        break;
      case ring::ParseState::kRequest:
        if (request.pipeline != pipeline_) {
          status = {ring::Code::kNotFound, "no pipeline \"" + request.pipeline + "\""};
          break;
        }
        ring::ConsumerHandle handle;
        status = writer_->Attach(request.consumer, request.position, session->pid, &handle);
        if (!status.ok()) break;
        session->consumer = handle.id;
        return ring::SendReply(session->socket.get(), status, &handle).ok();
    }
    ring::SendReply(session->socket.get(), status, nullptr);
    return false;
  }

  ring::Writer* const writer_;
  const std::string pipeline_;
  const std::string path_;
  ring::Descriptor listener_;
  ring::Descriptor stop_;
  std::thread thread_;
};

}  // namespace penstock
