// The pipelines that a daemon before this one has left: those that come back, and those that are
// set aside.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/state/world_message.h"
#include "spdlog/spdlog.h"

namespace penstock {

std::string PipelineTable::SetAsideMessage(const std::string& name, const std::string& why) {
  return absl::StrCat("pipeline ", name, " is set aside: ", why, "; penstock resume ", name,
                      " tries it again, penstock delete ", name, " deletes it");
}

std::vector<std::string> PipelineTable::ExpectKept() {
  std::vector<std::string> names;
  if (journal_ == nullptr) return names;
  for (PipelineJournal::Entry& entry : journal_->Load()) {
    const std::string name = entry.spec.name();
    const std::optional<std::string> why =
        notes_ == nullptr ? std::nullopt : notes_->SetAside(name);
    const uid_t owner = journal_->LoadOwner(name);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Place& place = places_[name];
      place.expected = std::make_shared<const PipelineJournal::Entry>(std::move(entry));
      place.set_aside = why.value_or("");
      place.owner = owner;
      place.turn = ++turn_;
    }
    if (!why) {
      names.push_back(name);
      continue;
    }
    spdlog::error("pipeline {} is set aside: {}; penstock resume {} tries it again", name, *why,
                  name);
    events_.Publish(WithOwner(MakeEvent(name, v1::EVENT_KIND_SET_ASIDE, *why), owner));
  }
  return names;
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineTable::BringBack(const std::string& name) {
  std::shared_ptr<const PipelineJournal::Entry> entry;
  uint64_t turn;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(name);
    if (found == places_.end() || found->second.expected == nullptr ||
        !found->second.set_aside.empty())
      return NotFound(name, nullptr);
    entry = found->second.expected;
    turn = found->second.turn;
  }
  PipelineOptions options;
  options.cursor = entry->cursor;
  options.changed_work = entry->changed_work;
  options.world = entry->world;
  options.fewest_hosts = entry->fewest_hosts;
  options.defaults = defaults();
  options.returns = true;
  options.state = {entry->history, entry->paused, entry->slow_policies, entry->complete_groups,
                   entry->meanings};
  options.owner.uid = journal_->LoadOwner(name);
  return Make(entry->spec, std::move(options), Life::kKept, turn);
}

std::map<std::string, absl::Status> PipelineTable::Returning() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, absl::Status> returning;
  for (const auto& [name, place] : places_) {
    if (place.expected != nullptr && place.set_aside.empty()) returning[name] = place.failure;
  }
  return returning;
}

std::map<std::string, v1::Pipeline> PipelineTable::SetAside() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, v1::Pipeline> all;
  for (const auto& [name, place] : places_) {
    if (place.set_aside.empty()) continue;
    v1::Pipeline& out = all[name];
    out.set_name(name);
    *out.mutable_spec() = place.expected->spec;
    SetWorld(place.expected->world, &out);
    for (const v1::Change& change : place.expected->history) *out.add_history() = change;
    out.set_state(v1::PIPELINE_STATE_SET_ASIDE);
    if (const auto uid = ShownUid(place.owner)) out.set_owner_uid(*uid);
    out.mutable_error()->set_code(static_cast<int32_t>(absl::StatusCode::kFailedPrecondition));
    out.mutable_error()->set_message(SetAsideMessage(name, place.set_aside));
  }
  return all;
}

void PipelineTable::OnTakenBack(std::function<void(const std::string& name)> bring_back) {
  std::lock_guard<std::mutex> lock(bring_back_mutex_);
  bring_back_ = std::move(bring_back);
}

absl::Status PipelineTable::TakeBack(const std::string& name, const Asker& by) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(name);
    if (found == places_.end() || found->second.set_aside.empty())
      return absl::NotFoundError(absl::StrCat("pipeline ", name, " is not set aside"));
    found->second.set_aside.clear();
    found->second.turn = ++turn_;
  }
  notes_->Forget(name);
  spdlog::info("pipeline {} was set aside, and is tried again{}", name, by.By());
  std::lock_guard<std::mutex> lock(bring_back_mutex_);
  if (bring_back_ != nullptr) bring_back_(name);
  return absl::OkStatus();
}

}  // namespace penstock
