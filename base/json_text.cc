#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <simdjson.h>
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "base/utf8.h"

namespace penstock {
namespace {

// Behind a larger text its memory is given back.
constexpr size_t kKeptCapacity = size_t{4} << 20;
// As StopLook counts one.
constexpr uint64_t kTokenWork = 8;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }
int HexValue(char byte) {
  if (IsDigit(byte)) return byte - '0';
  const char lower = static_cast<char>(byte | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Where a string begins that has no end, or has a control character in it: what simdjson says
// without a place.
JsonFault LocateStringFault(absl::string_view text) {
  StopLook look;
  for (size_t at = 0; at < text.size(); ++at) {
    look.Did(1);
    if (text[at] != '"') {
      at += text[at] == '\\';  // it escapes, wherever it stands
      continue;
    }
    const size_t begin = at;
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      look.Did(1);
      if (text[at] == '\\' && ++at == text.size()) break;
      if (static_cast<unsigned char>(text[at]) < 0x20)
        return {"a string has a control character in it", at};
    }
    if (at >= text.size()) return {"a string has no end", begin};
  }
  return {"a string has no end", text.size()};
}

size_t LocateNoUtf8(absl::string_view text) {
  size_t at = 0, bytes = 0;
  StopLook look;
  while (at < text.size() && DecodeUtf8(text.substr(at), &bytes) >= 0) {
    look.Did(bytes);
    at += bytes;
  }
  return at;
}

// Four hexadecimal digits.
int32_t CodeUnit(const char* digits) {
  int32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    const int value = HexValue(digits[i]);
    if (value < 0) return -1;
    unit = unit << 4 | value;
  }
  return unit;
}

char* WriteCodePoint(int32_t code, char* to) {
  if (code < 0x80) {
    *to++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *to++ = static_cast<char>(0xc0 | code >> 6);
    *to++ = static_cast<char>(0x80 | (code & 0x3f));
  } else {
    if (code < 0x10000) {
      *to++ = static_cast<char>(0xe0 | code >> 12);
    } else {
      *to++ = static_cast<char>(0xf0 | code >> 18);
      *to++ = static_cast<char>(0x80 | (code >> 12 & 0x3f));
    }
    *to++ = static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *to++ = static_cast<char>(0x80 | (code & 0x3f));
  }
  return to;
}

#if defined(__SSE2__)
// Which of 32 bytes are backslashes.
uint32_t Backslashes(__m128i low, __m128i high) {
  const __m128i backslashes = _mm_set1_epi8('\\');
  const auto of_low = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(low, backslashes)));
  const auto of_high = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(high, backslashes)));
  return of_low | of_high << 16;
}
#endif

// The first backslash of [at, end), or `end`. Up to `readable` there are bytes to be looked at.
[[gnu::always_inline]] inline const char* FindBackslash(const char* at, const char* end,
                                                        const char* readable) {
#if defined(__SSE2__)
  while (at < end && readable - at >= 32) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(at);
    const uint32_t found = Backslashes(_mm_loadu_si128(bytes), _mm_loadu_si128(bytes + 1));
    if (found != 0) return std::min(at + __builtin_ctz(found), end);
    at += 32;
  }
  if (at >= end) return end;
#endif
  while (at < end && *at != '\\') ++at;
  return std::min(at, end);
}

// What the byte behind a backslash stands for; 0: it is a 'u', or wrong.
constexpr std::array<char, 256> OneByteEscapes() {
  std::array<char, 256> escapes{};
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  escapes['/'] = '/';
  escapes['b'] = '\b';
  escapes['f'] = '\f';
  escapes['n'] = '\n';
  escapes['r'] = '\r';
  escapes['t'] = '\t';
  return escapes;
}
constexpr std::array<char, 256> kOneByteEscapes = OneByteEscapes();
char OneByteEscape(char byte) { return kOneByteEscapes[static_cast<uint8_t>(byte)]; }

