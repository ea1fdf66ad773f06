// Processes of other users that offer workers, played by threads of the test.
#pragma once

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/python/offers.h"
#include "tests/python/shell_worker.h"
#include "tests/support/catch.h"

namespace penstock::python::test {

// Users of no process here, one for each test, since offers are the daemon's for ever.
inline uid_t NewUser() {
  static uid_t next = 700'000;
  return next++;
}

inline std::pair<ring::Descriptor, ring::Descriptor> Packets(int type = SOCK_SEQPACKET) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) == 0);
  return {ring::Descriptor(ends[0]), ring::Descriptor(ends[1])};
}

// A request as its keeper gets it: the text, and inputs, outputs, the worker's socket, where its
// stack goes, and the keeper's socket.
struct Request {
  std::string text;
  std::vector<ring::Descriptor> files;
};

inline Request Receive(int socket) {
  char text[4096];
  iovec part = {text, sizeof(text)};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  Request request;
  if (got <= 0) return request;
  request.text.assign(text, static_cast<size_t>(got));
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  const size_t count = head == nullptr ? 0 : (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int file;
    std::memcpy(&file, CMSG_DATA(head) + i * sizeof(int), sizeof(file));
    request.files.emplace_back(file);
  }
  return request;
}

// Of a shell's script, with its socket as descriptor 6; "ended …" is told.
inline void RunWorker(const FunctionFile& shell, Request request) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, request.files[2].get(), 6);
  posix_spawn_file_actions_addchdir_np(&actions, shell.folder.c_str());
  std::vector<std::string> words = {shell.program, shell.flags[0], shell.flags[1]};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string path = shell.environment[0];
  char* environment[] = {path.data(), nullptr};
  pid_t process = -1;
  REQUIRE(posix_spawn(&process, "/bin/sh", &actions, nullptr, arguments.data(), environment) == 0);
  posix_spawn_file_actions_destroy(&actions);
  const int control = request.files[4].get();
  request.files[2] = ring::Descriptor();
  // Whatever it is told, and however it lets go, is the end.
  std::thread ends([control, process] {
    pollfd look = {control, POLLIN, 0};
    poll(&look, 1, -1);
    kill(process, SIGKILL);
  });
  int status = 0;
  waitpid(process, &status, 0);
  const std::string how = WIFSIGNALED(status)
                              ? absl::StrCat("ended SIG", sigabbrev_np(WTERMSIG(status)))
                              : "ended exit status 0";
  send(control, how.data(), how.size(), MSG_NOSIGNAL);
  shutdown(control, SHUT_RDWR);
  ends.join();
}

// A process of a user that offers workers: `answers` is called with each request.
class Keeper {
 public:
  Keeper(uid_t user, std::function<void(Request)> answers) : answers_(std::move(answers)) {
    auto [ours, theirs] = Packets();
    socket_ = std::move(ours);
    REQUIRE(TheOffers().Add(user, std::move(theirs), {}).ok());
    thread_ = std::thread([this] {
      while (true) {
        Request request = Receive(socket_.get());
        if (request.text.empty()) return;
        ++asked_;
        last_ = request.text;
        answering_.emplace_back([this, given = std::make_shared<Request>(std::move(request))] {
          answers_(std::move(*given));
        });
      }
    });
  }
  ~Keeper() {
    Leave();
    for (std::thread& thread : answering_) thread.join();
  }
  void Leave() {
    shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  int asked() const { return asked_; }
  const std::string& last() const { return last_; }

 private:
  std::function<void(Request)> answers_;
  ring::Descriptor socket_;
  std::atomic<int> asked_{0};
  std::string last_;
  std::vector<std::thread> answering_;
  std::thread thread_;
};

inline FunctionFile OfUser(uid_t user) {
  FunctionFile function;
  function.user = user;
  function.path = "/proc/1/fd/1";
  function.code = "abc";
  return function;
}

inline std::function<void(Request)> Runs(const FunctionFile& shell) {
  return [shell](Request request) { RunWorker(shell, std::move(request)); };
}

}  // namespace penstock::python::test
