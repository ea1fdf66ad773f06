// Which names can be shown.
#include "ring/printable.h"

#include <string>

#include "ring/consumer_spec.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

TEST_CASE("text in UTF-8 without control characters is printable") {
  for (const std::string text :
       {"", "default", "a b~", "Größe", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "棋"}) {
    INFO(text);
    CHECK(IsPrintableUtf8(text));
  }
}

TEST_CASE("control characters and what is no UTF-8 are not printable") {
  const std::string cases[] = {
      std::string("a\0b", 3),
      "a\nb",
      "\x1b[2J",
      "\x1f",
      "\x7f",
      "\xc2\x80",  // C1
      "\xc2\x9b",  // CSI
      "\xc2\x9f",
      "\x80",  // a continuation alone
      "\xff\xfe\xfdGGGGG",
      "\xc0\xaf",  // overlong
      "\xc1\xbf",
      "\xe0\x9f\xbf",
      "\xf0\x8f\xbf\xbf",
      "\xed\xa0\x80",      // a surrogate
      "\xf4\x90\x80\x80",  // beyond the last code point
      "\xf5\x80\x80\x80",
      "\xc3",  // cut off
      "\xe2\x82",
      "\xf0\x9f\x98",
      "\xc3(",
      "\xe2\x82(",
  };
  for (const std::string& text : cases) {
    INFO(Catch::StringMaker<std::string>::convert(text));
    CHECK_FALSE(IsPrintableUtf8(text));
  }
}

TEST_CASE("names that cannot be shown are refused, and not said") {
  ConsumerSpec spec;
  const std::string bad = "\xff\xfeG\x1b[2J";
  SECTION("a group's") { spec.group = bad; }
  SECTION("a consumer's") { spec.name = bad; }
  const Status status = CheckSpec(spec);
  CHECK(status.code == Code::kInvalidArgument);
  CHECK_THAT(status.message, Catch::Contains("control characters"));
  CHECK(IsPrintableUtf8(status.message));
}

}  // namespace
}  // namespace penstock::ring
