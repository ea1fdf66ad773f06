// Which objects pipelines will read again, and how soon.
#include "io/remote/cache_needs.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

using Use = CacheNeeds::Use;

TEST_CASE("what was passed is ahead again as soon as another pass has begun") {
  CacheNeeds needs;
  const int reader = 0, other = 0;
  needs.Need(&reader, {1, 2}, /*now_s=*/0);
  CHECK(needs.Of(1, 0).use == Use::kSoon);
  CHECK(needs.Of(3, 0).use == Use::kNobody);
  needs.Passed(&reader, 1);
  CHECK(needs.Of(1, 0).use == Use::kLater);
  CHECK(needs.Of(2, 0).use == Use::kSoon);
  needs.Passed(&reader, 2);
  CHECK(needs.Of(2, 0).use == Use::kLater);
  CHECK(needs.Of(2, 0).passed_at > needs.Of(1, 0).passed_at);
  CHECK_FALSE(needs.IsAheadOfOthers(&other, 2, 0));
  // The first one once more: the second one is ahead.
  needs.Passed(&reader, 1);
  CHECK(needs.Of(1, 0).use == Use::kLater);
  CHECK(needs.Of(2, 0).use == Use::kSoon);
  CHECK(needs.IsAheadOfOthers(&other, 2, 0));
  CHECK_FALSE(needs.IsAheadOfOthers(&reader, 2, 0));
  // Who reads nothing for an hour needs nothing.
  CHECK(needs.Of(2, CacheNeeds::kRestS - 1).use == Use::kSoon);
  CHECK(needs.Of(2, CacheNeeds::kRestS).use == Use::kNobody);
}

TEST_CASE("an object that several pipelines need comes again with the one that passed it first") {
  CacheNeeds needs;
  const int first = 0, second = 0;
  for (const CacheNeeds::Reader reader : {&first, &second}) needs.Need(reader, {1, 2, 3, 4}, 0);
  const auto passes = [&](CacheNeeds::Reader reader, CacheNeeds::Key one, CacheNeeds::Key next) {
    needs.Passed(reader, one);
    needs.Passed(reader, next);
  };
  passes(&first, 1, 2);
  CHECK(needs.Of(1, 0).use == Use::kSoon);
  passes(&second, 3, 4);
  passes(&second, 2, 1);
  passes(&first, 4, 3);
  for (const CacheNeeds::Key key : {1, 2, 3}) {
    CHECK(needs.Of(key, 0).use == Use::kLater);
    CHECK(needs.Of(key, 0).passed_at < needs.Of(key + 1, 0).passed_at);
  }
  // What nobody needs any more is told when the last one goes, if it has read.
  needs.Used(&second, 1, 0);
  CHECK(needs.NoMore(&first, {1, 2, 3, 4}).empty());
  CHECK(needs.NoMore(&second, {1, 2, 3, 4}).size() == 4);
  CHECK(needs.Of(1, 0).use == Use::kNobody);
}

}  // namespace
}  // namespace penstock
