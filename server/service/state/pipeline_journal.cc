#include "server/service/state/pipeline_journal.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/v1/state.pb.h"
#include "server/service/state/high_water_file.h"
#include "server/service/state/slow_policy.h"
#include "server/service/state/text_proto.h"
#include "server/service/state/world_message.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr char kPipelineSuffix[] = ".pipeline";
constexpr char kConsumersSuffix[] = ".consumers";
constexpr char kOwnerSuffix[] = ".owner";
constexpr char kHighWaterSuffix[] = ".high-water";

bool IsAlive(int32_t pid) {
  // 0: the daemon does not see it (another pid namespace).
  return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

absl::Status NotWritten(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("the pipeline could not be written down, so that it would not "
                                   "come back after a crash: ",
                                   status.message()));
}

}  // namespace

absl::Status PipelineJournal::Put(const Entry& entry) const {
  v1::KeptPipeline kept;
  *kept.mutable_source()->mutable_spec() = entry.spec;
  kept.set_cursor(entry.cursor);
  kept.set_allow_changed_work(entry.changed_work == ChangedWork::kAllow);
  for (const v1::Change& change : entry.history) *kept.add_history() = change;
  kept.set_paused(entry.paused);
  for (const auto& [group, policy] : entry.slow_policies) {
    v1::GroupPolicy* out = kept.add_group_policy();
    out->set_group(group);
    out->set_slow(ToProto(policy.first));
    out->set_lag_ms(policy.second);
  }
  if (entry.complete_groups) {
    kept.mutable_rank_groups()->mutable_complete()->Add(entry.complete_groups->begin(),
                                                        entry.complete_groups->end());
  }
  kept.mutable_meanings()->Add(entry.meanings.begin(), entry.meanings.end());
  SetWorld(entry.world, &kept);
  if (!entry.world.is_alone() && entry.fewest_hosts > 0)
    kept.mutable_world()->set_fewest_hosts(entry.fewest_hosts);
  absl::Status status = CheckText(kept);
  if (status.ok()) {
    status = folder_->Write(absl::StrCat(entry.spec.name(), kPipelineSuffix),
                            kept.SerializeAsString(), StateFolder::Durability::kPowerLoss);
  }
  if (status.ok()) return status;
  return NotWritten(status);
}

std::string PipelineJournal::PathOf(const std::string& name) const {
  return folder_->PathOf(absl::StrCat(name, kPipelineSuffix));
}

absl::Status PipelineJournal::Remove(const std::string& name) const {
  std::lock_guard<std::mutex> lock(consumers_mutex_);
  absl::Status status = folder_->Remove(absl::StrCat(name, kPipelineSuffix));
  if (!status.ok()) return status;
  // What is left of these belongs to no pipeline.
  (void)folder_->Remove(absl::StrCat(name, kConsumersSuffix));
  (void)folder_->Remove(absl::StrCat(name, kOwnerSuffix));
  (void)folder_->Remove(absl::StrCat(name, kHighWaterSuffix));
  SplitFiles::Remove(*folder_, name);
  return absl::OkStatus();
}

std::vector<PipelineJournal::Entry> PipelineJournal::Load() const {
  std::vector<Entry> entries;
  for (const std::string& name : folder_->List(kPipelineSuffix)) {
    const absl::StatusOr<std::string> bytes = folder_->Read(name);
    v1::KeptPipeline kept;
    if (!bytes.ok() && !absl::IsDataLoss(bytes.status())) {
      // Another start may find it readable.
      spdlog::error("a pipeline did not come back: {} is left as it is ({})", name,
                    bytes.status().ToString());
      continue;
    }
    if (!bytes.ok() || !kept.ParseFromString(*bytes) || kept.source().spec().name().empty()) {
      spdlog::error("a pipeline did not come back: {} is set aside ({})", name,
                    bytes.ok() ? "it is of another release" : bytes.status().ToString());
      folder_->SetAside(name);
      continue;
    }
    entries.push_back({kept.source().spec(),
                       kept.cursor(),
                       kept.allow_changed_work() ? ChangedWork::kAllow : ChangedWork::kRefuse,
                       {kept.history().begin(), kept.history().end()},
                       kept.paused(),
                       {}});
    for (const v1::GroupPolicy& policy : kept.group_policy()) {
      if (const auto slow = FromProto(policy.slow()))
        entries.back().slow_policies[policy.group()] = {*slow, policy.lag_ms()};
    }
    entries.back().meanings = {kept.meanings().begin(), kept.meanings().end()};
    entries.back().world = WorldIn(kept);
    entries.back().fewest_hosts = FewestHostsIn(kept);
    if (kept.has_rank_groups()) {
      entries.back().complete_groups.emplace(kept.rank_groups().complete().begin(),
                                             kept.rank_groups().complete().end());
    }
  }
  return entries;
}

