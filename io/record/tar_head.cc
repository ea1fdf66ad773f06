#include "io/record/tar_head.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kPathBytes = 100;
constexpr size_t kSizeAt = 124;
constexpr size_t kNumberBytes = 12;
constexpr size_t kSumAt = 148;
constexpr size_t kSumBytes = 8;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;
constexpr size_t kPrefixAt = 345;
constexpr size_t kPrefixBytes = 155;
// No archive is longer.
constexpr uint64_t kMaxSize = uint64_t{1} << 60;

// Up to the first zero byte.
absl::string_view Field(const uint8_t* at, size_t bytes) {
  const auto* text = reinterpret_cast<const char*>(at);
  return {text, strnlen(text, bytes)};
}

// `count` octal digits, 8 at most, of which eight bytes may be read. False where one is none.
bool ReadDigits(const uint8_t* at, int count, uint64_t* number) {
  uint64_t digits;
  std::memcpy(&digits, at, sizeof(digits));
  digits = __builtin_bswap64(digits ^ 0x3030303030303030) >> (64 - 8 * count);
  if ((digits & 0xF8F8F8F8F8F8F8F8) != 0) return false;
  // Pairs of them, pairs of those, and these two.
  digits = (digits & 0x0007000700070007) | (digits & 0x0700070007000700) >> 5;
  digits = (digits & 0x0000003F0000003F) | (digits & 0x003F0000003F0000) >> 10;
  *number = (digits & 0xFFF) | (digits >> 20 & 0xFFF000);
  return true;
}

// What most programs write: digits alone, of sizes eleven, of sums six. Of 16 bytes.
bool ReadUsualNumber(const uint8_t* at, size_t bytes, uint64_t* number) {
  if (bytes == kSumBytes) return at[6] == '\0' && ReadDigits(at, 6, number);
  uint64_t low = 0;
  if (at[11] != '\0' || !ReadDigits(at, 8, number) || !ReadDigits(at + 8, 3, &low)) return false;
  *number = *number << 9 | low;
  return true;
}

// A number as text, which spaces may stand around; or, where `may_be_binary`, of 11 bytes. False
// where it is neither.
bool ReadNumber(const uint8_t* at, size_t bytes, bool may_be_binary, uint64_t* number) {
  if (ReadUsualNumber(at, bytes, number)) return true;
  *number = 0;
  if (may_be_binary && at[0] == 0x80) {
    for (size_t i = 1; i < bytes; ++i) {
      if (*number >> 56 != 0) return false;
      *number = *number << 8 | at[i];
    }
    return true;
  }
  size_t i = 0;
  while (i < bytes && at[i] == ' ') ++i;
  for (; i < bytes && at[i] >= '0' && at[i] <= '7'; ++i) *number = *number << 3 | (at[i] - '0');
  return i == bytes || at[i] == ' ' || at[i] == '\0';
}

bool IsZero(const uint8_t* block) {
  return block[0] == 0 && std::memcmp(block, block + 1, kTarBlockBytes - 1) == 0;
}

uint32_t SumOf(const uint8_t* block) {
#if defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  __m128i sums[2] = {zero, zero};
  // Whole lines: unrolled further it is no faster, and takes all registers.
#pragma GCC unroll 1
  for (size_t i = 0; i < kTarBlockBytes; i += 4 * sizeof(__m128i)) {
    const auto* const at = reinterpret_cast<const __m128i*>(block + i);
    for (size_t k = 0; k < 4; ++k)
      sums[k % 2] = _mm_add_epi64(sums[k % 2], _mm_sad_epu8(_mm_loadu_si128(at + k), zero));
  }
  const __m128i both = _mm_add_epi64(sums[0], sums[1]);
  return _mm_cvtsi128_si32(_mm_add_epi64(both, _mm_unpackhi_epi64(both, both)));
#else
  uint32_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) sum += block[i];
  return sum;
#endif
}

bool SumHolds(const uint8_t* block) {
  uint64_t stored = 0;
  if (!ReadNumber(block + kSumAt, kSumBytes, /*may_be_binary=*/false, &stored)) return false;
  uint32_t sum = SumOf(block) + kSumBytes * ' ';
  for (size_t i = kSumAt; i < kSumAt + kSumBytes; ++i) sum -= block[i];
  if (sum == stored) return true;
  // Some old programs took bytes above 127 for negative.
  uint32_t high = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) high += block[i] >> 7;
  for (size_t i = kSumAt; i < kSumAt + kSumBytes; ++i) high -= block[i] >> 7;
  return sum - 256 * high == static_cast<uint32_t>(stored);
}

// Takes what it says of the path and the size. Empty, or what is wrong with it.
std::string ReadPax(absl::string_view lines, TarHead* head, bool* has_path, bool* has_size,
                    bool* refused) {
  while (!lines.empty()) {
    uint64_t length = 0;
    size_t digits = 0;
    while (digits < lines.size() && digits < 10 && lines[digits] >= '0' && lines[digits] <= '9')
      length = length * 10 + (lines[digits++] - '0');
    if (digits == 0 || digits == lines.size() || lines[digits] != ' ' || length > lines.size() ||
        length < digits + 2 || lines[length - 1] != '\n') {
      return "a pax header that is not made of lines \"LENGTH KEY=VALUE\"";
    }
    const absl::string_view text = lines.substr(digits + 1, length - digits - 2);
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) return "a pax header with a line without \"=\"";
    const absl::string_view key = text.substr(0, equals);
    const absl::string_view value = text.substr(equals + 1);
    if (key == "path") {
      head->path = value;
      *has_path = true;
    } else if (key == "size") {
      if (value.empty() || value.size() > 19 || !absl::SimpleAtoi(value, &head->size) ||
          value[0] == '-') {
        return "a pax header whose size is no number";
      }
      *has_size = true;
    } else if (key.substr(0, 11) == "GNU.sparse.") {
      *refused = true;
      return "a sparse member";
    }
    lines.remove_prefix(length);
  }
  return "";
}

}  // namespace

