#include "server/service/daemon/daemon.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/local_file.h"
#include "base/monotonic_clock.h"
#include "base/processors.h"
#include "base/rooted_file_system.h"
#include "io/file/shared_maps.h"
#include "io/remote/remote_file_system.h"
#include "ring/descriptor.h"
#include "ring/memory_limit.h"
#include "server/cuda/left_over.h"
#include "server/engine/share/shared_prefixes.h"
#include "server/helpers/helpers.h"
#include "server/service/attach/reception.h"
#include "server/service/attach/restorer.h"
#include "server/service/attach/sessions.h"
#include "server/service/attach/spec_requests.h"
#include "server/service/control/control_server.h"
#include "server/service/daemon/remote_config.h"
#include "server/service/daemon/state_keeper.h"
#include "server/service/daemon/watchdog.h"
#include "server/service/http/http_server.h"
#include "server/service/pipeline/death_notes.h"
#include "server/service/pipeline/out_of_memory_kills.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/access.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/settings.h"
#include "server/service/socket/socket_file.h"
#include "server/service/socket/socket_keeper.h"
#include "server/service/socket/tcp_listener.h"
#include "server/service/state/pipeline_journal.h"
#include "server/service/state/state_folder.h"
#include "server/service/stream/ring_sink.h"
#include "server/service/tune/monitor.h"
#include "server/service/tune/tuner.h"
#include "server/service/watch/hidden_names.h"
#include "server/service/watch/log_output.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

sigset_t Signals(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  return signals;
}

void TellReady(int fd) {
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = write(fd, "\n", 1);
  close(fd);
}

absl::StatusOr<std::unique_ptr<SocketFile>> OpenSocket(DaemonOptions& options) {
  ring::Descriptor given = options.service_manager.TakeSocket();
  if (given) return SocketFile::Adopt(std::move(given));
  return SocketFile::Create(options.config.socket());
}

// Where files are written: below cache { roots }. Without those, nowhere beside data_roots.
std::unique_ptr<Disk> OpenCacheRoots(const v1::DaemonConfig& config) {
  const v1::CacheOptions& cache = config.cache();
  if (cache.roots().empty() && !config.data_roots().empty()) return nullptr;
  return MakeLimitedDisk(
      {cache.roots().begin(), cache.roots().end()},
      cache.max_bytes() == 0 ? UINT64_MAX : static_cast<uint64_t>(cache.max_bytes()));
}

absl::StatusOr<std::unique_ptr<FileSystem>> OpenFiles(const v1::DaemonConfig& config, Disk* disk) {
  if (config.data_roots().empty()) return MakeLocalFileSystem(*disk);
  return MakeRootedFileSystem({config.data_roots().begin(), config.data_roots().end()}, disk);
}

// Null where no addresses are read, but those of this machine's files.
absl::StatusOr<std::unique_ptr<FileSystem>> OpenAddresses(FileSystem& local,
                                                          const v1::DaemonConfig& config,
                                                          bool has_owner) {
  absl::StatusOr<RemoteOptions> remote =
      RemoteOptionsOf(config, ProcessEnvironment(), has_owner, ring::ReadMemoryAtHand().bytes);
  if (!remote.ok()) return remote.status();
  if (remote->is_off) return std::unique_ptr<FileSystem>();
  auto files = std::make_unique<RemoteFileSystem>(local, *std::move(remote));
  if (absl::Status status = files->status(); !status.ok()) return status;
  return files;
}

// Null where nothing is to be shared.
std::shared_ptr<SharedPrefixes> MakePrefixes(const v1::SharedPrefixOptions& options) {
  constexpr uint64_t kBytesMax = uint64_t{256} << 20;
  SharedPrefixOptions made;
  made.bytes_max = options.has_max_bytes()
                       ? static_cast<uint64_t>(options.max_bytes())
                       : std::min(kBytesMax, ring::ReadMemoryAtHand().bytes / 8);
  made.element_ns_min = uint64_t{1000} * static_cast<uint64_t>(options.min_element_us());
  return made.bytes_max == 0 ? nullptr : SharedPrefixes::Create(made);
}

