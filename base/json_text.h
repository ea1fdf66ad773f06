// The tokens of a JSON text, and whether it is one: RFC 8259, with NaN, Infinity and -Infinity,
// which Python's json writes.
//
// simdjson's first stage finds where tokens begin, on the instruction set that the processor has,
// and checks UTF-8 and strings. What follows what is checked here. The verdict is that of Python's
// json.loads() on bytes: one byte order mark in front is passed over, control characters inside of
// strings are refused, and any number of digits is fine. Lone surrogates in escapes are no fault
// here.
//
// Threads:  one thread at a time; its memory is worth keeping for the next text.
// Owns:     the places of the tokens; never the text, which must stay.
// Limits:   texts below 4 GiB; kJsonDepthMax open brackets (Python's own limit is near 1,000).
// Cost:     Find(): some 0.2 ns a byte, and four bytes of memory for each token, for each byte of
//           the text as address space alone. Pass(): a few nanoseconds a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {

inline constexpr size_t kJsonDepthMax = 1024;

// What is wrong with a text: null is nothing.
struct JsonFault {
  const char* what = nullptr;  // "a string has no end"
  size_t offset = 0;           // of the text

  explicit operator bool() const { return what != nullptr; }
};

// "not JSON: a string has no end (byte 17 of the text)".
std::string DescribeJsonFault(const JsonFault& fault);

class JsonTokens {
 public:
  JsonTokens();
  ~JsonTokens();
  JsonTokens(const JsonTokens&) = delete;
  JsonTokens& operator=(const JsonTokens&) = delete;

  // Finds the tokens of a text. `*is_utf8` is false if the fault is that bytes are no UTF-8, the
  // first of which is at the fault's offset: every other fault that is found here goes before.
  JsonFault Find(absl::string_view text, bool* is_utf8);
  // What Find() takes of memory for a text of `bytes`, and keeps for the next one.
  static uint64_t RoomFor(size_t bytes) { return uint64_t{bytes} * sizeof(uint32_t); }
  // Gives it back. The tokens are gone.
  void Clear();

  size_t count() const { return count_; }
  // The first byte of a token; 0, which begins none, behind the last one.
  char kind(size_t token) const { return token < count_ ? text_[begins_[token]] : '\0'; }
  // Where it stands in the text that Find() was given.
  size_t offset(size_t token) const { return passed_ + begin(token); }
  // All of a token that is no bracket, comma or colon; of a string with its quotation marks.
  absl::string_view text(size_t token) const {
    const size_t first = begin(token);
    return {text_ + first, end(token) - first};
  }
  // Whether a token begins and ends as a string does. Its escapes may be wrong.
  bool IsString(size_t token) const {
    const absl::string_view whole = text(token);
    return whole.size() >= 2 && whole.front() == '"' && whole.back() == '"';
  }
  // The bytes of a string between its quotation marks, as they stand. REQUIRES: IsString().
  absl::string_view string(size_t token) const {
    const absl::string_view whole = text(token);
    return whole.substr(1, whole.size() - 2);
  }

  // Checks the value that begins with a token. Returns the token behind it. `around`: brackets that
  // are open around the value.
  size_t Pass(size_t token, JsonFault* fault, size_t around = 0) const;
  // The same of an object, whose keys are shown: `visit(key, has_escapes, token)` gets each,
  // without its quotation marks and with escapes as they stand, and the token of its value, which
  // nobody has looked at yet. True: the caller looks at the value, for which IsString() is true,
  // and nobody else does. REQUIRES: kind(token) is '{'.
  template <typename Visit>
  size_t PassObject(size_t token, JsonFault* fault, const Visit& visit) const;
  // The token behind a value that Pass() was content with.
  size_t Skip(size_t token) const;
  // That nothing follows the document.
  JsonFault CheckEnd(size_t token) const;

 private:
  struct Finder;

  size_t begin(size_t token) const { return token < count_ ? begins_[token] : size_; }
  // Behind a token: spaces stand between it and the next one, and none at its own beginning.
  size_t end(size_t token) const {
    size_t end = begin(token + 1);
    if (token < count_)
      while (IsSpace(text_[end - 1])) --end;
    return end;
  }
  static bool IsSpace(char byte) {
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
  }

  // A string between its quotation marks.
  struct Inside {
    absl::string_view bytes;
    bool has_escapes = false;
  };

  // The key that a token begins, with its colon.
  bool PassKey(size_t token, Inside* key, JsonFault* fault) const;
  // What stands behind an object's value. `*is_last`: its end.
  bool PassComma(size_t token, bool* is_last, JsonFault* fault) const;
  bool PassString(size_t token, Inside* inside, JsonFault* fault) const;
  bool PassEscapes(const char* first, const char* end, JsonFault* fault) const;
  bool PassScalar(size_t token, JsonFault* fault) const;

  std::unique_ptr<Finder> finder_;
  const char* text_ = nullptr;
  size_t size_ = 0;
  size_t passed_ = 0;  // bytes in front of text_: a byte order mark
  const uint32_t* begins_ = nullptr;
  size_t count_ = 0;
};

template <typename Visit>
size_t JsonTokens::PassObject(size_t token, JsonFault* fault, const Visit& visit) const {
  ++token;
  bool is_last = kind(token) == '}';
  Inside key;
  while (!is_last) {
    if (!PassKey(token, &key, fault)) return token;
    const bool looks = visit(key.bytes, key.has_escapes, token + 2);
    token = looks ? token + 3 : Pass(token + 2, fault, /*around=*/1);
    if (*fault || !PassComma(token, &is_last, fault)) return token;
    if (!is_last) ++token;
  }
  return token + 1;
}

// What a token that is no string, bracket, comma or colon may be.
enum class JsonScalar : uint8_t { kNone, kNull, kTrue, kFalse, kInteger, kReal, kNotFinite };
JsonScalar JsonScalarOf(absl::string_view token);

// Whether a text is one JSON document of valid UTF-8 (or, if `any_bytes`, of any bytes): for lines,
// which are checked whole.
JsonFault CheckJsonText(absl::string_view text, bool any_bytes, JsonTokens& tokens);

// What the bytes of a string mean that Pass() was content with, at the end of `*out`: escapes
// resolved. Lone surrogates become U+FFFD; returns how many there were.
size_t AppendJsonString(absl::string_view string, std::string* out);
// The same of a string that IsString() alone was asked about, into memory with room for as many
// bytes as the string has, which it never exceeds. `*end`: behind the last one. `plain`: so many
// bytes in front have no escape. False: an escape that there is not.
bool WriteJsonString(absl::string_view string, size_t plain, char* to, char** end, size_t* lone);

}  // namespace penstock
