#include "server/service/attach/sessions.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/futex.h"
#include "server/codec/wire.h"
#include "server/service/socket/fair_places.h"
#include "server/service/stream/ring_sink.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// They sleep while a pipeline's files are waited for, each for one pipeline.
constexpr int kThreads = 8;
// Of those that wait for workers to end.
constexpr int kEndingThreads = 2;
constexpr absl::Duration kTickTime = absl::Milliseconds(25);
constexpr absl::Duration kShortestLook = absl::Milliseconds(10);
constexpr absl::Duration kLongestLook = absl::Seconds(1);
// Looking who has left or was sent away, and what deleted pipelines still have, is as often as
// this, in ticks.
constexpr uint64_t kGoneTicks = 10;

}  // namespace

Sessions::Sessions(EventLoop& loop, PipelineTable& table, size_t max_consumers,
                   const PipelineJournal* journal, absl::Duration rejoin,
                   std::unique_ptr<TaskPool> pool)
    : loop_(loop),
      table_(table),
      max_consumers_(max_consumers),
      journal_(journal),
      rejoin_(rejoin),
      notes_(journal != nullptr ? std::make_unique<ConsumerNotes>(*journal) : nullptr),
      ending_(std::make_unique<TaskPool>(kEndingThreads)),
      pool_(pool != nullptr ? std::move(pool) : std::make_unique<TaskPool>(kThreads)) {}

const absl::Status& Sessions::status() const {
  if (notes_ != nullptr && !notes_->status().ok()) return notes_->status();
  return pool_->status().ok() ? ending_->status() : pool_->status();
}

Sessions::~Sessions() {
  // Who is attached now is to be known to the next daemon.
  stopping_ = true;
  pool_.reset();
  ending_.reset();
  notes_.reset();
  loop_.CancelTimer(tick_);
  loop_.CancelTimer(look_);
  for (auto& [name, returning] : returning_) loop_.CancelTimer(returning.timer);
  while (!sessions_.empty()) End(sessions_.begin()->first, "penstockd is stopping");
}

void Sessions::ExpectLater(const std::string& name) { returning_[name]; }

void Sessions::ExpectNoMore(const std::string& name, const absl::Status& reason) {
  const auto found = returning_.find(name);
  if (found == returning_.end() || found->second.pipeline != nullptr) return;
  const std::vector<std::shared_ptr<Waiting>> waiting = std::move(found->second.waiting);
  returning_.erase(found);
  const auto pipeline = table_.Find(name);
  for (const auto& one : waiting) {
    if (pipeline.ok()) {
      EnterLater(*pipeline, one);
    } else {
      Refuse(*one, reason);
    }
  }
}

void Sessions::Expect(const std::shared_ptr<Pipeline>& pipeline) {
  const std::string& name = pipeline->name();
  Returning& returning = returning_[name];
  returning.pipeline = pipeline;
  if (journal_ != nullptr) {
    for (const auto& consumer : journal_->LoadConsumers(name)) {
      if (consumer.identity != 0) returning.missing.insert(consumer.identity);
    }
  }
  for (const auto& one : returning.waiting) returning.missing.erase(one->newcomer.spec.identity);
  if (returning.missing.empty()) {
    StartAgain(name);
    return;
  }
  spdlog::info("pipeline {} waits for {} consumers", name, returning.missing.size());
  returning.timer = loop_.StartTimer(rejoin_, [this, name] {
    const auto found = returning_.find(name);
    if (found == returning_.end()) return;
    spdlog::warn("pipeline {}: {} consumers did not come back", name, found->second.missing.size());
    found->second.timer = 0;
    StartAgain(name);
  });
}

void Sessions::Attach(Visitor visitor, const ring::ParsedRequest& request, bool may_send_away,
                      const PipelineTable::Visible& visible) {
  const int socket = visitor.socket.get();
  const uid_t user = visitor.who.uid;
  if (const ring::Status room = CheckRoomFor(user); !room.ok()) {
    if (no_place_ != nullptr) no_place_();
    ring::SendReply(socket, room, nullptr);
    return;
  }
  auto pipeline = table_.Find(request.pipeline, visible);
  const auto found = returning_.find(request.pipeline);
  const bool is_about_to_return = found != returning_.end() && found->second.pipeline == nullptr &&
                                  (pipeline.ok() || absl::IsUnavailable(pipeline.status()));
  if (!pipeline.ok() && !is_about_to_return) {
    ring::SendReply(socket, ToRing(pipeline.status()), nullptr);
    return;
  }
  for (const std::string* const text : {&request.consumer.group, &request.consumer.name}) {
    if (wire::IsUtf8(*text)) continue;
    ring::SendReply(
        socket,
        {ring::Code::kInvalidArgument, "the names of a group and of a consumer: expected UTF-8"},
        nullptr);
    return;
  }
  auto waiting = std::make_shared<Waiting>();
  waiting->newcomer = {request.consumer, request.position, visitor.pid, visitor.who.uid};
  waiting->newcomer.spec.uid = visitor.who.uid;
  waiting->newcomer.spec.may_send_away = may_send_away;
  waiting->visitor = std::move(visitor);
  ++num_waiting_;
  ++of_user_[user];
  if (is_about_to_return) {
    found->second.waiting.push_back(std::move(waiting));
    return;
  }
  // Another one of that name, which was deleted meanwhile, is no matter of this one's.
  if (found == returning_.end() || found->second.pipeline != *pipeline) {
    EnterLater(*std::move(pipeline), std::move(waiting));
    return;
  }
  Returning& returning = found->second;
  returning.missing.erase(request.consumer.identity);
  returning.waiting.push_back(std::move(waiting));
  if (returning.missing.empty() && !returning.begins) StartAgain(request.pipeline);
}

