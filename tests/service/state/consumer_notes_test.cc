// Who is attached is written down beside the loop.

#include "server/service/state/consumer_notes.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

v1::PipelineSpec Named(const std::string& name) {
  v1::PipelineSpec spec;
  spec.set_name(name);
  return spec;
}

TEST_CASE("what was put last is what is found, and all who waited for it are called") {
  const test::ScratchFolder scratch;
  const PipelineJournal journal(*StateFolder::Open(scratch / "state"));
  for (const char* name : {"a", "b"})
    REQUIRE(journal.Put({Named(name), "", ChangedWork::kRefuse, {}}).ok());
  std::atomic<int> called{0};
  {
    ConsumerNotes notes(journal);
    REQUIRE(notes.status().ok());
    for (uint64_t i = 1; i <= 200; ++i) {
      notes.Put("a", {{i, getpid()}}, [&called] { ++called; });
      notes.Put("b", {{1000 + i, getpid()}, {i, getpid()}}, nullptr);
    }
  }
  CHECK(called == 200);
  REQUIRE(journal.LoadConsumers("a").size() == 1);
  CHECK(journal.LoadConsumers("a")[0].identity == 200);
  REQUIRE(journal.LoadConsumers("b").size() == 2);
  CHECK(journal.LoadConsumers("b")[0].identity == 1200);
}

TEST_CASE("who waits is called with its own state written, or a newer one") {
  const test::ScratchFolder scratch;
  const PipelineJournal journal(*StateFolder::Open(scratch / "state"));
  REQUIRE(journal.Put({Named("a"), "", ChangedWork::kRefuse, {}}).ok());
  std::atomic<int> older{0};
  {
    ConsumerNotes notes(journal);
    for (uint64_t i = 1; i <= 50; ++i) {
      notes.Put("a", {{i, getpid()}}, [&journal, &older, i] {
        if (journal.LoadConsumers("a")[0].identity < i) ++older;
      });
    }
  }
  CHECK(older == 0);
}

}  // namespace
}  // namespace penstock
