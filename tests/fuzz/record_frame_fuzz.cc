// Looks for bytes on which the readers of TFRecords differ, lose or invent bytes, or do what they
// must not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "io/record/record_chunk.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/tfrecord_access.h"
#include "io/record/tfrecord_reader.h"
#include "server/engine/read/mapped_records.h"
#include "server/engine/read/record_store.h"
#include "tests/support/memory_file.h"

namespace {

using namespace penstock;

struct Found {
  std::vector<uint64_t> places;  // offset and length of each record
  std::vector<Damage> damage;
  absl::StatusCode error = absl::StatusCode::kOk;
  uint64_t error_offset = 0;
  bool operator==(const Found&) const = default;
};

void Take(const RecordChunk& chunk, Found* found) {
  for (const RecordChunk::Record& record : chunk.records) {
    found->places.push_back(record.offset);
    found->places.push_back(record.length);
  }
  found->damage.insert(found->damage.end(), chunk.damage.begin(), chunk.damage.end());
  found->error = chunk.error.code();
  found->error_offset = chunk.error.ok() ? 0 : chunk.error_offset;
}

Found ByChunks(RandomAccessFile& file, OnDamage on_damage) {
  Found found;
  RecordChunk chunk;
  uint64_t offset = 0;
  do {
    ReadChunk(file, offset, chunk.next_is_late, &chunk, on_damage);
    Take(chunk, &found);
    if (chunk.error.ok() && !chunk.end_of_file && chunk.next_offset <= offset) std::abort();
    offset = chunk.next_offset;
  } while (chunk.error.ok() && !chunk.end_of_file);
  return found;
}

Found ByStream(std::shared_ptr<RandomAccessFile> file, OnDamage on_damage) {
  Found found;
  RecordChunk chunk;
  auto stream = RecordStream::Open(std::move(file), Compression::kNone, {.on_damage = on_damage});
  if (!stream.ok()) std::abort();
  do {
    (*stream)->Next(&chunk);
    Take(chunk, &found);
  } while (chunk.error.ok() && !chunk.end_of_file);
  return found;
}

// Whether the records that are copied out of a map are those at the beginning, up to damage or a
// late one.
bool BeginsWithMapped(const Found& found, absl::Span<const uint8_t> bytes) {
  RecordStore store;
  CellCache cells(store);
  RecordList records;
  const MappedFrames taken = CopyMappedFrames(bytes, 0, 0, cells, &records);
  if (records.size() > found.places.size() / 2) return false;
  uint64_t end = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordRef& record = records[i];
    if (record.offset != found.places[2 * i] || record.length != found.places[2 * i + 1])
      return false;
    if (record.offset != end || record.length > kLateRecordBytes) return false;
    const uint8_t* const data = bytes.data() + record.offset + kRecordHeaderBytes;
    if (!std::equal(data, data + record.length, record.data)) return false;
    end += record.length + kRecordHeaderBytes + kRecordFooterBytes;
  }
  store.Release(records);
  if (taken.bytes != end) return false;
  const size_t next = 2 * records.size();
  const bool is_late = next < found.places.size() && found.places[next] == end &&
                       found.places[next + 1] > kLateRecordBytes;
  const bool is_damaged = std::any_of(found.damage.begin(), found.damage.end(),
                                      [end](const Damage& damage) { return damage.offset == end; });
  return end == bytes.size() || is_late || is_damaged;
}

bool Tiles(const Found& found, uint64_t size) {
  uint64_t at = 0;
  size_t record = 0;
  size_t damage = 0;
  while (at < size) {
    if (record < found.places.size() && found.places[record] == at) {
      at += found.places[record + 1] + kRecordHeaderBytes + kRecordFooterBytes;
      record += 2;
    } else if (damage < found.damage.size() && found.damage[damage].offset == at) {
      at += found.damage[damage++].length;
    } else {
      return false;
    }
  }
  return at == size && record == found.places.size() && damage == found.damage.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = test::InMemory(std::string(reinterpret_cast<const char*>(data), size));
  const Found skipped = ByStream(file, OnDamage::kSkipRecord);
  if (skipped.error != absl::StatusCode::kOk || !Tiles(skipped, size)) std::abort();
  if (!(ByChunks(*file, OnDamage::kSkipRecord) == skipped)) std::abort();
  if (!BeginsWithMapped(skipped, {data, size})) std::abort();
  const Found failed = ByStream(file, OnDamage::kFail);
  if ((failed.error == absl::StatusCode::kOk) != skipped.damage.empty()) std::abort();
  if (failed.error != absl::StatusCode::kOk && failed.error_offset != skipped.damage[0].offset)
    std::abort();
  NoIndexStore store;
  const auto index =
      LoadOrBuildIndex(file, TfrecordAccess(), store, {.on_damage = OnDamage::kSkipRecord});
  if (!index.ok() || (*index)->size() != skipped.places.size() / 2) std::abort();
  for (uint64_t i = 0; i < (*index)->size(); ++i) {
    if ((*index)->offset(i) != skipped.places[2 * i]) std::abort();
    if ((*index)->length(i) != skipped.places[2 * i + 1]) std::abort();
  }
  return 0;
}
