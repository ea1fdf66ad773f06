#include "client/ctl/describe.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace penstock::ctl {

std::string DataTypeName(int dtype) {
  const std::string& name = v1::DataType_Name(static_cast<v1::DataType>(dtype));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "DATA_TYPE_"));
}

std::string StateName(v1::PipelineState state) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::PipelineState_Name(state), "PIPELINE_STATE_"));
}

std::string ByteCount(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " bytes")
                   : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string DescribeElement(const v1::Pipeline& pipeline) {
  int width = 0;
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    width = std::max(width, static_cast<int>(tensor.name().size()));
  }
  std::string text;
  for (const v1::TensorSignature& tensor : pipeline.element()) {
    absl::StrAppend(&text,
                    absl::StrFormat("%-*s  %-8s  %s\n", width, tensor.name(),
                                    DataTypeName(tensor.dtype()), ShapeName(tensor.shape())));
  }
  return text;
}

std::string DescribeShared(const v1::SharedPrefixStats& prefix) {
  std::string line = absl::StrCat("the work up to ", prefix.stage());
  if (prefix.with().empty()) {
    absl::StrAppend(&line, " was shared with others, who have gone");
  } else {
    absl::StrAppend(&line, " is done together with ", absl::StrJoin(prefix.with(), ", "), " (",
                    prefix.state(), ")");
  }
  absl::StrAppend(&line, ": ", prefix.hits(), " elements taken from them, ", prefix.misses(),
                  " computed here");
  if (!prefix.with().empty())
    absl::StrAppend(&line, "; ", prefix.elements(), " wait, ", ByteCount(prefix.bytes()));
  return line;
}

std::string DescribeNuma(const v1::PipelineStats& stats, const std::string& prefix) {
  const v1::NumaPlacement& numa = stats.numa();
  std::string text = absl::StrCat(prefix, "node ", numa.node(), ": ");
  if (numa.processors() > 0) {
    absl::StrAppend(&text, "workers on its ", numa.processors(), " processors");
  } else {
    absl::StrAppend(&text, "workers on any processors");
  }
  if (numa.has_ring_bytes()) {
    absl::StrAppend(&text, ", ", ByteCount(numa.ring_bytes()), " of the ring there");
  } else {
    absl::StrAppend(&text, numa.ring() ? ", ring asked for there" : ", ring on any");
  }
  text += "\n";
  for (const std::string& notice : numa.notice()) absl::StrAppend(&text, prefix, notice, "\n");
  return text;
}

std::string DescribeWorkMemory(const v1::PipelineStats& stats) {
  const std::string most = stats.max_work_bytes() == 0
                               ? ", without a limit"
                               : absl::StrCat(" of at most ", ByteCount(stats.max_work_bytes()));
  return absl::StrCat("computing and keeping take ", ByteCount(stats.work_bytes()), most);
}

std::string DescribeCall(const v1::ReadUnderWay& call) {
  const bool has_offset = call.doing() == "reading" || call.doing() == "writing";
  if (!has_offset) {
    return absl::StrFormat("%s %s has not returned for %.0f s", call.doing(), call.file(),
                           call.seconds());
  }
  return absl::StrFormat("%s %s, offset %u, has not returned for %.0f s", call.doing(), call.file(),
                         call.offset(), call.seconds());
}

std::string DescribePython(const v1::PythonWorkers& workers, double busy) {
  std::string text = absl::StrFormat(
      "%u of at most %u Python workers%s, at rows %.0f %% of the time, %s", workers.workers(),
      workers.most_workers(), workers.chosen() ? " (as many as the rows need)" : "", 100 * busy,
      ByteCount(workers.memory_bytes()));
  // A row of some milliseconds says nothing to anybody.
  if (workers.oldest_row_seconds() >= 0.1)
    absl::StrAppendFormat(&text, "; the oldest row has taken %.1f s", workers.oldest_row_seconds());
  if (workers.loading_seconds() >= 1)
    absl::StrAppendFormat(&text, "; one has been loading for %.0f s", workers.loading_seconds());
  if (workers.deaths() > 0)
    absl::StrAppendFormat(&text, "; %u of %u died", workers.deaths(), workers.started());
  if (workers.has_offers())
    absl::StrAppendFormat(&text, "; processes of user %u that offer workers: %u", workers.uid(),
                          workers.offers());
  if (workers.waits_for_offer_seconds() > 0)
    absl::StrAppendFormat(&text, "; rows have waited %.1f s for one that has the function",
                          workers.waits_for_offer_seconds());
  return text;
}

void PrintSkipped(const v1::ListSkippedResponse& skipped, FILE* out) {
  for (const v1::SkippedPlace& place : skipped.places()) {
    const std::string length =
        place.length() == 0 ? "to the end" : absl::StrCat(place.length(), " bytes");
    std::fprintf(out, "%s: offset %llu, %s: %s (epoch %llu)\n", place.file().c_str(),
                 static_cast<unsigned long long>(place.offset()), length.c_str(),
                 place.reason().c_str(), static_cast<unsigned long long>(place.epoch()));
  }
  if (skipped.count() > static_cast<uint64_t>(skipped.places_size())) {
    std::fprintf(out, "… %llu damaged places in all\n",
                 static_cast<unsigned long long>(skipped.count()));
  }
}

}  // namespace penstock::ctl