// Null where no file is to be mapped.
std::shared_ptr<SharedMaps> MakeMaps(const v1::MappedFileOptions& options) {
  const uint64_t bytes = options.has_max_bytes() ? static_cast<uint64_t>(options.max_bytes())
                                                 : ring::ReadMemoryAtHand().bytes / 8;
  return bytes == 0 ? nullptr : std::make_shared<SharedMaps>(bytes);
}

// SIGHUP: takes the configuration that its file holds now, or leaves all as it is.
class Reload {
 public:
  Reload(const DaemonOptions& options, Settings& settings, PipelineTable& table)
      : options_(options), settings_(settings), table_(table) {}

  void operator()() const {
    options_.service_manager.Tell(
        absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", MonotonicNs() / 1000));
    const absl::Status status = TakeConfig();
    if (status.ok()) {
      spdlog::info("took the configuration anew");
    } else {
      spdlog::error("kept the configuration as it was: {}", std::string(status.message()));
    }
    options_.service_manager.Tell("READY=1");
  }

 private:
  absl::Status TakeConfig() const {
    absl::StatusOr<v1::DaemonConfig> config = options_.read_config();
    if (!config.ok()) return config.status();
    absl::Status status = settings_.Replace(*std::move(config));
    if (!status.ok()) return status;
    ConfigureLog(*settings_.Get());
    table_.SetDefaults(settings_.Get()->worker_defaults());
    table_.SetMemoryLimits(settings_.Get()->memory());
    table_.SetQuotas(settings_.Get()->user_quota());
    return absl::OkStatus();
  }

  const DaemonOptions& options_;
  Settings& settings_;
  PipelineTable& table_;
};

// Feeds the service manager's watchdog as long as every worker gets on; by its timer it also shows
// that this thread does.
class WatchdogFeeder {
 public:
  WatchdogFeeder(EventLoop& loop, const ServiceManager& manager, const PipelineTable& table)
      : loop_(loop),
        manager_(manager),
        table_(table),
        watchdog_(absl::ToInt64Nanoseconds(manager.watchdog()) / 2, WaitsForMachine) {
    if (manager_.watchdog() > absl::ZeroDuration()) Feed();
  }

 private:
  void Feed() {
    std::vector<WorkerPulse> pulses;
    for (const auto& pipeline : table_.List()) {
      const std::vector<WorkerPulse> more = pipeline->Pulses();
      pulses.insert(pulses.end(), more.begin(), more.end());
    }
    const std::vector<int32_t> hanging = watchdog_.Look(pulses, loop_.Now());
    if (hanging.empty()) {
      manager_.Tell("WATCHDOG=1");
    } else {
      spdlog::error("a worker hangs (thread {}): the watchdog is not fed", hanging[0]);
    }
    // Often, since on a machine that hardly gets on the loop's time goes slower than the manager's.
    loop_.StartTimer(std::min(manager_.watchdog() / 8, kLongestFeed), [this] { Feed(); });
  }

  static constexpr absl::Duration kLongestFeed = absl::Seconds(1);

  EventLoop& loop_;
  const ServiceManager& manager_;
  const PipelineTable& table_;
  Watchdog watchdog_;
};

// Looks for calls to disks that hang, and for those that have returned at last.
class HangWatch {
 public:
  HangWatch(EventLoop& loop, const PipelineTable& table, Sessions& sessions)
      : loop_(loop), table_(table), sessions_(sessions) {
    Look();
  }

 private:
  static constexpr absl::Duration kLookTime = absl::Milliseconds(250);

  void Look() {
    table_.LookForHungReads();
    sessions_.TellIfSlow();
    loop_.StartTimer(kLookTime, [this] { Look(); });
  }

