// A ring_server in its own process, for the tests of the clients; and, after its death, one in its
// place.
//
// Threads:  one.
// Owns:     the process, which ends with the object, and a folder with its socket.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace penstock {

class ServerProcess {
 public:
  // Returns when the server listens.
  explicit ServerProcess(const std::string& program, std::vector<std::string> options = {}) {
    char pattern[] = "/tmp/penstock-test-XXXXXX";
    if (mkdtemp(pattern) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    options.insert(options.begin(), {program, socket()});
    words_ = std::move(options);
    Start();
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    Kill();
    close(input_);
    unlink(socket().c_str());
    rmdir(folder_.c_str());
  }

  std::string socket() const { return folder_ + "/socket"; }

  // Another one at the same socket, with the same options. REQUIRES: Kill().
  void StartAgain() {
    close(input_);
    Start();
  }

  void Signal(int number) { kill(pid_, number); }

  // Lets a server that holds at a step go on.
  void Go() {
    if (write(input_, "\n", 1) != 1) throw std::runtime_error("ring_server has ended");
  }

  // kill -9, and waits until it is gone.
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  void Start() {
    int to_server[2], from_server[2];
    if (pipe(to_server) != 0 || pipe(from_server) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to_server[0], 0);
      dup2(from_server[1], 1);
      for (int fd : {to_server[0], to_server[1], from_server[0], from_server[1]}) close(fd);
      std::vector<char*> arguments;
      for (std::string& word : words_) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(words_[0].c_str(), arguments.data());
      _exit(127);
    }
    close(to_server[0]);
    close(from_server[1]);
    input_ = to_server[1];
    char line[6];
    size_t have = 0;
    while (have < sizeof line) {
      const ssize_t count = read(from_server[0], line + have, sizeof line - have);
      if (count <= 0) throw std::runtime_error("ring_server did not start");
      have += static_cast<size_t>(count);
    }
    close(from_server[0]);
  }

  std::string folder_;
  std::vector<std::string> words_;
  pid_t pid_ = 0;
  int input_ = -1;
};

}  // namespace penstock