void PipelineJournal::PutConsumers(const std::string& name,
                                   const std::vector<KnownConsumer>& consumers) const {
  std::string text;
  for (const KnownConsumer& consumer : consumers) {
    absl::StrAppend(&text, consumer.identity, " ", consumer.pid, "\n");
  }
  std::lock_guard<std::mutex> lock(consumers_mutex_);
  if (!folder_->Has(absl::StrCat(name, kPipelineSuffix))) return;
  const absl::Status status =
      folder_->Write(absl::StrCat(name, kConsumersSuffix), text, StateFolder::Durability::kCrash);
  if (!status.ok()) spdlog::warn("pipeline {}: {}", name, status.ToString());
}

std::vector<PipelineJournal::KnownConsumer> PipelineJournal::LoadConsumers(
    const std::string& name) const {
  std::vector<KnownConsumer> consumers;
  const absl::StatusOr<std::string> text = folder_->Read(absl::StrCat(name, kConsumersSuffix));
  if (!text.ok()) return consumers;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    KnownConsumer consumer;
    if (words.size() == 2 && absl::SimpleAtoi(words[0], &consumer.identity) &&
        absl::SimpleAtoi(words[1], &consumer.pid) && IsAlive(consumer.pid)) {
      consumers.push_back(consumer);
    }
  }
  return consumers;
}

void PipelineJournal::PutOwner(const std::string& name, uid_t uid) const {
  const absl::Status status = folder_->Write(absl::StrCat(name, kOwnerSuffix), absl::StrCat(uid),
                                             StateFolder::Durability::kCrash);
  if (!status.ok()) spdlog::warn("pipeline {}: {}", name, status.ToString());
}

uid_t PipelineJournal::LoadOwner(const std::string& name) const {
  const absl::StatusOr<std::string> text = folder_->Read(absl::StrCat(name, kOwnerSuffix));
  uid_t uid = 0;
  return text.ok() && absl::SimpleAtoi(*text, &uid) ? uid : static_cast<uid_t>(-1);
}

HighWaterOptions PipelineJournal::HighWaterOf(const std::string& name, bool is_new) const {
  const std::string file_name = absl::StrCat(name, kHighWaterSuffix);
  // Written by one thread at a time.
  auto file = std::make_shared<std::unique_ptr<HighWaterFile>>();
  HighWaterOptions options;
  options.pipeline = name;
  options.path = folder_->PathOf(file_name);
  if (is_new) {
    options.limit = HighWater::kFirstLimit;
  } else {
    absl::StatusOr<std::unique_ptr<HighWaterFile>> opened =
        HighWaterFile::Open(*folder_, file_name);
    if (opened.ok()) {
      *file = *std::move(opened);
      options.limit = (*file)->step();
      options.is_of_before = true;
    } else {
      spdlog::warn(
          "pipeline {}: how far it was handed out is not known ({}): a change begins behind what "
          "is "
          "handed out from now on, and behind what those have had who come back with a cursor",
          name, opened.status().ToString());
    }
  }
  options.write = [this, file, file_name](uint64_t step) -> absl::Status {
    if (*file != nullptr) return (*file)->Write(step);
    absl::StatusOr<std::unique_ptr<HighWaterFile>> made =
        HighWaterFile::Create(*folder_, file_name, step);
    if (!made.ok()) return NotWritten(made.status());
    *file = *std::move(made);
    return absl::OkStatus();
  };
  return options;
}

std::shared_ptr<SplitFiles> PipelineJournal::SplitFilesOf(const std::string& name,
                                                          bool empty) const {
  if (empty) SplitFiles::Remove(*folder_, name);
  return std::make_shared<SplitFiles>(*folder_, name);
}

}  // namespace penstock
