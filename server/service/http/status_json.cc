#include "server/service/http/status_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "base/release.h"
#include "server/service/state/timeline.h"
#include "server/service/watch/sample.h"

namespace penstock {
namespace {

using nlohmann::json;

// As many as a page shows.
constexpr int kPlaces = 50;
constexpr size_t kMaxChangeBytes = 200;

// What looks like 3 digits is enough for a chart, and halves the answer.
double Rounded(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::fabs(value))) - 2);
  return std::round(value / unit) * unit;
}

json HistoryOf(const std::vector<SecondOfPipeline>& seconds) {
  json history = {{"rows_per_s", json::array()},
                  {"read_bytes_per_s", json::array()},
                  {"busy", json::array()},
                  {"blocked", json::array()},
                  {"starved", json::array()}};
  for (const SecondOfPipeline& second : seconds) {
    history["rows_per_s"].push_back(Rounded(second.rows_per_s));
    history["read_bytes_per_s"].push_back(Rounded(second.read_bytes_per_s));
    history["busy"].push_back(Rounded(second.busy));
    history["blocked"].push_back(Rounded(second.blocked));
    history["starved"].push_back(Rounded(second.starved));
  }
  return history;
}

std::string StateName(v1::PipelineState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::PipelineState_Name(state), "PIPELINE_STATE_"));
}

json PythonOf(const v1::PythonWorkers& workers, double busy) {
  return {{"workers", workers.workers()},
          {"most_workers", workers.most_workers()},
          {"chosen", workers.chosen()},
          {"busy", busy},
          {"oldest_row_s", workers.oldest_row_seconds()},
          {"started", workers.started()},
          {"deaths", workers.deaths()},
          {"memory_bytes", workers.memory_bytes()},
          {"uid", workers.uid()},
          {"offers", workers.has_offers() ? json(workers.offers()) : json()},
          {"waits_for_offer_s", workers.waits_for_offer_seconds()}};
}

json RemoteOf(const v1::RemoteStats& remote) {
  return {{"bytes", remote.bytes()},
          {"requests", remote.requests()},
          {"retries", remote.retries()},
          {"hedges", remote.hedges()},
          {"hits", remote.hits()},
          {"misses", remote.misses()},
          {"cached_bytes", remote.cached_bytes()},
          {"waiting", remote.waiting()},
          {"under_way", remote.under_way()},
          {"request_limit", remote.request_limit()},
          {"queued", remote.queued()},
          {"memory_bytes", remote.memory_bytes()},
          {"max_memory_bytes", remote.max_memory_bytes()},
          {"first_byte_ms", remote.first_byte_ms()}};
}

// Null without a read that hangs.
json CallOf(const v1::ReadUnderWay& call) {
  return {{"doing", call.doing()},
          {"file", call.file()},
          {"offset", call.offset()},
          {"seconds", call.seconds()}};
}