// Copies up to the next backslash or the end, whole registers at a time. What is written beyond is
// written again, or is no more than is left of the string.
const char* CopyPlain(const char* from, const char* end, char** to) {
#if defined(__SSE2__)
  while (end - from >= 32) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(from);
    const __m128i low = _mm_loadu_si128(bytes), high = _mm_loadu_si128(bytes + 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(*to), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(*to) + 1, high);
    const uint32_t found = Backslashes(low, high);
    const int plain = found == 0 ? 32 : __builtin_ctz(found);
    from += plain;
    *to += plain;
    if (found != 0) return from;
  }
  const __m128i backslashes = _mm_set1_epi8('\\');
  while (end - from >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(*to), bytes);
    const int found = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, backslashes));
    const int plain = found == 0 ? 16 : __builtin_ctz(found);
    from += plain;
    *to += plain;
    if (found != 0) return from;
  }
#endif
  while (from < end && *from != '\\') *(*to)++ = *from++;
  return from;
}

}  // namespace

struct JsonTokens::Finder {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> implementation;
  size_t capacity = 0;
};

JsonTokens::JsonTokens() : finder_(std::make_unique<Finder>()) {}
JsonTokens::~JsonTokens() = default;

void JsonTokens::Clear() {
  *finder_ = Finder();
  count_ = 0;
}

std::string DescribeJsonFault(const JsonFault& fault) {
  return absl::StrCat("not JSON: ", fault.what, " (byte ", fault.offset, " of the text)");
}

JsonFault JsonTokens::Find(absl::string_view text, bool* is_utf8) {
  *is_utf8 = true;
  const size_t passed = absl::StartsWith(text, kByteOrderMark) ? kByteOrderMark.size() : 0;
  // Offsets are those of the text as it was given.
  const auto behind_mark = [passed](JsonFault fault) {
    fault.offset += passed;
    return fault;
  };
  text.remove_prefix(passed);
  text_ = text.data();
  size_ = text.size();
  passed_ = passed;
  count_ = 0;
  if (size_ >= UINT32_MAX - 64) return {"expected less than 4 GiB, found more", 0};
  if (size_ == 0) return behind_mark({"expected a value, found nothing", 0});
  Finder& finder = *finder_;
  if (finder.capacity > kKeptCapacity && size_ <= kKeptCapacity) finder = Finder();
  if (finder.capacity < size_) {
    const size_t capacity = size_ < kKeptCapacity ? size_ + size_ / 2 + 4096 : size_;
    // Depth is counted by Pass(): the library keeps a stack of it for its own second stage.
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(
            capacity, 1, finder.implementation) != simdjson::SUCCESS) {
      finder = Finder();
      return {"no memory for the places of its tokens", 0};
    }
    finder.capacity = capacity;
  }
  const simdjson::error_code error = finder.implementation->stage1(
      reinterpret_cast<const uint8_t*>(text_), size_, simdjson::stage1_mode::regular);
  switch (error) {
    case simdjson::SUCCESS:
      break;
    case simdjson::UTF8_ERROR:
      *is_utf8 = false;
      return behind_mark({"expected UTF-8, found other bytes", LocateNoUtf8(text)});
    case simdjson::EMPTY:
      return behind_mark({"expected a value, found nothing", 0});
    case simdjson::UNCLOSED_STRING:
    case simdjson::UNESCAPED_CHARS:
      return behind_mark(LocateStringFault(text));
    default:
      return {simdjson::error_message(error), 0};
  }
  begins_ = finder.implementation->structural_indexes.get();
  count_ = finder.implementation->n_structural_indexes;
  return {};
}

// REQUIRES: the token is there.
inline bool JsonTokens::PassString(size_t token, Inside* inside, JsonFault* fault) const {
  const char* const first = text_ + begins_[token] + 1;
  const char* last = text_ + begin(token + 1) - 1;
  if (*last != '"') last = text_ + end(token) - 1;
  if (last < first || *last != '"') {
    *fault = {"a string has no end", offset(token)};
    return false;
  }
  inside->bytes = {first, static_cast<size_t>(last - first)};
  const char* const escape = FindBackslash(first, last, text_ + size_);
  inside->has_escapes = escape < last;
  return escape == last || PassEscapes(escape, last, fault);
}