ring::Status Sessions::CheckRoomFor(uid_t user) const {
  const auto found = of_user_.find(user);
  const size_t has = found == of_user_.end() ? 0 : found->second;
  const size_t taken = sessions_.size() + num_waiting_;
  if (MayTakePlace(taken, has, max_consumers_)) return {};
  std::string message =
      absl::StrCat("too many consumers: connection_limits.max_consumers is ", max_consumers_);
  if (taken < max_consumers_) {
    absl::StrAppend(&message, ", and the last eighth is for users who have less than that; user ",
                    user, " has ", has);
  }
  return {ring::Code::kResourceExhausted, message};
}

void Sessions::GiveRoom(uid_t user) {
  const auto found = of_user_.find(user);
  if (--found->second == 0) of_user_.erase(found);
}

void Sessions::EnterLater(std::shared_ptr<Pipeline> pipeline, std::shared_ptr<Waiting> waiting) {
  const std::string& name = pipeline->name();
  entering_[waiting.get()] = name;
  WriteDown(name, [this, pipeline, waiting] { EnterNow(pipeline, waiting); });
}

void Sessions::EnterNow(std::shared_ptr<Pipeline> pipeline, std::shared_ptr<Waiting> waiting) {
  const bool taken = pool_->Run(
      [this, pipeline, waiting] {
        auto attached =
            std::make_shared<absl::StatusOr<Attached>>(pipeline->Attach(waiting->newcomer));
        loop_.Post([this, pipeline, waiting, attached] {
          Enter(pipeline->name(), *waiting, std::move(*attached));
        });
      },
      pipeline.get());
  if (!taken) {
    Enter(pipeline->name(), *waiting, absl::ResourceExhaustedError("too many attach at once"));
  }
}

void Sessions::StartAgain(const std::string& name) {
  Returning& returning = returning_.at(name);
  loop_.CancelTimer(returning.timer);
  returning.timer = 0;
  // Whoever comes meanwhile waits for the others.
  returning.begins = true;
  auto waiting =
      std::make_shared<std::vector<std::shared_ptr<Waiting>>>(std::move(returning.waiting));
  returning.waiting.clear();
  for (const auto& one : *waiting) entering_[one.get()] = name;
  WriteDown(name,
            [this, pipeline = returning.pipeline, waiting] { BeginAgain(pipeline, waiting); });
}

void Sessions::BeginAgain(std::shared_ptr<Pipeline> pipeline,
                          std::shared_ptr<std::vector<std::shared_ptr<Waiting>>> waiting) {
  const auto begin = [this, pipeline, waiting] {
    std::vector<Newcomer> newcomers;
    for (const auto& one : *waiting) newcomers.push_back(one->newcomer);
    auto results =
        std::make_shared<std::vector<absl::StatusOr<Attached>>>(pipeline->StartAgain(newcomers));
    loop_.Post([this, pipeline, waiting, results] { HasBegun(pipeline, *waiting, results.get()); });
  };
  if (pool_->Run(begin, pipeline.get())) return;
  // The queue is full. Without its beginning nobody would ever be answered, so it is tried until
  // there is room.
  returning_.at(pipeline->name()).timer =
      loop_.StartTimer(kTickTime, [this, pipeline, waiting] { BeginAgain(pipeline, waiting); });
}

void Sessions::HasBegun(const std::shared_ptr<Pipeline>& pipeline,
                        const std::vector<std::shared_ptr<Waiting>>& waiting,
                        std::vector<absl::StatusOr<Attached>>* results) {
  const std::string& name = pipeline->name();
  const auto found = returning_.find(name);
  std::vector<std::shared_ptr<Waiting>> late;
  if (found != returning_.end()) {
    late = std::move(found->second.waiting);
    returning_.erase(found);
  }
  // Who comes next may find more memory, or threads.
  const bool begins_later = pipeline->MayBeginLater();
  if (begins_later) returning_[name].pipeline = pipeline;
  for (size_t i = 0; i < waiting.size(); ++i) {
    Enter(name, *waiting[i], std::move((*results)[i]));
  }
  if (begins_later && !late.empty()) {
    returning_[name].waiting = std::move(late);
    StartAgain(name);
  } else {
    for (auto& one : late) EnterLater(pipeline, std::move(one));
  }
}