bool IsTarHeader(const uint8_t* block) { return SumHolds(block) && !IsZero(block); }

absl::string_view TarPathField(const uint8_t* block) { return Field(block, kPathBytes); }

bool IsTarPathHeader(const uint8_t* block) {
  switch (block[kTypeAt]) {
    case 'L':
    case 'K':
    case 'x':
    case 'X':
    case 'g':
      return true;
    default:
      return false;
  }
}

TarHead::Found ReadTarHead(absl::Span<const uint8_t> bytes, TarHead* head) {
  using Found = TarHead::Found;
  head->Clear();
  bool has_path = false;
  bool has_size = false;
  uint64_t at = 0;
  while (true) {
    if (bytes.size() < at + kTarBlockBytes) {
      head->bytes = at + kTarBlockBytes;
      return Found::kNeedsMore;
    }
    const uint8_t* const block = bytes.data() + at;
    if (!SumHolds(block)) {
      if (IsZero(block)) {
        if (at == 0) return Found::kEnd;
        head->what = "the archive ends behind the header of a path";
      } else {
        head->what = "no tar header: its checksum does not hold";
      }
      return Found::kDamaged;
    }
    uint64_t size = 0;
    if (!ReadNumber(block + kSizeAt, kNumberBytes, /*may_be_binary=*/true, &size) ||
        size > kMaxSize) {
      head->what = "a tar header whose size is no number";
      return Found::kDamaged;
    }
    head->type = static_cast<char>(block[kTypeAt]);
    at += kTarBlockBytes;
    if (!IsTarPathHeader(block)) {
      if (!has_size) head->size = size;
      if (!has_path) {
        head->path = Field(block, kPathBytes);
        const bool is_ustar = std::memcmp(block + kMagicAt, "ustar\0", 6) == 0;
        if (is_ustar && block[kPrefixAt] != '\0') {
          head->joined = absl::StrCat(Field(block + kPrefixAt, kPrefixBytes), "/", head->path);
          head->path = head->joined;
        }
      }
      break;
    }
    // All of them together: they are looked at again with each one that comes.
    if (at + size > kMaxTarPathBytes) {
      head->what = absl::StrCat("headers of a path longer than limit: ", at + size, " > ",
                                kMaxTarPathBytes, " bytes");
      return Found::kDamaged;
    }
    const uint64_t end = at + TarPadded(size);
    if (bytes.size() < end) {
      head->bytes = end + kTarBlockBytes;
      return Found::kNeedsMore;
    }
    const absl::string_view text(reinterpret_cast<const char*>(bytes.data() + at), size);
    if (head->type == 'L') {
      head->path = text.substr(0, std::min(text.find('\0'), text.size()));
      has_path = true;
    } else if (head->type == 'x' || head->type == 'X') {
      bool refused = false;
      head->what = ReadPax(text, head, &has_path, &has_size, &refused);
      if (!head->what.empty()) return refused ? Found::kRefused : Found::kDamaged;
    }
    at = end;
  }
  head->bytes = at;
  if (head->type == 'S' || head->type == 'M') {
    head->what = head->type == 'S' ? "a sparse member" : "a member of several volumes";
    return Found::kRefused;
  }
  // Old archives tell folders so.
  if (head->type == '\0' && !head->path.empty() && head->path.back() == '/') head->type = '5';
  // What is no file has no data, whatever its size says.
  if (head->type >= '1' && head->type <= '6') head->size = 0;
  if (head->size > kMaxSize) {
    head->what = "a tar header whose size is no number";
    return Found::kDamaged;
  }
  return Found::kMember;
}

bool SplitTarPath(absl::string_view path, absl::string_view* key, absl::string_view* extension) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == absl::string_view::npos ? 0 : slash + 1;
  const size_t dot = path.find('.', begin);
  if (dot == absl::string_view::npos) return false;
  if (dot == begin) {
    // A name that begins with a dot is an extension alone, of the folder that it is in: where that
    // has a name without dots.
    if (begin == 0) return false;
    const size_t folder = path.rfind('/', begin - 2);
    const size_t folder_begin = begin < 2 || folder == absl::string_view::npos ? 0 : folder + 1;
    if (path.substr(folder_begin, begin - 1 - folder_begin).find('.') != absl::string_view::npos)
      return false;
  }
  *key = path.substr(0, dot);
  *extension = path.substr(dot + 1);
  return true;
}

bool IsTarMeta(absl::string_view path) {
  if (path.substr(0, 2) != "__") return false;
  const absl::string_view first = path.substr(0, std::min(path.find('/'), path.size()));
  return first.size() >= 4 && first.substr(first.size() - 2) == "__";
}

}  // namespace penstock
