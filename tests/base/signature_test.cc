#include "base/signature.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a list of many names shows the first ones") {
  std::vector<std::string> names;
  CHECK(ListNames(names).empty());
  for (int i = 0; i < 16; ++i) names.push_back("f" + std::to_string(i));
  const std::string first = "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15";
  CHECK(ListNames(names) == first);
  names.push_back("last");
  CHECK(ListNames(names) == first + " and 1 more");
}

TEST_CASE("the nearest name is one that a slip of the pen makes") {
  const std::vector<std::string> known = {"image", "label", "weight"};
  CHECK(DidYouMean("lable", known) == ", did you mean \"label\"?");
  CHECK(DidYouMean("imgae", known) == ", did you mean \"image\"?");
  CHECK(DidYouMean("imag", known) == ", did you mean \"image\"?");
  CHECK(DidYouMean("wieght_", known) == ", did you mean \"weight\"?");
  CHECK(DidYouMean("egami", known).empty());
  CHECK(DidYouMean("nothing", known).empty());
  CHECK(DidYouMean("image", {}).empty());
}

}  // namespace
}  // namespace penstock
