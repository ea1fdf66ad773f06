#include "server/service/watch/profile_json.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

constexpr double kNsPerUs = 1000;

std::string NameOf(const WorkSpan& span, const std::vector<std::string>& stages,
                   const std::vector<std::string>& functions) {
  switch (span.kind) {
    case WorkKind::kFront:
      return "front";
    case WorkKind::kRead:
      return "read";
    case WorkKind::kBlock:
      return absl::StrFormat("block of step %d", span.detail);
    case WorkKind::kSection:
      return "section";
    case WorkKind::kErrand:
      return "errand";
    case WorkKind::kAway:
    case WorkKind::kStage:
      return span.detail < stages.size() ? stages[span.detail] : "stage";
    case WorkKind::kFunction:
      return span.detail < functions.size() ? functions[span.detail] : "function";
    case WorkKind::kWaitForSlot:
      return "waits for a slot";
    case WorkKind::kSleep:
      return "sleeps";
  }
  return "";
}

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// Threads of a process of their own: consumers by their streams and numbers.
void AddWaits(const std::string& pipeline, const std::vector<ConsumerWait>& waits,
              std::string* out) {
  if (waits.empty()) return;
  absl::StrAppendFormat(
      out, ",\n{\"ph\":\"M\",\"pid\":3,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
      Quoted("consumers: " + pipeline));
  std::map<std::pair<uint64_t, uint32_t>, int> threads;
  for (const ConsumerWait& wait : waits) {
    const auto [thread, is_new] = threads.emplace(std::pair(wait.stream, wait.consumer),
                                                  static_cast<int>(threads.size()) + 1);
    if (is_new) {
      absl::StrAppendFormat(
          out,
          ",\n{\"ph\":\"M\",\"pid\":3,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":%s}}",
          thread->second, Quoted(wait.name));
    }
    if (wait.end_ns == wait.begin_ns) continue;
    absl::StrAppendFormat(out,
                          ",\n{\"ph\":\"X\",\"pid\":3,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":"
                          "\"waits for a batch\"}",
                          thread->second, static_cast<double>(wait.begin_ns) / kNsPerUs,
                          static_cast<double>(wait.end_ns - wait.begin_ns) / kNsPerUs);
  }
}

}  // namespace

std::string ProfileJson(const std::string& pipeline, const std::vector<std::string>& stages,
                        const WorkSpans& spans, const std::vector<ConsumerWait>& waits) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  absl::StrAppendFormat(&out, R"({"ph":"M","pid":1,"name":"process_name","args":{"name":%s}})",
                        Quoted("penstockd: " + pipeline));
  std::set<int> workers, processes;
  for (const WorkSpan& span : spans.spans)
    (span.kind == WorkKind::kAway ? processes : workers).insert(span.worker);
  for (const int worker : workers) {
    absl::StrAppendFormat(&out,
                          ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":"
                          "{\"name\":\"worker %d\"}}",
                          worker + 1, worker);
  }
  // By their own numbers: no worker of the daemon has such a one.
  for (const int process : processes) {
    absl::StrAppendFormat(&out,
                          ",\n{\"ph\":\"M\",\"pid\":2,\"tid\":%d,\"name\":\"thread_name\",\"args\":"
                          "{\"name\":\"process %d\"}}",
                          process, process);
  }
  if (!processes.empty()) {
    absl::StrAppendFormat(
        &out, ",\n{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
        Quoted("Python workers: " + pipeline));
  }
  for (const WorkSpan& span : spans.spans) {
    const bool is_away = span.kind == WorkKind::kAway;
    absl::StrAppendFormat(
        &out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":%s}",
        is_away ? 2 : 1, is_away ? span.worker : span.worker + 1,
        static_cast<double>(span.begin) / kNsPerUs,
        static_cast<double>(span.end - span.begin) / kNsPerUs,
        Quoted(NameOf(span, stages, spans.functions)));
  }
  AddWaits(pipeline, waits, &out);
  return out + "\n]}\n";
}

}  // namespace penstock
