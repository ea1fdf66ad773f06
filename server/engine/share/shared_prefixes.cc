#include "server/engine/share/shared_prefixes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Rows whose cost decides.
constexpr uint64_t kMeasuredRows = 64;
// Bytes are written once and read once, from memory: so many a nanosecond.
constexpr uint64_t kBytesPerNs = 4;

std::string TellApart(const FileEntry& file) {
  return absl::StrCat(file.path, "\n", file.size_bytes, " ", file.version.modified_ns, " ",
                      file.version.object, " ", file.version.holder, " ", file.version.changed_ns);
}

size_t CommonLevels(const ShareableChain& a, const ShareableChain& b) {
  const size_t most = std::min(a.levels.size(), b.levels.size());
  size_t levels = 0;
  while (levels < most && a.levels[levels].text == b.levels[levels].text) ++levels;
  return levels;
}

bool HaveCommon(const std::set<std::string>& a, const std::set<std::string>& b) {
  const std::set<std::string>& few = a.size() < b.size() ? a : b;
  const std::set<std::string>& many = a.size() < b.size() ? b : a;
  return std::any_of(few.begin(), few.end(),
                     [&many](const std::string& one) { return many.count(one) > 0; });
}

const char* NameOf(PrefixState state) {
  switch (state) {
    case PrefixState::kMeasuring:
      return "measuring";
    case PrefixState::kSharing:
      return "sharing";
    case PrefixState::kCheap:
      return "cheap";
  }
  return "";
}

}  // namespace

void PrefixGroup::AddMeasured(uint64_t rows, uint64_t ns, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  rows_ += rows;
  ns_ += ns;
  bytes_ += bytes;
  if (rows_ < kMeasuredRows || state() != PrefixState::kMeasuring) return;
  element_ns_.store(ns_ / rows_, std::memory_order_relaxed);
  const bool is_worth = ns_ / rows_ >= element_ns_min_ + bytes_ / rows_ / kBytesPerNs;
  // Without a least cost everything is shared.
  state_.store(is_worth || element_ns_min_ == 0 ? PrefixState::kSharing : PrefixState::kCheap,
               std::memory_order_relaxed);
}

PrefixMember::PrefixMember(std::shared_ptr<SharedPrefixes> prefixes, std::string pipeline,
                           WorkToShare plan)
    : prefixes_(std::move(prefixes)),
      pipeline_(std::move(pipeline)),
      plan_(std::move(plan)),
      shares_(static_cast<size_t>(plan_.num_shareable)) {
  for (const FileEntry& file : *plan_.manifest) {
    if (!file.path.empty()) files_.insert(TellApart(file));
  }
  for (ShareableChain& chain : FindShareable(plan_)) chains_.emplace_back().work = std::move(chain);
}

PrefixMember::~PrefixMember() {
  std::lock_guard<std::mutex> lock(prefixes_->mutex_);
  prefixes_->Leave(this);
}

std::vector<SharedStats> PrefixMember::Stats() const {
  std::lock_guard<std::mutex> lock(prefixes_->mutex_);
  return prefixes_->StatsOf(*this);
}

std::shared_ptr<SharedPrefixes> SharedPrefixes::Create(const SharedPrefixOptions& options) {
  return std::shared_ptr<SharedPrefixes>(new SharedPrefixes(options));
}

std::unique_ptr<PrefixMember> SharedPrefixes::Join(std::string pipeline, WorkToShare plan) {
  std::unique_ptr<PrefixMember> member(
      new PrefixMember(shared_from_this(), std::move(pipeline), std::move(plan)));
  std::lock_guard<std::mutex> lock(mutex_);
  for (PrefixMember::Chain& chain : member->chains_) Pair(member.get(), &chain);
  members_.push_back(member.get());
  return member;
}

// With whom most is in common.
void SharedPrefixes::Pair(PrefixMember* member, PrefixMember::Chain* chain) {
  PrefixMember* best_member = nullptr;
  PrefixMember::Chain* best = nullptr;
  size_t best_levels = 0;
  for (PrefixMember* other : members_) {
    if (other->pipeline_ == member->pipeline_ || !HaveCommon(other->files_, member->files_))
      continue;
    for (PrefixMember::Chain& theirs : other->chains_) {
      size_t levels = CommonLevels(chain->work, theirs.work);
      const Membership* group = MembershipOf(theirs);
      if (group != nullptr && group->members.size() > 1)
        levels = group->levels <= levels ? group->levels : 0;
      if (levels <= best_levels) continue;
      best_levels = levels;
      best_member = other;
      best = &theirs;
    }
  }
  if (best == nullptr) return;
  Membership* group = MembershipOf(*best);
  if (group == nullptr || group->levels != best_levels) {
    if (group != nullptr) Exit(best_member, best);
    auto made = std::make_unique<Membership>();
    made->group = std::make_shared<PrefixGroup>(elements_, options_);
    made->levels = best_levels;
    group = made.get();
    memberships_.push_back(std::move(made));
    Enter(best_member, best, group);
  }
  if (!Enter(member, chain, group)) return;
  // One that was alone in its group goes on with it.
  const PrefixShare* const share = best->shares.back().get();
  best_member->shares_[share->work.node->shareable].store(share, std::memory_order_release);
}

