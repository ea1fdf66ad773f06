// The attached consumers: gives each its ring's descriptors and gets its leases back when it leaves
// or dies. After a restart it waits for those that were attached before, so that their pipeline
// goes on at the lowest of their positions.
//
// Threads:  the event loop's. Rings are made and entered on a few threads of its own.
// Owns:     each consumer's socket and pidfd, and a reference to its stream.
// Limits:   `max_consumers`, those that wait to attach included; the last eighth of them for users
//           who have less than that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ring/attach.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/listener.h"
#include "server/service/socket/task_pool.h"
#include "server/service/state/consumer_notes.h"
#include "server/service/state/pipeline_journal.h"

namespace penstock {

class Sessions {
 public:
  // `journal` may be null. `rejoin`: how long lost ranks and known consumers are waited for.
  // `pool`: null is one of its own.
  Sessions(EventLoop& loop, PipelineTable& table, size_t max_consumers,
           const PipelineJournal* journal = nullptr, absl::Duration rejoin = absl::Seconds(10),
           std::unique_ptr<TaskPool> pool = nullptr);
  ~Sessions();

  // Pipelines that have been without consumers for so long give their memory back; zero: never.
  // Asked again and again.
  void RestAfter(std::function<absl::Duration()> idle);

  // How long others wait for a user who may only attach (ring/guest_purses.h). Asked again and
  // again.
  void WaitForGuests(std::function<absl::Duration()> guest_wait) {
    guest_wait_ = std::move(guest_wait);
  }

  // Told of each who is refused because there are `max_consumers`.
  void OnNoPlace(std::function<void()> told) { no_place_ = std::move(told); }

  // Why nobody can attach, if there is no thread for it.
  const absl::Status& status() const;

  // A pipeline that is about to come back: whoever comes for it meanwhile waits for Expect() or
  // ExpectNoMore().
  void ExpectLater(const std::string& name);
  // A pipeline that has come back: it begins when its consumers are there, or the time is over.
  void Expect(const std::shared_ptr<Pipeline>& pipeline);
  // It did not come back: whoever has waited for it gets the reason, unless there is another one of
  // that name.
  void ExpectNoMore(const std::string& name, const absl::Status& reason);

  // Answers the request, now or later; with an error the connection is closed.
  // `may_send_away`: whether the visitor may take the places of other users' consumers.
  // `visible`: the pipelines that the visitor may hear of; null: all.
  void Attach(Visitor visitor, const ring::ParsedRequest& request, bool may_send_away,
              const PipelineTable::Visible& visible = nullptr);

  // Logs what hangs. To be called a few times a second.
  void TellIfSlow() {
    if (notes_ != nullptr) notes_->TellIfSlow();
  }

  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    Visitor visitor;
    std::string pipeline;
    uint64_t identity = 0;
    Attached attached;
    EventLoop::Id socket_watch = 0;
    EventLoop::Id process_watch = 0;
    EventLoop::Id bell_watch = 0;
    std::string group;
    std::string name;
    bool gone = false;  // it has left or was sent away, though what it holds keeps the connection
  };
  using Key = uint64_t;

  // Somebody whose answer is not there yet.
  struct Waiting {
    Visitor visitor;
    Newcomer newcomer;
  };
  // A pipeline that waits for its consumers.
  struct Returning {
    std::shared_ptr<Pipeline> pipeline;  // null: it is about to come back
    std::set<uint64_t> missing;          // identities
    bool begins = false;  // nobody is missed any more: whoever comes waits until it has begun
    std::vector<std::shared_ptr<Waiting>> waiting;
    EventLoop::Id timer = 0;
  };

  // Written down first, so that it is waited for after any crash from the moment at which it knows
  // that it is attached.
  void EnterLater(std::shared_ptr<Pipeline> pipeline, std::shared_ptr<Waiting> waiting);
  // On the pool, and the results on the loop again.
  void EnterNow(std::shared_ptr<Pipeline> pipeline, std::shared_ptr<Waiting> waiting);
  void StartAgain(const std::string& name);
  void BeginAgain(std::shared_ptr<Pipeline> pipeline,
                  std::shared_ptr<std::vector<std::shared_ptr<Waiting>>> waiting);
  // `results` are those of `waiting`.
  void HasBegun(const std::shared_ptr<Pipeline>& pipeline,
                const std::vector<std::shared_ptr<Waiting>>& waiting,
                std::vector<absl::StatusOr<Attached>>* results);
  ring::Status CheckRoomFor(uid_t user) const;
  void GiveRoom(uid_t user);
  void Enter(const std::string& pipeline, Waiting& waiting, absl::StatusOr<Attached> attached);
  void Refuse(Waiting& waiting, const absl::Status& reason);
  ring::Status WatchOver(Key key, Session& session);
  void End(Key key, const char* why);
  // To those who listen to events.
  void Tell(const Session& session, v1::EventKind kind, std::string text);
  // Tells who was sent away since it was looked at last. True for who takes no further step from
  // now on.
  bool NoteGone(Session& session);
  void LookForGone();
  // To whoever waits in a split group; the pipeline may be deleted, which has no Tick() any more.
  void DealToAll();
  // Who takes steps of the pipeline or enters it. `done` is called on the loop when it is written;
  // at once where nothing is.
  void WriteDown(const std::string& pipeline, std::function<void()> done = nullptr);
  void Tick();
  void LookForIdle();
  void LookForDeleted();

  EventLoop& loop_;
  PipelineTable& table_;
  const size_t max_consumers_;
  const PipelineJournal* const journal_;
  const absl::Duration rejoin_;
  Key next_key_ = 0;
  std::map<Key, Session> sessions_;
  std::map<std::string, Returning> returning_;      // by the pipeline's name
  std::map<const Waiting*, std::string> entering_;  // their pipelines
  size_t num_waiting_ = 0;
  std::map<uid_t, size_t> of_user_;  // of sessions_ and those that wait; nobody without any
  bool stopping_ = false;
  EventLoop::Id tick_ = 0;
  EventLoop::Id look_ = 0;
  std::function<absl::Duration()> idle_;        // of RestAfter()
  std::function<absl::Duration()> guest_wait_;  // of WaitForGuests(); null: the ring's default
  std::function<void()> no_place_;              // of OnNoPlace()
  uint64_t ticks_ = 0;
  std::unique_ptr<ConsumerNotes> notes_;  // null: nothing is kept
  // Streams and pipelines that end: a worker that hangs holds up nobody who comes.
  std::unique_ptr<TaskPool> ending_;
  // Last: its tasks use what stands above.
  std::unique_ptr<TaskPool> pool_;
};

}  // namespace penstock