json StatsOf(const v1::PipelineStats& stats) {
  const v1::Analysis& analysis = stats.analysis();
  json out = {{"name", stats.name()},
              {"state", StateName(stats.state())},
              {"error", stats.error().message()},
              {"steps", stats.steps()},
              {"rows", stats.rows()},
              {"epoch", stats.epoch()},
              {"records", stats.records()},
              {"bytes_read", stats.bytes_read()},
              {"workers", stats.workers()},
              {"slots", stats.slots()},
              {"used_slots", stats.used_slots()},
              {"ring_bytes", stats.ring_bytes()},
              {"resting", stats.resting()},
              {"running_s", 1e-9 * static_cast<double>(stats.running_ns())},
              {"steps_per_s", analysis.steps_per_s()},
              {"rows_per_s", analysis.rows_per_s()},
              {"read_bytes_per_s", analysis.read_bytes_per_s()},
              {"busy", analysis.busy()},
              {"blocked", analysis.blocked()},
              {"starved", analysis.starved()},
              {"bottleneck", analysis.bottleneck()},
              {"sentence", analysis.sentence()},
              {"oldest_read", stats.has_oldest_read() ? CallOf(stats.oldest_read()) : json()},
              {"oldest_write", stats.has_oldest_write() ? CallOf(stats.oldest_write()) : json()},
              {"oldest_work", stats.has_oldest_work() ? CallOf(stats.oldest_work()) : json()},
              {"tasks_away", stats.tasks_away()},
              {"remote", stats.has_remote() ? RemoteOf(stats.remote()) : json()},
              {"work_bytes", stats.work_bytes()},
              {"max_work_bytes", stats.max_work_bytes()},
              {"numa_notices", std::vector<std::string>(stats.numa().notice().begin(),
                                                        stats.numa().notice().end())},
              {"autotune", stats.autotune().tunes_workers() ? stats.autotune().reason() : ""},
              {"stages", json::array()},
              {"helpers", json::array()},
              {"shared_prefix", json::array()},
              {"consumers", json::array()}};
  for (int i = 0; i < stats.stages_size(); ++i) {
    out["stages"].push_back(
        {{"name", stats.stages(i).name()},
         {"elements", stats.stages(i).elements()},
         {"queue", stats.stages(i).queue()},
         {"away_s", 1e-9 * static_cast<double>(stats.stages(i).away_ns())},
         {"busy", i < analysis.stage_busy_size() ? analysis.stage_busy(i) : 0},
         {"python_workers",
          stats.stages(i).has_python_workers()
              ? PythonOf(stats.stages(i).python_workers(),
                         i < analysis.python_busy_size() ? analysis.python_busy(i) : 0)
              : json()}});
  }
  for (const v1::HelperStats& helper : stats.helpers()) {
    out["helpers"].push_back({{"address", helper.address()},
                              {"state", helper.state()},
                              {"reason", helper.reason()},
                              {"steps_away", helper.steps_away()},
                              {"steps", helper.steps()},
                              {"bytes", helper.bytes()},
                              {"given_back", helper.given_back()},
                              {"left_out", helper.left_out()},
                              {"step_ms", helper.step_ms()}});
  }
  for (const v1::SharedPrefixStats& prefix : stats.shared_prefix()) {
    out["shared_prefix"].push_back(
        {{"stage", prefix.stage()},
         {"with", std::vector<std::string>(prefix.with().begin(), prefix.with().end())},
         {"state", prefix.state()},
         {"hits", prefix.hits()},
         {"misses", prefix.misses()},
         {"elements", prefix.elements()},
         {"bytes", prefix.bytes()}});
  }
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    out["consumers"].push_back({{"id", consumer.id()},
                                {"group", consumer.group()},
                                {"pid", consumer.pid()},
                                {"position", consumer.position()},
                                {"leases", consumer.leases()},
                                {"lag", consumer.lag()},
                                {"steps_per_s", consumer.steps_per_s()},
                                {"empty", consumer.empty()}});
  }
  return out;
}

json BatchOf(const v1::Pipeline& pipeline) {
  json batch = json::array();
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    batch.push_back(
        {{"name", tensor.name()},
         {"type", absl::AsciiStrToLower(
                      absl::StripPrefix(v1::DataType_Name(tensor.dtype()), "DATA_TYPE_"))},
         {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())}});
  }
  return batch;
}

// The newest first.
json ChangesOf(const v1::Pipeline& pipeline) {
  json changes = json::array();
  for (int i = pipeline.history_size(); i-- > 0 && changes.size() < kPlaces;) {
    v1::Change change = pipeline.history(i);
    const std::string from = FromWhere(change);
    const int64_t time = change.time_unix_ms();
    change.clear_step();
    change.clear_time_unix_ms();
    // A stage is told whole, with all constants.
    std::string text = change.ShortDebugString();
    if (text.size() > kMaxChangeBytes) text = text.substr(0, kMaxChangeBytes) + " …";
    changes.push_back({{"from", from}, {"time_unix_ms", time}, {"text", std::move(text)}});
  }
  return changes;
}

// Whether a tensor of its batches looks like pictures.
bool HasPictures(const v1::Pipeline& pipeline) {
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    if (tensor.kind() != v1::TENSOR_KIND_DENSE || tensor.shape_size() < 3) continue;
    if (LooksLikePictures({tensor.shape().begin() + 1, tensor.shape().end()})) return true;
  }
  return false;
}

json SkippedOf(const v1::ListSkippedResponse& skipped) {
  json places = json::array();
  for (const v1::SkippedPlace& place : skipped.places()) {
    if (places.size() == kPlaces) break;
    places.push_back({{"file", place.file()},
                      {"offset", place.offset()},
                      {"reason", place.reason()},
                      {"epoch", place.epoch()}});
  }
  return {{"count", skipped.count()}, {"places", std::move(places)}};
}

}  // namespace

std::string StatusJson(const PipelineTable& table, const Monitor& monitor) {
  json pipelines = json::array();
  for (const auto& pipeline : table.List()) {
    const v1::Pipeline described = pipeline->Describe();
    pipelines.push_back({{"stats", StatsOf(monitor.Stats(*pipeline))},
                         {"history", HistoryOf(monitor.History(pipeline->name()))},
                         {"batch", BatchOf(described)},
                         {"changes", ChangesOf(described)},
                         {"has_pictures", HasPictures(described)},
                         {"skipped", SkippedOf(pipeline->Skipped())}});
  }
  const json status = {{"release", std::string(kRelease)}, {"pipelines", std::move(pipelines)}};
  // Names of files may be in any encoding.
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace penstock
