#include "client/c/hang_up_watch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "client/c/loader.h"
#include "client/c/source.h"
#include "ring/descriptor.h"
#include "ring/futex.h"

namespace penstock_client {
namespace {

using penstock::ring::MonotonicNs;

constexpr int kSoonMs = 20;
constexpr int kLaterMs = 500;
constexpr int kSoonAttempts = 250;
// How long one attempt may keep a call of penstock_next waiting.
constexpr uint64_t kAttemptNs = 20'000'000;

// Goes on counting in a forked child, whose loaders of before keep their numbers.
std::atomic<uint64_t> last_number{0};

// Whether there is nothing more to do.
bool Attend(penstock_loader* loader) {
  std::unique_lock<std::mutex> lock(loader->next_mutex, std::try_to_lock);
  // Somebody is in next, who notices it too; but that call may run out of time before it is back.
  if (!lock.owns_lock()) return false;
  if (!loader->reattachment.failed.ok()) return true;
  if (!loader->reattachment.active && !loader->source->reader->IsDeserted()) return true;
  if (!loader->reattachment.active && !StartUnattended(loader)) return false;
  const int code = Reattach(loader, MonotonicNs() + kAttemptNs);
  Reattachment& again = loader->reattachment;
  // The daemon that accepted has gone as well, or was the dying one: what is ready is served again.
  if (code == PENSTOCK_TIMEOUT && again.unattended && !again.socket) Begin(&again);
  return code != PENSTOCK_TIMEOUT;
}

class HangUpWatch {
 public:
  // Null when there are no descriptors or threads left for it.
  static HangUpWatch* Make() {
    auto* watch = new HangUpWatch;
    watch->epoll_ = penstock::ring::Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (watch->epoll_ && watch->Start()) return watch;
    delete watch;
    return nullptr;
  }

  void Add(penstock_loader* loader) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      loader->watch = last_number.fetch_add(1) + 1;
      loaders_[loader->watch] = loader;
    }
    Listen(*loader);
  }

  void Remove(penstock_loader* loader) {
    std::lock_guard<std::mutex> lock(mutex_);
    loaders_.erase(loader->watch);
    hung_up_.erase(loader->watch);
  }

  void Listen(const penstock_loader& loader) {
    // An old source's socket stays as well, as long as a batch holds it: it costs a look when it
    // hangs up.
    epoll_event event = {};
    event.events = EPOLLRDHUP | EPOLLET;
    event.data.u64 = loader.watch;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, loader.source->reader->socket(), &event);
  }

  // Held around a fork, so that no loader is left locked in the child.
  std::mutex& mutex() { return mutex_; }

 private:
  bool Start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const auto run = [](void* self) -> void* {
      static_cast<HangUpWatch*>(self)->Run();
      return nullptr;
    };
    const bool started = pthread_create(&thread, nullptr, run, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started) pthread_setname_np(thread, "penstock-watch");
    if (started) pthread_detach(thread);
    return started;
  }

  [[noreturn]] void Run() {
    int attempts = 0, timeout_ms = -1;
    while (true) {
      epoll_event events[16];
      const int count = epoll_wait(epoll_.get(), events, 16, timeout_ms);
      std::lock_guard<std::mutex> lock(mutex_);
      if (count > 0) attempts = 0;
      try {
        for (int i = 0; i < count; ++i) {
          if (loaders_.contains(events[i].data.u64)) hung_up_.insert(events[i].data.u64);
        }
        std::erase_if(hung_up_, [this](uint64_t number) { return Attend(loaders_.at(number)); });
      } catch (const std::bad_alloc&) {
        // Those that are known are looked at again; the others' next call notices it.
      }
      ++attempts;
      timeout_ms = hung_up_.empty() ? -1 : attempts < kSoonAttempts ? kSoonMs : kLaterMs;
    }
  }

  penstock::ring::Descriptor epoll_;
  std::mutex mutex_;
  std::map<uint64_t, penstock_loader*> loaders_;  // under mutex_, by their numbers
  std::set<uint64_t> hung_up_;                    // under mutex_
};

std::mutex the_mutex;
// Never destroyed: its thread may run until the process has ended. Written under the_mutex; read
// without it, since who forks holds that and waits for the watch, which looks here when a loader
// has come back.
std::atomic<HangUpWatch*> the_watch{nullptr};

void BeforeFork() {
  the_mutex.lock();
  if (HangUpWatch* watch = the_watch; watch != nullptr) watch->mutex().lock();
}
void AfterForkInParent() {
  if (HangUpWatch* watch = the_watch; watch != nullptr) watch->mutex().unlock();
  the_mutex.unlock();
}
void AfterForkInChild() {
  // Its thread has stayed behind.
  if (HangUpWatch* watch = the_watch.exchange(nullptr); watch != nullptr) watch->mutex().unlock();
  the_mutex.unlock();
}

}  // namespace

void Watch(penstock_loader* loader) {
  static const int registered = pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  (void)registered;
  try {
    HangUpWatch* watch;
    {
      std::lock_guard<std::mutex> lock(the_mutex);
      if (the_watch == nullptr) the_watch = HangUpWatch::Make();
      watch = the_watch;
    }
    if (watch != nullptr) watch->Add(loader);
  } catch (const std::bad_alloc&) {
    // As where there are no threads: the loader comes back in its next call.
    loader->watch = 0;
  }
}

void WatchSource(const penstock_loader& loader) {
  HangUpWatch* watch = loader.watch != 0 ? the_watch.load() : nullptr;
  if (watch != nullptr) watch->Listen(loader);
}

void Unwatch(penstock_loader* loader) {
  HangUpWatch* watch = loader->watch != 0 ? the_watch.load() : nullptr;
  if (watch != nullptr) watch->Remove(loader);
}

}  // namespace penstock_client