SharedPrefixes::Membership* SharedPrefixes::MembershipOf(const PrefixMember::Chain& chain) {
  if (chain.levels == 0) return nullptr;
  for (const std::unique_ptr<Membership>& one : memberships_) {
    if (one->group == chain.shares.back()->group) return one.get();
  }
  return nullptr;
}

bool SharedPrefixes::Enter(PrefixMember* member, PrefixMember::Chain* chain,
                           Membership* membership) {
  std::vector<uint32_t> numbers, files;
  for (const FileEntry& file : *member->plan_.manifest) {
    if (file.path.empty()) {
      numbers.push_back(PrefixShare::kNoFile);
      continue;
    }
    const auto number = static_cast<uint32_t>(membership->files.size());
    numbers.push_back(membership->files.try_emplace(TellApart(file), number).first->second);
    files.push_back(numbers.back());
  }
  const std::optional<int> number = elements_.Join(membership->group->id, files);
  if (!number) return false;
  chain->shares.push_back(std::unique_ptr<PrefixShare>(
      new PrefixShare{SplitWork(chain->work, membership->levels - 1), membership->group, *number,
                      std::move(numbers), chain->counters.get()}));
  chain->levels = membership->levels;
  membership->members.push_back(member);
  // SYNC prefix-share
  const PrefixShare* const share = chain->shares.back().get();
  if (membership->members.size() > 1)
    member->shares_[share->work.node->shareable].store(share, std::memory_order_release);
  return true;
}

void SharedPrefixes::Exit(PrefixMember* member, PrefixMember::Chain* chain) {
  Membership* const membership = MembershipOf(*chain);
  if (membership == nullptr) return;
  const PrefixShare& share = *chain->shares.back();
  member->shares_[share.work.node->shareable].store(nullptr, std::memory_order_release);
  elements_.Leave(share.group->id, share.member);
  chain->levels = 0;
  // Of a pipeline that reads the same files twice, two chains may be members.
  membership->members.erase(
      std::find(membership->members.begin(), membership->members.end(), member));
  if (membership->members.empty()) {
    std::erase_if(memberships_, [membership](const auto& one) { return one.get() == membership; });
    return;
  }
  if (membership->members.size() > 1) return;
  // Who is left computes as if it had always been alone.
  for (PrefixMember::Chain& left : membership->members[0]->chains_) {
    if (MembershipOf(left) != membership) continue;
    const PrefixShare& last = *left.shares.back();
    membership->members[0]->shares_[last.work.node->shareable].store(nullptr,
                                                                     std::memory_order_release);
  }
}

void SharedPrefixes::Leave(PrefixMember* member) {
  for (PrefixMember::Chain& chain : member->chains_) Exit(member, &chain);
  std::erase(members_, member);
}

std::vector<SharedStats> SharedPrefixes::StatsOf(const PrefixMember& member) {
  std::vector<SharedStats> all;
  for (const PrefixMember::Chain& chain : member.chains_) {
    if (chain.shares.empty()) continue;
    SharedStats stats;
    stats.stage = (*member.plan_.stage_names)[chain.shares.back()->work.stage];
    stats.hits = chain.counters->hits.load(std::memory_order_relaxed);
    stats.misses = chain.counters->misses.load(std::memory_order_relaxed);
    std::set<std::string> with;
    if (const Membership* group = MembershipOf(chain)) {
      for (const PrefixMember* other : group->members) {
        if (other->pipeline_ != member.pipeline_) with.insert(other->pipeline_);
      }
      const SharedElements::Held held = elements_.HeldBy(group->group->id);
      stats.elements = held.elements;
      stats.bytes = held.bytes;
      stats.state = NameOf(group->group->state());
    }
    if (with.empty()) stats.state = "alone";
    stats.with.assign(with.begin(), with.end());
    all.push_back(std::move(stats));
  }
  return all;
}

}  // namespace penstock
