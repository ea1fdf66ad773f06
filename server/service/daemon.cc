#include "server/service/daemon.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/descriptor.h"
#include "server/base/file.h"
#include "server/service/control_server.h"
#include "server/service/event_loop.h"
#include "server/service/listener.h"
#include "server/service/pipeline_journal.h"
#include "server/service/pipeline_table.h"
#include "server/service/reception.h"
#include "server/service/sessions.h"
#include "server/service/socket_file.h"
#include "server/service/spec_requests.h"
#include "server/service/state_folder.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

void TellReady(int fd) {
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = write(fd, "\n", 1);
  close(fd);
}

// Stops the loop at a signal or at the owner's end.
absl::Status WatchForTheEnd(EventLoop& loop, int signals_fd, int owner_fd) {
  auto watch = loop.Watch(signals_fd, EPOLLIN, [&loop, signals_fd](uint32_t) {
    signalfd_siginfo signal;
    if (read(signals_fd, &signal, sizeof(signal)) != sizeof(signal)) return;
    spdlog::info("stopping: {}", strsignal(static_cast<int>(signal.ssi_signo)));
    // The next one has its default effect.
    const sigset_t signals = StopSignals();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    loop.Stop();
  });
  if (!watch.ok() || owner_fd < 0) return watch.status();
  // A pidfd turns readable, a pipe hangs up; what is written into the pipe means nothing.
  return loop
      .Watch(owner_fd, EPOLLIN | EPOLLHUP,
             [&loop](uint32_t) {
               spdlog::info("stopping: the owner has gone");
               loop.Stop();
             })
      .status();
}

// A read that never returns, of a disk or a network that hangs, must not keep the daemon: its socket is gone by then, and nothing of
// a batch that is not published can be seen.
constexpr unsigned kStopSeconds = 5;

void EndNow(int) {
  constexpr char kText[] = "penstockd: work did not end in time after the stop; ended without it\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

}  // namespace

void BlockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

absl::Status RunDaemon(const DaemonOptions& options) {
  const v1::DaemonConfig& config = options.config;
  const v1::ConnectionLimits& limits = config.connection_limits();
  absl::StatusOr<std::unique_ptr<SocketFile>> socket = SocketFile::Create(config.socket());
  if (!socket.ok()) return socket.status();
  if (options.owner_fd >= 0) (*socket)->RemoveDirectoryToo();
  // Connections wait in the backlog from here on, while the rest is being set up.
  TellReady(options.ready_fd);

  absl::StatusOr<std::unique_ptr<EventLoop>> loop_or = EventLoop::Create();
  if (!loop_or.ok()) return loop_or.status();
  EventLoop& loop = **loop_or;
  const sigset_t stop_signals = StopSignals();
  const ring::Descriptor signals(signalfd(-1, &stop_signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return absl::ErrnoToStatus(errno, "cannot receive signals");
  absl::Status status = WatchForTheEnd(loop, signals.get(), options.owner_fd);
  if (!status.ok()) return status;

  std::unique_ptr<PipelineJournal> journal;
  if (!options.state_directory.empty()) {
    absl::StatusOr<std::unique_ptr<StateFolder>> folder =
        StateFolder::Open(options.state_directory);
    if (folder.ok()) {
      journal = std::make_unique<PipelineJournal>(*std::move(folder));
    } else if (options.state_is_required) {
      return folder.status();
    } else {
      spdlog::warn("pipelines will not come back after a crash: {}", folder.status().ToString());
    }
  }
  PipelineTable table(LocalFileSystem(), config.worker_defaults(), journal.get());
  Sessions sessions(loop, table, limits.max_consumers(), journal.get(), options.rejoin);
  for (const auto& pipeline : table.Restore()) sessions.Expect(pipeline);
  absl::StatusOr<std::unique_ptr<ControlServer>> control =
      ControlServer::Create(loop, table, limits);
  if (!control.ok()) return control.status();
  SpecRequests specs(loop, table);
  Reception reception(
      loop, absl::Milliseconds(limits.first_bytes_timeout_ms()),
      {[&](Visitor visitor) { (*control)->Adopt(std::move(visitor)); },
       [&](Visitor visitor, const ring::ParsedRequest& request) {
         sessions.Attach(std::move(visitor), request);
       },
       [&](Visitor visitor, const ring::ParsedRequest& request, ring::Descriptor file) {
         specs.Serve(std::move(visitor), request, std::move(file));
       }});
  const std::set<uid_t> allowed(config.allowed_uids().begin(), config.allowed_uids().end());
  absl::StatusOr<std::unique_ptr<Listener>> listener =
      Listener::Create(loop, (*socket)->fd(), allowed,
                       [&](Visitor visitor) { reception.Welcome(std::move(visitor)); });
  if (!listener.ok()) return listener.status();

  spdlog::info("penstockd (process {}) serves {}", getpid(), config.socket());
  loop.Run();
  listener->reset();
  socket->reset();
  signal(SIGALRM, EndNow);
  alarm(kStopSeconds);
  // Before the sessions go, so that consumers read this and not a hang-up.
  table.Close(absl::UnavailableError("penstockd was stopped; start it again and attach anew"));
  return absl::OkStatus();
}

}  // namespace penstock
