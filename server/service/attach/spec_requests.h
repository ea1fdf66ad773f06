// Create, validate, count, delete, what was skipped and what a pipeline does, for clients that
// speak the attach protocol (ring/attach.h) instead of gRPC, such as a Python process with a daemon
// of its own.
//
// A pipeline that was asked for as temporary is deleted when its creator's connection or process
// ends, whichever is first: a trainer that is killed leaves nothing behind in a daemon.
//
// Threads:  Serve() and the destructor on the event loop's; the work is done, and answered, on
//           kThreads of its own, since a spec's files may take time to be looked at.
// Owns:     the visitors and what they have sent.
// Limits:   kMaxRequests requests and temporary pipelines at a time; further ones are refused, and
//           the last eighth is for users who have less than that. One user has kThreadsOfUser of
//           the threads at most.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ring/attach.h"
#include "ring/descriptor.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/listener.h"

namespace penstock {

class SpecRequests {
 public:
  static constexpr int kThreads = 4;
  static constexpr int kThreadsOfUser = 2;
  static constexpr size_t kMaxRequests = 512;

  // What is told of a pipeline to somebody who sees those that `visible` says.
  using StatsOf = std::function<v1::PipelineStats(const Pipeline& pipeline,
                                                  const PipelineTable::Visible& visible)>;

  // All must outlive this, and what `stats` needs.
  SpecRequests(EventLoop& loop, PipelineTable& table, Access& access, StatsOf stats);
  // Why nothing will be answered, if there is no thread for it.
  const absl::Status& status() const { return status_; }
  // Waits for the work that has begun.
  ~SpecRequests();

  // Answers the request, some time later. `file` holds its parts.
  void Serve(Visitor visitor, const ring::ParsedRequest& request, ring::Descriptor file);

 private:
  struct Request {
    Visitor visitor;
    ring::ParsedRequest parsed;
    ring::Descriptor file;

    std::mutex mutex;
    // Under mutex: a temporary pipeline once it exists, and whether its creator has gone.
    std::weak_ptr<Pipeline> created;
    bool abandoned = false;
  };
  // Of a temporary pipeline's creator.
  struct Watched {
    std::shared_ptr<Request> request;
    EventLoop::Id socket_watch = 0;
    EventLoop::Id process_watch = 0;
  };
  using Key = uint64_t;

  bool WatchOver(Key key, const std::shared_ptr<Request>& request);
  void Abandon(Key key);
  // Of a temporary pipeline, unless it was deleted already.
  void Delete(const std::weak_ptr<Pipeline>& created);
  // Of one user.
  struct Task {
    uid_t user = 0;
    std::function<void()> work;
  };
  bool HasRoomFor(uid_t user);
  void Enqueue(Task task);
  // The first task whose user has not got all of his threads; none.
  std::deque<Task>::iterator NextTask();  // under mutex_
  void Work();

  void Answer(Request& request);
  absl::StatusOr<std::string> Run(Request& request);
  // Of a pipeline that the visitor may read.
  absl::StatusOr<std::string> Skipped(const Request& request) const;
  absl::StatusOr<std::string> Stats(const Request& request) const;
  // From the step on whose number `text` is.
  absl::StatusOr<std::string> Redivide(const Request& request, const std::string& text) const;
  absl::StatusOr<std::shared_ptr<Pipeline>> Readable(const Request& request) const;
  PipelineTable::Visible VisibleTo(const Request& request) const;
  // The visitor's user has functions, and a process that starts workers for them.
  absl::StatusOr<std::string> Offer(Request& request);
  absl::StatusOr<std::string> Create(Request& request, const v1::PipelineSpec& spec,
                                     const std::string& cursor);

  EventLoop& loop_;
  PipelineTable& table_;
  Access& access_;
  const StatsOf stats_;
  Key next_key_ = 0;
  std::map<Key, Watched> watched_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;        // under mutex_
  std::map<uid_t, int> running_;  // under mutex_; tasks of whom, nobody without any
  bool stopping_ = false;         // under mutex_
  absl::Status status_;           // constant after construction
  std::vector<std::thread> threads_;
};

}  // namespace penstock
