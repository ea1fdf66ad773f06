#include <array>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"
#include "server/codec/sound_head.h"

namespace penstock {
namespace {

constexpr size_t kPageHeadBytes = 27;
constexpr size_t kChecksumAt = 22;
constexpr uint8_t kIsFirst = 2;
constexpr uint8_t kIsLast = 4;
// Of a packet, which is one segment at least: half of Vorbis' longest block. Opus has 5,760.
constexpr int64_t kSegmentSamplesMax = 8192;

// The checksum of Ogg's pages: the polynomial of Ethernet's, from the highest bit on. Table k is
// that of a byte with k bytes behind it.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables MakeTables() {
  constexpr uint32_t kPolynomial = 0x04c11db7;
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte << 24;
    for (int bit = 0; bit < 8; ++bit) sum = sum << 1 ^ ((sum >> 31) != 0 ? kPolynomial : 0);
    tables[0][byte] = sum;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] << 8 ^ tables[0][tables[k - 1][byte] >> 24];
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

uint32_t Checksum(uint32_t sum, const uint8_t* p, size_t size) {
  for (; size >= 8; p += 8, size -= 8) {
    const uint32_t high = sum ^ LoadBig<uint32_t>(p);
    const uint32_t low = LoadBig<uint32_t>(p + 4);
    sum = kTables[7][high >> 24] ^ kTables[6][high >> 16 & 255] ^ kTables[5][high >> 8 & 255] ^
          kTables[4][high & 255] ^ kTables[3][low >> 24] ^ kTables[2][low >> 16 & 255] ^
          kTables[1][low >> 8 & 255] ^ kTables[0][low & 255];
  }
  for (; size > 0; ++p, --size) sum = sum << 8 ^ kTables[0][sum >> 24 ^ *p];
  return sum;
}

// Of a page, in which its own place counts as zeros.
uint32_t PageChecksum(const uint8_t* page, size_t size) {
  constexpr uint8_t kZeros[4] = {};
  uint32_t sum = Checksum(0, page, kChecksumAt);
  sum = Checksum(sum, kZeros, sizeof(kZeros));
  const size_t behind = kChecksumAt + sizeof(kZeros);
  return Checksum(sum, page + behind, size - behind);
}

// The first packet of the stream: `size` bytes that the first page has.
absl::Status ReadFirstPacket(const uint8_t* packet, size_t size, SoundHead* head) {
  const std::string_view text(reinterpret_cast<const char*>(packet), size);
  if (size >= 30 && text.starts_with("\x01vorbis")) {
    head->channels = packet[11];
    const auto rate = LoadLittle<uint32_t>(packet + 12);
    if (rate == 0 || rate > INT32_MAX)
      return DamagedSound(SoundFormat::kOgg, "a sample rate of ", rate, " a second");
    head->sample_rate = static_cast<int32_t>(rate);
  } else if (size >= 19 && text.starts_with("OpusHead")) {
    head->channels = packet[9];
    head->is_opus = true;
  } else {
    return absl::DataLossError("OGG file of another encoding than Vorbis and Opus");
  }
  if (head->channels == 0)
    return DamagedSound(SoundFormat::kOgg, "expected 1 channel at least, found 0");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SoundHead> ReadOggHead(absl::Span<const uint8_t> file) {
  SoundHead head;
  uint32_t stream = 0;
  bool is_last = false;
  size_t at = 0;
  // At which sample the last page ended that says it, and what can have come since. Heads say 0. A
  // stream that was cut out of another one may begin anywhere.
  int64_t ended_at = 0;
  int64_t samples_since = 0;
  for (uint32_t number = 0; at < file.size(); ++number) {
    const size_t left = file.size() - at;
    const uint8_t* const page = &file[at];
    if (is_last)
      return DamagedSound(SoundFormat::kOgg, "expected its end, found ", left, " bytes at offset ",
                          at);
    if (left < kPageHeadBytes || left < kPageHeadBytes + page[26])
      return DamagedSound(SoundFormat::kOgg, "it ends in the head of a page at offset ", at);
    // With the version behind it, which is 0.
    if (std::memcmp(page, "OggS", 5) != 0)
      return DamagedSound(SoundFormat::kOgg, "no page at offset ", at);
    const size_t segments = page[26];
    const size_t head_bytes = kPageHeadBytes + segments;
    size_t bytes = head_bytes;
    for (size_t i = 0; i < segments; ++i) bytes += page[kPageHeadBytes + i];
    if (bytes > left) {
      return DamagedSound(SoundFormat::kOgg, "a page of ", bytes, " bytes at offset ", at,
                          ", of which the file has ", left);
    }
    if (PageChecksum(page, bytes) != LoadLittle<uint32_t>(page + kChecksumAt))
      return DamagedSound(SoundFormat::kOgg, "a wrong checksum of the page at offset ", at);
    const auto its_stream = LoadLittle<uint32_t>(page + 14);
    if (number == 0) stream = its_stream;
    if (its_stream != stream || ((page[5] & kIsFirst) != 0) != (number == 0))
      return absl::DataLossError(
          absl::StrCat("OGG file of more than one stream: another one at offset ", at));
    if (const auto found = LoadLittle<uint32_t>(page + 18); found != number)
      return DamagedSound(SoundFormat::kOgg, "expected page ", number, " at offset ", at,
                          ", found page ", found);
    if (number == 0) {
      if (absl::Status status = ReadFirstPacket(page + head_bytes, bytes - head_bytes, &head);
          !status.ok())
        return status;
    }
    is_last = (page[5] & kIsLast) != 0;
    const int64_t samples = static_cast<int64_t>(segments) * kSegmentSamplesMax;
    head.samples_max += samples;
    samples_since += samples;
    // -1 where no packet ends.
    if (const auto ends_at = LoadLittle<int64_t>(page + 6); ends_at != -1) {
      if (ends_at < 0 || (ends_at - samples_since > ended_at && (ended_at > 0 || is_last))) {
        return DamagedSound(SoundFormat::kOgg, "the page at offset ", at, " ends at sample ",
                            ends_at, ", more than it can hold behind sample ", ended_at);
      }
      ended_at = ends_at;
      samples_since = 0;
    }
    at += bytes;
  }
  if (!is_last) return DamagedSound(SoundFormat::kOgg, "it ends before its last page");
  head.end = at;
  return head;
}

}  // namespace penstock
