#include "server/engine/stage/recent_documents.h"

#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace penstock {
namespace {

RecentDocuments::Kept Document(size_t bytes) {
  auto document = std::make_shared<RecentDocuments::Document>();
  document->tokens = std::string(bytes, 't');
  return document;
}

TEST_CASE("recent documents: those that were kept first make place") {
  RecentDocuments recent(4000);
  for (uint64_t offset = 0; offset < 5; ++offset) recent.Keep({1, offset}, Document(1000));
  // With what is around them, three fit.
  CHECK(recent.Find({1, 0}) == nullptr);
  CHECK(recent.Find({1, 1}) == nullptr);
  CHECK(recent.Find({1, 2}) != nullptr);
  CHECK(recent.Find({1, 4}) != nullptr);
  // Of another file it is another one.
  CHECK(recent.Find({2, 4}) == nullptr);
}

TEST_CASE("recent documents: the last one stays, however large it is, and is kept once") {
  RecentDocuments recent(4000);
  recent.Keep({1, 0}, Document(1000));
  recent.Keep({1, 7}, Document(100'000));
  CHECK(recent.Find({1, 0}) == nullptr);
  const RecentDocuments::Kept large = recent.Find({1, 7});
  REQUIRE(large != nullptr);
  recent.Keep({1, 7}, Document(10));
  CHECK(recent.Find({1, 7}) == large);
  recent.Keep({1, 8}, Document(10));
  CHECK(recent.Find({1, 7}) == nullptr);
  // Whoever has it goes on with it.
  CHECK(large->tokens.size() == 100'000);
}

}  // namespace
}  // namespace penstock