  EventLoop& loop_;
  const PipelineTable& table_;
  Sessions& sessions_;
};

// Stops the loop at a signal or at the owner's end; calls `reload` at SIGHUP, if there is one.
absl::Status WatchSignals(EventLoop& loop, int signals_fd, int owner_fd,
                          std::function<void()> reload) {
  auto watch = loop.Watch(signals_fd, EPOLLIN, [&loop, signals_fd, reload](uint32_t) {
    signalfd_siginfo signal;
    if (read(signals_fd, &signal, sizeof(signal)) != sizeof(signal)) return;
    if (signal.ssi_signo == SIGHUP && reload != nullptr) {
      reload();
      return;
    }
    // Others have one of these write their logs anew, and whoever sends it here does not want the
    // daemon's end.
    if (signal.ssi_signo == SIGUSR1 || signal.ssi_signo == SIGUSR2) {
      spdlog::info("ignored {} of process {}", strsignal(static_cast<int>(signal.ssi_signo)),
                   signal.ssi_pid);
      return;
    }
    spdlog::info("stopping: {}", strsignal(static_cast<int>(signal.ssi_signo)));
    // The next one has its default effect.
    const sigset_t stop = Signals({SIGTERM, SIGINT});
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
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

// How long nobody is served at a start so that nobody finds a pipeline that is about to come back
// still on its way.
constexpr absl::Duration kPatienceAtStart = absl::Seconds(2);

// A read that never returns, of a disk or a network that hangs, must not keep the daemon: its
// socket is gone by then, and nothing of a batch that is not published can be seen.
void EndNow(int) {
  constexpr char kText[] = "penstockd: work did not end in time after the stop; ended without it\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

void EndAfter(int timeout_ms) {
  signal(SIGALRM, EndNow);
  itimerval timer{};
  timer.it_value.tv_sec = timeout_ms / 1000;
  timer.it_value.tv_usec = timeout_ms % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Takes as many descriptors as the system lets it have: each consumer needs some. Without a few
// gRPC aborts, and with hardly more nobody would ever get in.
absl::Status TakeDescriptors() {
  constexpr rlim_t kLeast = 32;
  constexpr rlim_t kMost = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::max(before, std::min(limit.rlim_max, kMost));
  if (limit.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  if (limit.rlim_cur >= kLeast) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "too few descriptors to serve anybody: the limit is ", limit.rlim_cur, ", expected at least ",
      kLeast, ", and more for each consumer and pipeline (ulimit -n)"));
}

// Null where it helps nobody.
absl::StatusOr<std::unique_ptr<HelperServer>> HelpOthers(const v1::DaemonConfig& config,
                                                         FileSystem& files,
                                                         std::shared_ptr<SharedMaps> maps,
                                                         const PipelineTable& table) {
  ServedStream::Means means;
  means.files = &files;
  means.maps = std::move(maps);
  means.workers = config.worker_defaults().workers();
  means.worker_nice = config.worker_defaults().worker_nice();
  means.read_deadline_ns = uint64_t{1'000'000} * config.worker_defaults().read_deadline_ms();
  means.account = [&table](const v1::PipelineSpec& spec) { return table.WorkAccountOf(spec); };
  absl::StatusOr<std::unique_ptr<HelperServer>> server = Serve(config.serve(), std::move(means));
  if (server.ok() && *server != nullptr) {
    spdlog::info(
        "helps daemons of other hosts at {}{}", config.serve().address(),
        config.serve().certificate().empty() ? ", without TLS" : " those with a certificate");
  }
  return server;
}

// Null where there is no journal, or no room for notes.
std::unique_ptr<DeathNotes> OpenNotes(const PipelineJournal* journal) {
  if (journal == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<DeathNotes>> notes = DeathNotes::Open(
      journal->folder(), absl::ToUnixMillis(absl::Now()), CountOutOfMemoryKills(journal->folder()));
  if (!notes.ok()) {
    spdlog::warn("no pipeline will be set aside under which daemons die: {}",
                 notes.status().ToString());
    return nullptr;
  }
  (*notes)->NoteSignals();
  if (const auto& last = (*notes)->last()) {
    spdlog::error("the daemon before this one died under pipeline {}: {}", last->first,
                  last->second.cause);
  }
  return *std::move(notes);
}

// Null where the daemon forgets. `state`: the journal's.
absl::StatusOr<std::unique_ptr<PipelineJournal>> OpenJournal(const DaemonOptions& options,
                                                             const StateFolder** state) {
  if (options.state_directory.empty()) return std::unique_ptr<PipelineJournal>();
  absl::StatusOr<std::unique_ptr<StateFolder>> folder = StateFolder::Open(options.state_directory);
  if (folder.ok()) {
    *state = folder->get();
    return std::make_unique<PipelineJournal>(*std::move(folder));
  }
  if (options.state_is_required) return folder.status();
  spdlog::warn("pipelines will not come back after a crash: {}", folder.status().ToString());
  return std::unique_ptr<PipelineJournal>();
}

}  // namespace

void BlockStopSignals() {
  const sigset_t signals = Signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A shell's script has what it starts in the background ignore SIGINT: then the second stop would
  // have no effect at all.
  for (const int number : {SIGTERM, SIGINT}) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
}

absl::Status RunDaemon(DaemonOptions options) {
  if (absl::Status status = TakeDescriptors(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<SocketFile>> socket = OpenSocket(options);
  if (!socket.ok()) return socket.status();
  if (const int removed = RemoveLeftOver((*socket)->predecessor()); removed > 0) {
    spdlog::info("removed {} files that CUDA's driver left in /dev/shm of process {}", removed,
                 (*socket)->predecessor());
  }
  if (options.owner_fd >= 0) (*socket)->RemoveDirectoryToo();

  absl::StatusOr<std::unique_ptr<EventLoop>> loop_or = EventLoop::Create();
  if (!loop_or.ok()) return loop_or.status();
  EventLoop& loop = **loop_or;
  const std::unique_ptr<Disk> disk = OpenCacheRoots(options.config);
  absl::StatusOr<std::unique_ptr<FileSystem>> files = OpenFiles(options.config, disk.get());
  if (!files.ok()) return files.status();
  const absl::StatusOr<std::unique_ptr<FileSystem>> addresses =
      OpenAddresses(**files, options.config, options.owner_fd >= 0);
  if (!addresses.ok()) return addresses.status();
  Settings settings(options.config);
  Access access(settings);
  const StateFolder* state = nullptr;
  absl::StatusOr<std::unique_ptr<PipelineJournal>> journal = OpenJournal(options, &state);
  if (!journal.ok()) return journal.status();
  const std::unique_ptr<DeathNotes> notes = OpenNotes(journal->get());
  std::optional<StateKeeper> state_keeper;
  if (state != nullptr) state_keeper.emplace(loop, *state);
  PipelineTable table(*addresses != nullptr ? **addresses : **files,
                      options.config.worker_defaults(), journal->get());
  if (!table.status().ok()) return table.status();
  table.SetNotes(notes.get());
  table.SetMemoryLimits(options.config.memory());
  table.SetQuotas(options.config.user_quota());
  table.SetPrefixes(MakePrefixes(options.config.shared_prefix()));
  const std::shared_ptr<SharedMaps> maps = MakeMaps(options.config.mapped_files());
  table.SetMaps(maps);
  absl::StatusOr<std::shared_ptr<Helpers>> helpers = Helpers::Create(options.config.helpers());
  if (!helpers.ok()) return helpers.status();
  table.SetHelpers(*std::move(helpers));

  const sigset_t signal_set = Signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  const ring::Descriptor signals(signalfd(-1, &signal_set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return absl::ErrnoToStatus(errno, "cannot receive signals");
  std::function<void()> reload;
  if (options.read_config != nullptr) reload = Reload(options, settings, table);
  absl::Status status = WatchSignals(loop, signals.get(), options.owner_fd, std::move(reload));
  if (!status.ok()) return status;

  const double processors = UsableProcessors();
  const int whole_processors = ThreadsFor(processors);
  const Monitor monitor(loop, table, whole_processors);
  std::unique_ptr<Tuner> tuner;
  if (options.config.worker_defaults().autotune()) {
    absl::StatusOr<std::unique_ptr<Tuner>> made = Tuner::Create(table, monitor, processors);
    if (!made.ok()) return made.status();
    tuner = *std::move(made);
  }
  Sessions sessions(loop, table, options.config.connection_limits().max_consumers(), journal->get(),
                    options.rejoin);
  if (!sessions.status().ok()) return sessions.status();
  sessions.OnNoPlace([&access] { access.CountNoPlace(); });
  sessions.WaitForGuests(
      [&settings] { return absl::Milliseconds(settings.Get()->attach_only_wait_ms()); });
  sessions.RestAfter(
      [&settings] { return absl::Milliseconds(settings.Get()->memory().idle_ms()); });
  absl::StatusOr<std::unique_ptr<ControlServer>> control =
      ControlServer::Create(loop, table, monitor, settings, access);
  if (!control.ok()) return control.status();
  absl::StatusOr<std::unique_ptr<HttpServer>> http = std::unique_ptr<HttpServer>();
  if (options.config.http().port() != 0)
    http = HttpServer::Create(loop, options.config.http().port(), table, monitor, access);
  if (!http.ok()) return http.status();
  std::unique_ptr<TcpListener> tcp;
  if (const std::string& address = options.config.tcp().address(); !address.empty()) {
    auto listening =
        TcpListener::Create(loop, "tcp.address", address,
                            [&control](ring::Descriptor connection, const std::string& from) {
                              (*control)->AdoptTcp(std::move(connection), from);
                            });
    if (!listening.ok()) return listening.status();
    tcp = *std::move(listening);
    spdlog::info("the control plane is at {} for those with a certificate", address);
  }
  SpecRequests specs(loop, table, access,
                     [&monitor](const Pipeline& pipeline, const PipelineTable::Visible& visible) {
                       v1::PipelineStats stats = monitor.Stats(pipeline);
                       HideOthers(visible, &stats);
                       return stats;
                     });
  if (!specs.status().ok()) return specs.status();
  Reception reception(
      loop,
      [&settings] {
        return absl::Milliseconds(settings.Get()->connection_limits().first_bytes_timeout_ms());
      },
      {[&](Visitor visitor) { (*control)->Adopt(std::move(visitor)); },
       [&](Visitor visitor, const ring::ParsedRequest& request) {
         const absl::Status admitted =
             access.Admit(visitor.who, v1::RIGHT_ATTACH, std::string(request.pipeline));
         if (!admitted.ok()) {
           ring::SendReply(visitor.socket.get(), ToRing(admitted), nullptr);
           return;
         }
         const Identity who = visitor.who;
         const bool may_send_away =
             access.Has(who, v1::RIGHT_CONTROL, std::string(request.pipeline));
         sessions.Attach(std::move(visitor), request, may_send_away,
                         [&access, &who](const std::string& name) {
                           return access.Has(who, v1::RIGHT_ATTACH, name) ||
                                  access.Has(who, v1::RIGHT_READ, name);
                         });
       },
       [&](Visitor visitor, const ring::ParsedRequest& request, ring::Descriptor file) {
         specs.Serve(std::move(visitor), request, std::move(file));
       },
       [&access] { access.CountNoPlace(); }});
  absl::StatusOr<std::unique_ptr<SocketKeeper>> listener = SocketKeeper::Create(
      loop, **socket, access, [&](Visitor visitor) { reception.Welcome(std::move(visitor)); });
  if (!listener.ok()) return listener.status();
  const absl::StatusOr<std::unique_ptr<HelperServer>> serving =
      HelpOthers(options.config, *addresses != nullptr ? **addresses : **files, maps, table);
  if (!serving.ok()) return serving.status();
  Restorer restorer(loop, table, sessions);
  if (absl::Status started = restorer.Start(kPatienceAtStart); !started.ok()) return started;

  // Connections have waited in the backlog since the socket was made; nothing that may still fail
  // comes behind this.
  TellReady(options.ready_fd);
  spdlog::info("penstockd (process {}) serves {}", getpid(), (*socket)->path());
  options.service_manager.Tell("READY=1");
  const HangWatch hangs(loop, table, sessions);
  const WatchdogFeeder watchdog(loop, options.service_manager, table);
  loop.Run();
  options.service_manager.Tell("STOPPING=1");
  tcp.reset();
  listener->reset();
  socket->reset();
  EndAfter(settings.Get()->stop_timeout_ms());
  http->reset();
  // Before the sessions go, so that consumers read this and not a hang-up.
  tuner.reset();
  table.events().Close();
  table.Close(absl::UnavailableError("penstockd was stopped; start it again and attach anew"));
  return absl::OkStatus();
}

}  // namespace penstock
