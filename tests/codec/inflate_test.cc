// Inflate: strings of several members, and what may not stand behind one. The values of single ones
// are compared with TensorFlow's in tests/client/python_parsing_test.py.
#include "server/codec/inflate.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

// By zlib.compress and gzip.compress of Python.
const std::string kZlibA("\x78\x9c\x4b\x04\x00\x00\x62\x00\x62", 9);
const std::string kZlibB("\x78\x9c\x4b\x02\x00\x00\x63\x00\x63", 9);
const std::string kGzipA(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03"
    "\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00",
    21);
const std::string kGzipB(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03"
    "\x4b\x02\x00\xf9\xef\xbe\x71\x01\x00\x00\x00",
    21);

// They lie in memory of their own, so that a sanitizer sees what is read behind them.
absl::StatusOr<std::string> Inflated(const std::string& data, Wrapping wrapping) {
  const std::vector<uint8_t> bytes(data.begin(), data.end());
  LargeCharge charge;
  return Inflate(bytes.data(), bytes.size(), wrapping, charge);
}

TEST_CASE("all members of a compressed string are inflated") {
  const auto check = [](const std::string& data, Wrapping wrapping, const std::string& expected) {
    const auto text = Inflated(data, wrapping);
    INFO(text.status().ToString());
    REQUIRE(text.ok());
    CHECK(*text == expected);
  };
  check(kZlibA, Wrapping::kZlib, "a");
  check(kZlibA + kZlibB, Wrapping::kZlib, "ab");
  check(kZlibA + kZlibB + kZlibB + kZlibA, Wrapping::kZlib, "abba");
  check(kGzipA, Wrapping::kGzip, "a");
  check(kGzipA + kGzipB, Wrapping::kGzip, "ab");
  check(kGzipA + kGzipB + kGzipB + kGzipA, Wrapping::kGzip, "abba");
}

TEST_CASE("other bytes behind a member are an error, however few") {
  for (size_t size = 1; size <= 16; ++size) {
    CAPTURE(size);
    const std::string garbage(size, 'x');
    for (const auto& text : {Inflated(kZlibA + garbage, Wrapping::kZlib),
                             Inflated(kZlibA + kZlibB + garbage, Wrapping::kZlib),
                             Inflated(kGzipA + garbage, Wrapping::kGzip)}) {
      REQUIRE_FALSE(text.ok());
      CHECK(text.status().code() == absl::StatusCode::kDataLoss);
    }
  }
}

TEST_CASE("bytes behind the last member are told with their place, zeros too") {
  const struct {
    Wrapping wrapping;
    std::string data, name;
  } cases[] = {{Wrapping::kZlib, kZlibA, "zlib"},
               {Wrapping::kZlib, kZlibA + kZlibB, "zlib"},
               {Wrapping::kGzip, kGzipA, "gzip"},
               {Wrapping::kGzip, kGzipB + kGzipA, "gzip"}};
  for (const auto& [wrapping, data, name] : cases) {
    for (const std::string& more :
         {std::string(1, '\0'), std::string(2, '\0'), std::string(1000, '\0'),
          std::string("\0x", 2), std::string("\0", 1) + data, std::string("y")}) {
      const absl::Status status = Inflated(data + more, wrapping).status();
      CHECK(status.code() == absl::StatusCode::kDataLoss);
      CHECK(status.message() == absl::StrCat("expected the end of the string behind its ", name,
                                             " data, found ", more.size(), " more bytes (byte ",
                                             data.size(), " of ", data.size() + more.size(), ")"));
    }
  }
}

TEST_CASE("a second member that is cut is an error") {
  for (size_t size = 1; size < kZlibB.size(); ++size) {
    CAPTURE(size);
    const auto text = Inflated(kZlibA + kZlibB.substr(0, size), Wrapping::kZlib);
    REQUIRE_FALSE(text.ok());
    CHECK(text.status().code() == absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace penstock::testing
