// What a field takes of memory; which fields there are is TensorFlow's verdict
// (client/python_parsing_test.py).
#include "server/codec/csv_field.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

std::vector<std::string> Fields(const std::string& record, Arena& arena) {
  std::vector<std::string> fields;
  for (size_t at = 0;; ++at) {
    absl::string_view text;
    REQUIRE(TakeCsvField(record, ',', /*uses_quotes=*/true, &at, &text, arena).ok());
    fields.emplace_back(text);
    if (at == record.size()) return fields;
  }
}

TEST_CASE("a quoted field is copied only where a mark is doubled in it") {
  Arena arena;
  CHECK(Fields(R"("a","","b ""c""","""",d,"e,f")", arena) ==
        std::vector<std::string>{"a", "", "b \"c\"", "\"", "d", "e,f"});
  Arena empty;
  std::string record;
  for (int i = 0; i < 60000; ++i) record += "\"x\",";
  CHECK(Fields(record, empty).size() == 60001);
  CHECK(empty.capacity_bytes() == 0);
}

}  // namespace
}  // namespace penstock