void Sessions::Enter(const std::string& pipeline, Waiting& waiting,
                     absl::StatusOr<Attached> attached) {
  entering_.erase(&waiting);
  if (!attached.ok()) {
    Refuse(waiting, attached.status());
    WriteDown(pipeline);
    return;
  }
  --num_waiting_;
  const Key key = next_key_++;
  Session& session = sessions_[key];
  session.visitor = std::move(waiting.visitor);
  session.pipeline = pipeline;
  session.group = waiting.newcomer.spec.group;
  session.name = waiting.newcomer.spec.name;
  session.identity = waiting.newcomer.spec.identity;
  session.attached = *std::move(attached);
  if (tick_ == 0) tick_ = loop_.StartTimer(kTickTime, [this] { Tick(); });
  ring::Status watched = WatchOver(key, session);
  const ring::Status sent = ring::SendReply(session.visitor.socket.get(), watched,
                                            watched.ok() ? &session.attached.handle : nullptr);
  if (!watched.ok() || !sent.ok()) {
    End(key, "could not be answered");
    return;
  }
  spdlog::info("pipeline {}: consumer {} of group {} attached (process {} of user {})", pipeline,
               session.attached.handle.id, waiting.newcomer.spec.group, session.visitor.pid,
               session.visitor.who.uid);
  Tell(session, v1::EVENT_KIND_ATTACHED,
       absl::StrCat("consumer ", session.attached.handle.id, " (process ", session.visitor.pid,
                    ") to group ", session.group, " at step ", session.attached.handle.start_step));
}

void Sessions::Refuse(Waiting& waiting, const absl::Status& reason) {
  --num_waiting_;
  ring::SendReply(waiting.visitor.socket.get(), ToRing(reason), nullptr);
  GiveRoom(waiting.visitor.who.uid);
}

void Sessions::Tell(const Session& session, v1::EventKind kind, std::string text) {
  v1::Event event = MakeEvent(session.pipeline, kind, std::move(text));
  v1::ConsumerStats* consumer = event.mutable_consumer();
  consumer->set_id(session.attached.handle.id);
  consumer->set_group(session.group);
  consumer->set_name(session.name);
  consumer->set_pid(session.visitor.pid);
  if (const auto uid = ShownUid(session.visitor.who.uid)) consumer->set_uid(*uid);
  for (const ring::ConsumerStats& one : session.attached.stream->writer().Consumers()) {
    if (one.id == session.attached.handle.id) consumer->set_position(one.position);
  }
  table_.Publish(std::move(event));
}

bool Sessions::NoteGone(Session& session) {
  if (session.gone) return false;
  for (const ring::ConsumerStats& one : session.attached.stream->writer().Consumers()) {
    if (one.id != session.attached.handle.id || !(one.left || one.evicted)) continue;
    session.gone = true;
    if (!one.evicted) return true;
    Tell(session, v1::EVENT_KIND_EVICTED,
         absl::StrCat("consumer ", one.id, " (process ", one.pid, ") of group ", one.group,
                      " was sent away at step ", one.position));
  }
  return session.gone;
}

void Sessions::LookForGone() {
  std::set<std::string> pipelines;
  for (auto& [key, session] : sessions_) {
    if (NoteGone(session)) pipelines.insert(session.pipeline);
  }
  for (const std::string& pipeline : pipelines) WriteDown(pipeline);
}

void Sessions::DealToAll() {
  std::set<Stream*> streams;
  for (const auto& [key, session] : sessions_) {
    if (session.attached.handle.takes_grants) streams.insert(session.attached.stream.get());
  }
  for (Stream* const stream : streams) stream->writer().Deal();
}

