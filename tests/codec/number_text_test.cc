// Numbers in texts of any length. Which texts are numbers is compared with TensorFlow by
// tests/client/python_parsing_test.py.
#include "server/codec/number_text.h"

#include <cstring>
#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a number's text is as long as it may be, and no longer") {
  for (const DType dtype : {DType::kInt32, DType::kUint64, DType::kFloat32, DType::kFloat64}) {
    uint8_t number[8] = {};
    const std::string spaces(size_t{3} << 20, ' ');
    CHECK(ReadNumber(spaces + "7" + spaces, dtype, number));
    CHECK_FALSE(ReadNumber(spaces, dtype, number));
    CHECK_FALSE(ReadNumber(spaces + "7 7" + spaces, dtype, number));
    const std::string zeros(kNumberTextBytesMax - 1, '0');
    CHECK(ReadNumber(spaces + zeros + "7" + spaces, dtype, number));
    CHECK_FALSE(ReadNumber(zeros + "07", dtype, number));
  }
}

TEST_CASE("every space of ASCII may stand around a number, and none in it") {
  for (const DType dtype : {DType::kInt64, DType::kFloat32}) {
    for (const char* const text : {" 7", "7 ", "\t\n\v\f\r 7\r\n", "+7", " -7 ", "007"}) {
      INFO(text);
      uint8_t number[8] = {};
      CHECK(ReadNumber(text, dtype, number));
    }
    for (const char* const text : {"", " ", "+ 7", "7 7",
                                   "\xa0"
                                   "7",
                                   "seven"}) {
      INFO(text);
      uint8_t number[8] = {};
      CHECK_FALSE(ReadNumber(text, dtype, number));
    }
  }
}

}  // namespace
}  // namespace penstock