// From a backslash on.
bool JsonTokens::PassEscapes(const char* at, const char* end, JsonFault* fault) const {
  do {
    if (at + 1 < end && OneByteEscape(at[1]) != '\0') {
      at += 2;
    } else if (end - at >= 6 && at[1] == 'u' && CodeUnit(at + 2) >= 0) {
      at += 6;
    } else {
      *fault = {"an escape that there is not", passed_ + static_cast<size_t>(at - text_)};
      return false;
    }
    at = FindBackslash(at, end, text_ + size_);
  } while (at < end);
  return true;
}

JsonScalar JsonScalarOf(absl::string_view token) {
  if (token.empty()) return JsonScalar::kNone;
  const auto word = [token](absl::string_view expected, JsonScalar kind) {
    return token == expected ? kind : JsonScalar::kNone;
  };
  switch (token[0]) {
    case 'n':
      return word("null", JsonScalar::kNull);
    case 't':
      return word("true", JsonScalar::kTrue);
    case 'f':
      return word("false", JsonScalar::kFalse);
    case 'N':
      return word("NaN", JsonScalar::kNotFinite);
    case 'I':
      return word("Infinity", JsonScalar::kNotFinite);
    case '-':
      if (token == "-Infinity") return JsonScalar::kNotFinite;
      break;
    default:
      break;
  }
  const char* at = token.data();
  const char* const end = at + token.size();
  const auto digits = [&at, end] {
    const char* const first = at;
    while (at < end && IsDigit(*at)) ++at;
    return at > first;
  };
  if (at < end && *at == '-') ++at;
  if (at < end && *at == '0') {
    ++at;
  } else if (!digits()) {
    return JsonScalar::kNone;
  }
  if (at == end) return JsonScalar::kInteger;
  if (*at == '.') {
    ++at;
    if (!digits()) return JsonScalar::kNone;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) ++at;
    if (!digits()) return JsonScalar::kNone;
  }
  return at == end ? JsonScalar::kReal : JsonScalar::kNone;
}

bool JsonTokens::PassKey(size_t token, Inside* key, JsonFault* fault) const {
  if (kind(token) != '"') {
    *fault = {"expected a key in quotation marks, found something else", offset(token)};
    return false;
  }
  if (!PassString(token, key, fault)) return false;
  if (kind(token + 1) == ':') return true;
  *fault = {"expected a colon behind a key, found something else", offset(token + 1)};
  return false;
}

bool JsonTokens::PassComma(size_t token, bool* is_last, JsonFault* fault) const {
  const char mark = kind(token);
  *is_last = mark == '}';
  if (*is_last || mark == ',') return true;
  *fault = {token >= count_ ? "a bracket has no end"
                            : "expected a comma or } behind a value, found something else",
            offset(token)};
  return false;
}

bool JsonTokens::PassScalar(size_t token, JsonFault* fault) const {
  if (JsonScalarOf(text(token)) != JsonScalar::kNone) return true;
  const char first = kind(token);
  const bool is_mark = first == ',' || first == ':' || first == ']' || first == '}';
  *fault = {is_mark ? "expected a value, found a mark between values"
                    : "expected a value, found something else",
            offset(token)};
  return false;
}

