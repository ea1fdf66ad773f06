#include "io/record/tar_cell.h"

#include <cstddef>
#include <cstring>

namespace penstock {
namespace {

constexpr char kMark[] = {'\0', 't', 'a', 'r', 'c', 'e', 'l', 'l'};
constexpr size_t kFixedBytes = sizeof(kMark) + 2 * sizeof(uint32_t);
constexpr size_t kMemberBytes = 2 * sizeof(uint32_t);
// Where a cell begins, too: data is copied in whole lines.
constexpr size_t kDataAlignment = 64;

void Append(uint32_t number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

uint32_t Load(const uint8_t* at) {
  uint32_t number;
  std::memcpy(&number, at, sizeof(number));
  return number;
}

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

}  // namespace

void WriteTarCellHead(uint32_t key_bytes, absl::string_view texts,
                      absl::Span<const TarCellMember> members, std::string* head) {
  head->assign(kMark, sizeof(kMark));
  Append(static_cast<uint32_t>(members.size()), head);
  Append(key_bytes, head);
  for (const TarCellMember& member : members) {
    Append(member.extension_bytes, head);
    Append(member.data_bytes, head);
  }
  head->append(texts.data(), texts.size());
  head->resize(Aligned(head->size()), '\0');
}

bool IsTarCell(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= kFixedBytes && std::memcmp(bytes.data(), kMark, sizeof(kMark)) == 0;
}

absl::Status ForEachTarCellMember(absl::Span<const uint8_t> bytes, std::string* key,
                                  absl::FunctionRef<absl::Status(const TarMember&)> take) {
  const auto bad = [] { return absl::DataLossError("no sample of a tar file: an empty path"); };
  const uint64_t members = Load(bytes.data() + sizeof(kMark));
  const uint64_t key_bytes = Load(bytes.data() + sizeof(kMark) + sizeof(uint32_t));
  uint64_t text_at = kFixedBytes + members * kMemberBytes;
  if (text_at > bytes.size()) return bad();
  uint64_t texts_end = text_at + key_bytes;
  for (uint64_t i = 0; i < members; ++i)
    texts_end += Load(bytes.data() + kFixedBytes + i * kMemberBytes);
  if (texts_end > bytes.size()) return bad();
  const auto* const texts = reinterpret_cast<const char*>(bytes.data());
  key->assign(texts + text_at, key_bytes);
  text_at += key_bytes;
  uint64_t at = Aligned(texts_end);
  for (uint64_t i = 0; i < members; ++i) {
    const uint8_t* const entry = bytes.data() + kFixedBytes + i * kMemberBytes;
    const uint64_t extension_bytes = Load(entry);
    const uint64_t data_bytes = Load(entry + sizeof(uint32_t));
    if (at > bytes.size() || data_bytes > bytes.size() - at) return bad();
    absl::Status status = take({{texts + text_at, extension_bytes}, bytes.subspan(at, data_bytes)});
    if (!status.ok()) return status;
    text_at += extension_bytes;
    at += data_bytes;
  }
  return absl::OkStatus();
}

}  // namespace penstock
