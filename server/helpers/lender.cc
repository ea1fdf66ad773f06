#include "server/helpers/lender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/release.h"
#include "penstock/v1/helpers.pb.h"
#include "server/engine/plan/cursor.h"

namespace penstock {

std::string Lender::Start::MakeHello(uint64_t* first_step) {
  v1::HelperHello hello;
  hello.ParseFromString(spec_and_world);
  std::lock_guard<std::mutex> lock(mutex);
  hello.set_cursor(cursor);
  hello.set_skip_steps(skip_steps);
  if (start_pass) hello.set_start_pass(*start_pass);
  *first_step = step;
  return hello.SerializeAsString();
}

Lender::Lender(std::shared_ptr<const KnownHelpers> known, std::shared_ptr<const TlsContext> tls,
               bool plaintext, int steps_at_a_time, const Plan& plan, const LentStream& stream)
    : known_(std::move(known)),
      start_(std::make_shared<Start>()),
      common_(std::make_shared<HelperLink::Common>()),
      plaintext_(plaintext) {
  v1::HelperHello hello;
  hello.set_release(kRelease);
  *hello.mutable_spec() = plan.spec();
  *hello.mutable_fingerprint() = stream.fingerprint;
  hello.set_world_hosts(plan.world().hosts);
  hello.set_world_host(plan.world().host);
  hello.set_steps_at_a_time(static_cast<uint32_t>(steps_at_a_time));
  start_->spec_and_world = hello.SerializeAsString();
  start_->step = stream.start.step;
  start_->skip_steps = stream.skip_steps;
  start_->start_pass = stream.start_pass;
  // A position that is too long for a cursor helps nobody: the stream fails at its first step then.
  start_->cursor =
      CursorMaker(stream.fingerprint).Make(stream.start.step, stream.start.position).value_or("");
  common_->tensors = plan.tensors();
  common_->steps_at_a_time = steps_at_a_time;
  common_->tls = std::move(tls);
  common_->notice = stream.notice;
  common_->hello = [start = start_](uint64_t* first_step) { return start->MakeHello(first_step); };
  common_->passed = [start = start_] {
    std::lock_guard<std::mutex> lock(start->mutex);
    return start->step;
  };
  std::lock_guard<std::mutex> lock(mutex_);
  MeetThoseKnown();
}

Lender::~Lender() {
  std::lock_guard<std::mutex> lock(mutex_);
  links_.insert(links_.end(), left_.begin(), left_.end());
  for (const auto& link : links_) link->Stop();
  for (const auto& link : links_) link->Join();
}

void Lender::MeetThoseKnown() {
  version_.store(known_->version(), std::memory_order_relaxed);
  const std::vector<HelperAddress> known = known_->List();
  for (auto link = links_.begin(); link != links_.end();) {
    if (std::find(known.begin(), known.end(), (*link)->address()) != known.end()) {
      ++link;
      continue;
    }
    (*link)->Stop();
    left_.push_back(std::move(*link));
    link = links_.erase(link);
  }
  // Those that have ended since.
  left_.erase(std::remove_if(left_.begin(), left_.end(),
                             [](const std::shared_ptr<HelperLink>& one) {
                               const bool is_over = one->IsOver();
                               if (is_over) one->Join();
                               return is_over;
                             }),
              left_.end());
  refused_.clear();
  for (const HelperAddress& address : known) {
    if (std::any_of(links_.begin(), links_.end(),
                    [&](const auto& link) { return link->address() == address; })) {
      continue;
    }
    if (common_->tls == nullptr && !plaintext_ && !address.is_loopback()) {
      refused_.push_back(address.shown);
      continue;
    }
    absl::StatusOr<std::shared_ptr<HelperLink>> link = HelperLink::Start(common_, address);
    if (link.ok()) {
      links_.push_back(*std::move(link));
    } else if (common_->notice != nullptr) {
      common_->notice(absl::StrCat("helper ", address.shown, ": ", link.status().ToString()));
    }
  }
}

bool Lender::HasRoom() const {
  return common_->room.load(std::memory_order_relaxed) > 0 ||
         version_.load(std::memory_order_relaxed) != known_->version();
}

std::shared_ptr<StepLender::Place> Lender::Reserve() {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;
  if (version_.load(std::memory_order_relaxed) != known_->version()) MeetThoseKnown();
  for (size_t i = 0; i < links_.size(); ++i) {
    const std::shared_ptr<HelperLink>& link = links_[next_++ % links_.size()];
    if (link->Reserve()) return link;
  }
  return nullptr;
}

void Lender::TakeBack(uint64_t step) {
  std::vector<std::shared_ptr<HelperLink>> links;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    links = links_;
    links.insert(links.end(), left_.begin(), left_.end());
  }
  for (const auto& link : links)
    if (link->TakeBack(step)) return;
}

void Lender::Passed(uint64_t step, const std::string& cursor, uint64_t own_ns) {
  common_->own_ns.store(own_ns, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(start_->mutex);
  if (step <= start_->step) return;
  start_->step = step;
  start_->cursor = cursor;
  start_->skip_steps = 0;
  start_->start_pass.reset();
}

std::vector<HelperStats> Lender::Helpers() const {
  std::vector<HelperStats> all;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& link : links_) all.push_back(link->Stats());
  for (const std::string& address : refused_) {
    HelperStats stats;
    stats.address = address;
    stats.state = "left out";
    stats.reason = "it is another machine, and there is neither a certificate nor plaintext: true";
    all.push_back(std::move(stats));
  }
  return all;
}

}  // namespace penstock