size_t JsonTokens::Pass(size_t token, JsonFault* fault, size_t around) const {
  // Of each open bracket: whether it is an object's.
  uint64_t objects[kJsonDepthMax / 64];
  size_t depth = 0;
  bool in_object = false;
  const auto open = [&](bool object) {
    if (depth + around >= kJsonDepthMax) return false;
    uint64_t& word = objects[depth / 64];
    if (depth % 64 == 0) word = 0;  // nobody wrote it yet
    word = (word & ~(uint64_t{1} << (depth % 64))) | uint64_t{object} << (depth % 64);
    ++depth;
    in_object = object;
    return true;
  };
  const auto close = [&] {
    --depth;
    in_object = depth > 0 && (objects[(depth - 1) / 64] >> ((depth - 1) % 64) & 1) != 0;
  };
  const auto fail = [&](const char* what) {
    *fault = {what, offset(token)};
    return token;
  };
  Inside inside;
  StopLook look;
  while (true) {
    look.Did(kTokenWork);
    const char first = kind(token);
    if (first == '"') {
      if (!PassString(token, &inside, fault)) return token;
      ++token;
    } else if (first == '{' || first == '[') {
      const bool object = first == '{';
      if (!open(object)) return fail("more than 1024 brackets are open");
      ++token;
      if (kind(token) != (object ? '}' : ']')) {
        if (!object) continue;
        if (!PassKey(token, &inside, fault)) return token;
        token += 2;
        continue;
      }
      ++token;
      close();
    } else if (first == '\0' && token >= count_) {
      return fail("expected a value, found the end");
    } else {
      if (!PassScalar(token, fault)) return token;
      ++token;
    }
    // Behind a value.
    while (true) {
      if (depth == 0) return token;
      const char next = kind(token);
      if (next == ',') {
        ++token;
        if (!in_object) break;
        if (!PassKey(token, &inside, fault)) return token;
        token += 2;
        break;
      }
      if (next != (in_object ? '}' : ']')) {
        if (token >= count_) return fail("a bracket has no end");
        return fail(in_object ? "expected a comma or } behind a value, found something else"
                              : "expected a comma or ] behind a value, found something else");
      }
      close();
      ++token;
    }
  }
}

size_t JsonTokens::Skip(size_t token) const {
  size_t depth = 0;
  StopLook look;
  do {
    look.Did(kTokenWork);
    const char first = text_[begins_[token++]];
    if (first == '{' || first == '[') ++depth;
    if (first == '}' || first == ']') --depth;
  } while (depth > 0);
  return token;
}

JsonFault JsonTokens::CheckEnd(size_t token) const {
  if (token >= count_) return {};
  return {"expected the end behind the document, found more", offset(token)};
}

JsonFault CheckJsonText(absl::string_view text, bool any_bytes, JsonTokens& tokens) {
  bool is_utf8 = true;
  std::string replaced;
  JsonFault fault = tokens.Find(text, &is_utf8);
  if (!is_utf8 && any_bytes) {
    replaced = ReplaceNoUtf8(text);
    fault = tokens.Find(replaced, &is_utf8);
  }
  if (fault) return fault;
  const size_t end = tokens.Pass(0, &fault);
  return fault ? fault : tokens.CheckEnd(end);
}

bool WriteJsonString(absl::string_view string, size_t plain, char* to, char** to_end,
                     size_t* lone) {
  const char* from = string.data();
  const char* const end = from + string.size();
  *lone = 0;
  if (plain > 0) std::memcpy(to, from, plain);
  from += plain;
  to += plain;
  while (true) {
    from = CopyPlain(from, end, &to);
    if (from == end) break;
    if (end - from < 2) return false;
    if (const char meant = OneByteEscape(from[1]); meant != '\0') {
      *to++ = meant;
      from += 2;
      continue;
    }
    int32_t code = from[1] == 'u' && end - from >= 6 ? CodeUnit(from + 2) : -1;
    if (code < 0) return false;
    from += 6;
    if (code >= 0xd800 && code < 0xe000) {
      const int32_t low = code < 0xdc00 && end - from >= 6 && from[0] == '\\' && from[1] == 'u'
                              ? CodeUnit(from + 2)
                              : -1;
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        from += 6;
      } else {
        code = 0xfffd;
        ++*lone;
      }
    }
    to = WriteCodePoint(code, to);
  }
  *to_end = to;
  return true;
}

size_t AppendJsonString(absl::string_view string, std::string* out) {
  const size_t before = out->size();
  out->resize(before + string.size());
  char* end = nullptr;
  size_t lone = 0;
  (void)WriteJsonString(string, 0, out->data() + before, &end, &lone);
  out->resize(end - out->data());
  return lone;
}

}  // namespace penstock
