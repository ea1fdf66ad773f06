#include "server/engine/compute/far_records.h"

#include <algorithm>
#include <utility>

#include "base/file_error.h"
#include "io/record/record_access.h"
#include "io/record/tfrecord_frame.h"
#include "server/engine/tasks/together.h"

namespace penstock {
namespace {

// Bytes between two records that are fetched rather than asked for apart.
constexpr uint64_t kGapBytes = 256 << 10;

struct Wanted {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t end = 0;
};

// What of a record lies in its file around its data.
uint64_t AroundBytes(const FileEntry& entry) {
  if (entry.indexed == nullptr || entry.indexed->access() == nullptr) return kFrameBytes;
  const RecordShape& shape = entry.indexed->access()->shape();
  return uint64_t{shape.header_bytes} + shape.footer_bytes;
}

std::vector<Wanted> WantedOf(absl::Span<const RecordRef> records, const Manifest& manifest) {
  std::vector<Wanted> wanted;
  for (const RecordRef& record : records) {
    if (record.file >= manifest.size() || record.data != nullptr) continue;
    const FileEntry& entry = manifest[record.file];
    if (!IsAddress(entry.path)) continue;
    if (entry.is_one_element) {
      // Of a list of files the path alone is an element (server/ops/list_files.cc).
      if (entry.is_stream) continue;
      wanted.push_back({record.file, 0, entry.size_bytes});
    } else if (record.length > 0 && record.offset < entry.size_bytes) {
      const uint64_t end = record.offset + AroundBytes(entry) + record.length;
      wanted.push_back({record.file, record.offset, std::min(end, entry.size_bytes)});
    }
  }
  std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  std::vector<Wanted> joined;
  for (const Wanted& one : wanted) {
    if (!joined.empty() && joined.back().file == one.file &&
        one.offset <= joined.back().end + kGapBytes) {
      joined.back().end = std::max(joined.back().end, one.end);
    } else {
      joined.push_back(one);
    }
  }
  return joined;
}

}  // namespace

bool FarRecords::AnyIn(const FileTable& files) {
  const Manifest& manifest = files.manifest();
  return std::any_of(manifest.begin(), manifest.end(),
                     [](const FileEntry& entry) { return IsAddress(entry.path); });
}

uint64_t FarRecords::Announce(absl::Span<const RecordRef> records, FileTable& files,
                              std::vector<std::shared_ptr<RandomAccessFile>>* open) {
  uint64_t bytes = 0;
  for (const Wanted& one : WantedOf(records, files.manifest())) {
    // Who cannot open it says so where it is read.
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(one.file);
    if (!file.ok()) continue;
    (*file)->WillNeed(one.offset, one.end - one.offset);
    bytes += one.end - one.offset;
    open->push_back(*std::move(file));
  }
  return bytes;
}

bool FarRecords::Begin(absl::Span<const RecordRef> records, FileTable& files, AwayTasks& away,
                       AwayTask* task, int stage) {
  const std::vector<Wanted> wanted = WantedOf(records, files.manifest());
  std::vector<std::pair<FarFile*, Wanted>> ranges;
  bool is_here = true;
  for (const Wanted& one : wanted) {
    // Who cannot open it says so where it is read.
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(one.file);
    if (!file.ok()) continue;
    auto* const far = dynamic_cast<FarFile*>(file->get());
    if (far == nullptr) continue;
    open_.push_back(*std::move(file));
    ranges.emplace_back(far, one);
    is_here &= far->HasFetched(one.offset, one.end - one.offset);
  }
  if (ranges.empty() || is_here) return false;
  is_away_ = true;
  // From here on it may be another worker's at any time after the last end.
  auto* const together =
      new Together(away.Leave(task, {CallKind::kRead, "fetching", ranges[0].first->path(),
                                     ranges[0].second.offset, stage}));
  for (const auto& [far, one] : ranges)
    far->FetchAlone(one.offset, one.end - one.offset, together->One());
  together->End(absl::OkStatus());
  return true;
}

bool FarRecords::Ended() { return std::exchange(is_away_, false); }

}  // namespace penstock