ring::Status Sessions::WatchOver(Key key, Session& session) {
  // Whichever comes first: a forked child keeps the socket open after its parent's death, and a
  // process that closes the socket lives on. Without EPOLLIN nothing that a consumer writes wakes
  // us.
  const auto socket = loop_.Watch(session.visitor.socket.get(), EPOLLRDHUP | EPOLLHUP,
                                  [this, key](uint32_t) { End(key, "left"); });
  if (!socket.ok()) return ToRing(socket.status());
  session.socket_watch = *socket;
  if (session.attached.handle.takes_grants) {
    // Its bell says that it wants a step. Edge-triggered and never read, as in the ring's doorbell.
    const auto bell =
        loop_.Watch(session.attached.handle.bell_fd, EPOLLIN | EPOLLET,
                    [stream = session.attached.stream](uint32_t) { stream->writer().Deal(); });
    if (!bell.ok()) return ToRing(bell.status());
    session.bell_watch = *bell;
  }
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
  GiveRoom(session.visitor.who.uid);
  loop_.Unwatch(session.socket_watch);
  loop_.Unwatch(session.process_watch);
  loop_.Unwatch(session.bell_watch);
  if (!stopping_) {
    NoteGone(session);
    Tell(session, v1::EVENT_KIND_LEFT,
         absl::StrCat("consumer ", session.attached.handle.id, " (process ", session.visitor.pid,
                      ") of group ", session.group, " ", why));
    // One that is only parted from this daemon comes back to the next one with what it holds of a
    // split group.
    session.attached.stream->writer().Detach(session.attached.handle.id);
  }
  spdlog::info("pipeline {}: consumer {} {} (process {})", session.pipeline,
               session.attached.handle.id, why, session.visitor.pid);
  WriteDown(session.pipeline);
  if (stopping_ || !session.attached.is_replay) return;
  // It waits for workers, which may be long in coming. Where the queue is full, the last who has
  // the stream does.
  ending_->Run([stream = session.attached.stream] {
    stream->Stop(absl::CancelledError("its only consumer has gone"));
  });
}

void Sessions::WriteDown(const std::string& pipeline, std::function<void()> done) {
  if (notes_ == nullptr) {
    if (done != nullptr) done();
    return;
  }
  std::vector<PipelineJournal::KnownConsumer> consumers;
  for (const auto& [key, session] : sessions_) {
    if (session.pipeline == pipeline && session.identity != 0 && !session.gone) {
      consumers.push_back({session.identity, session.visitor.pid});
    }
  }
  for (const auto& [waiting, name] : entering_) {
    if (name == pipeline && waiting->newcomer.spec.identity != 0)
      consumers.push_back({waiting->newcomer.spec.identity, waiting->visitor.pid});
  }
  std::function<void()> written;
  if (done != nullptr) written = [this, done = std::move(done)] { loop_.Post(done); };
  notes_->Put(pipeline, std::move(consumers), std::move(written));
}

void Sessions::RestAfter(std::function<absl::Duration()> idle) {
  idle_ = std::move(idle);
  LookForIdle();
}

void Sessions::LookForDeleted() {
  std::vector<std::string> deleted;
  for (const auto& [name, returning] : returning_) {
    if (returning.pipeline == nullptr && absl::IsNotFound(table_.Find(name).status()))
      deleted.push_back(name);
  }
  // It was tried in vain, and whoever would have had it tried again does not find it any more.
  std::erase_if(returning_, [](const auto& entry) {
    const Returning& one = entry.second;
    return one.pipeline != nullptr && one.missing.empty() && !one.begins &&
           !one.pipeline->MayBeginLater();
  });
  for (const std::string& name : deleted)
    ExpectNoMore(name, absl::NotFoundError(absl::StrCat("pipeline ", name, " was deleted")));
}

void Sessions::LookForIdle() {
  LookForDeleted();
  const absl::Duration idle = idle_();
  if (idle > absl::ZeroDuration()) {
    const uint64_t now_ns = ring::MonotonicNs();
    for (const auto& pipeline : table_.List()) {
      if (returning_.count(pipeline->name()) == 0 &&
          pipeline->MayRest(now_ns, static_cast<uint64_t>(absl::ToInt64Nanoseconds(idle)))) {
        // It waits for workers. Where the queue is full, the next look comes soon.
        ending_->Run([pipeline] { pipeline->Rest(); }, pipeline.get());
      }
    }
  }
  // Where nothing rests it only sees whether that has been changed.
  const absl::Duration next = idle > absl::ZeroDuration()
                                  ? std::clamp(idle / 4, kShortestLook, kLongestLook)
                                  : kLongestLook;
  look_ = loop_.StartTimer(next, [this] { LookForIdle(); });
}

void Sessions::Tick() {
  tick_ = 0;
  if (sessions_.empty()) return;
  const auto now_ns = static_cast<uint64_t>(loop_.Now());
  for (const auto& pipeline : table_.List()) {
    if (guest_wait_ != nullptr)
      pipeline->SetGuestWait(static_cast<uint64_t>(absl::ToInt64Nanoseconds(guest_wait_())));
    pipeline->Tick(now_ns, static_cast<uint64_t>(absl::ToInt64Nanoseconds(rejoin_)));
  }
  if (++ticks_ % kGoneTicks == 0) {
    LookForGone();
    DealToAll();
  }
  tick_ = loop_.StartTimer(kTickTime, [this] { Tick(); });
}

}  // namespace penstock
