#include "server/codec/example_keys.h"

#include <string>

#include "tests/codec/example_messages.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

std::string Keys(const std::string& record) {
  return ListExampleKeys(reinterpret_cast<const uint8_t*>(record.data()), record.size());
}

TEST_CASE("the keys of an Example are listed in their sequence") {
  CHECK(Keys(Example(Entry("d", BytesList("x")) + Entry("image/x\n", Int64List("\x01")))) ==
        "\"d\", \"image/x\\n\"");
  CHECK(Keys(Example(Entry("a", "")) + Example(Entry("b", ""))) == "\"a\", \"b\"");
  CHECK(Keys("") == "no features");
  std::string many;
  for (int i = 0; i < 14; ++i) many += Entry(std::to_string(i), "");
  CHECK(Keys(Example(many)) ==
        "\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\", \"10\", \"11\" and "
        "2 more");
}

TEST_CASE("of a long key the beginning is shown") {
  CHECK(Keys(Example(Entry(std::string(1 << 20, '\x01'), ""))).size() < 300);
}

TEST_CASE("what is malformed ends the list") {
  CHECK(Keys("\xff") == "no features");
  const std::string record = Example(Entry("a", "") + Entry("b", BytesList("x")));
  for (size_t size = 0; size < record.size(); ++size) Keys(record.substr(0, size));
}

}  // namespace
}  // namespace penstock::testing
