// Looks for tar files on which the stream of samples and their index differ, lose or invent bytes,
// or do what they must not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/tar_format.h"
#include "tests/support/memory_file.h"

namespace {

using namespace penstock;

void LookAt(absl::Span<const uint8_t> bytes) {
  std::string key;
  uint64_t taken = 0;
  ForEachTarMember(bytes, &key, [&](const TarMember& member) {
    taken += member.extension.size() + member.data.size();
    if (taken > bytes.size()) std::abort();
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = test::InMemory(std::string(reinterpret_cast<const char*>(data), size));
  const RecordAccess& access = *TarFormat()->access();
  LookAt({data, size});
  for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
    NoIndexStore nowhere;
    const auto index = LoadOrBuildIndex(file, access, nowhere, {.on_damage = on_damage});
    auto stream = RecordStream::Open(file, Compression::kNone,
                                     {.format = TarFormat(), .on_damage = on_damage});
    // What looks like a compressed file is no plain one.
    if (!stream.ok() && index.ok()) std::abort();
    if (!stream.ok()) continue;
    RecordChunk chunk;
    uint64_t records = 0;
    uint64_t end = 0;
    do {
      (*stream)->Next(&chunk);
      for (const RecordChunk::Record& record : chunk.records) {
        if (record.offset < end || record.offset + record.length > size) std::abort();
        end = record.offset + record.length;
        if (index.ok() &&
            (records >= (*index)->size() || (*index)->offset(records) != record.offset ||
             (*index)->end(records) < end)) {
          std::abort();
        }
        ++records;
        if (!record.late) LookAt({chunk.data(record), record.length});
        Arena arena;
        const auto read = access.Read(*file, record.offset, record.length, arena);
        if (!read.ok()) std::abort();
        LookAt(*read);
      }
      for (const Damage& damage : chunk.damage) {
        if (damage.offset < end || damage.length == 0 || damage.length > size - damage.offset)
          std::abort();
        end = damage.offset + damage.length;
      }
    } while (chunk.error.ok() && !chunk.end_of_file);
    if (chunk.error.ok() != index.ok()) std::abort();
    if (index.ok() && records != (*index)->size()) std::abort();
  }
  return 0;
}
