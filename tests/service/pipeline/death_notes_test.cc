// Fault 35, of what one pipeline or caller may take from the others.
#include "server/service/pipeline/death_notes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Lives a daemon's life in a process of its own, which must end it.
void LifeOf(const StateFolder& folder, int64_t now_ms, std::optional<uint64_t> kills,
            const std::function<void(DeathNotes& notes)>& life) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    // What the test program does at a signal is none of a daemon's.
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM})
      signal(number, SIG_DFL);
    auto notes = DeathNotes::Open(folder, now_ms, kills);
    if (!notes.ok()) _exit(3);
    life(**notes);
    notes->reset();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 3));
}

std::shared_ptr<MemoryAccount> AccountOf(DeathNotes& notes, const std::string& pipeline,
                                         uint64_t bytes) {
  MemoryAccount::Options options;
  options.shown = notes.Enter(pipeline);
  auto account = MemoryAccount::Create(std::move(options));
  account->Take(bytes);
  return account;
}

// A worker of the pipeline runs into its stack's end.
[[gnu::noinline]] int Recurse(volatile int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return Recurse(depth + 1) + frame[0];
}

std::unique_ptr<StateFolder> Open(const std::string& path) {
  auto folder = StateFolder::Open(path);
  REQUIRE(folder.ok());
  return *std::move(folder);
}

TEST_CASE("a fault in a pipeline's work is that pipeline's, and the third sets it aside") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  for (int death = 0; death < 3; ++death) {
    LifeOf(*folder, 1000 + death, 5, [death](DeathNotes& notes) {
      notes.NoteSignals();
      const auto good = AccountOf(notes, "good", 500 * kMiB), bad = AccountOf(notes, "bad", kMiB);
      auto thread = NewThread("worker", [&] {
        const MemoryAccount::Scope charged(bad.get());
        if (death == 0) abort();
        if (death == 1) *static_cast<volatile int*>(nullptr) = 1;
        Recurse(0);
      });
      thread->join();
    });
  }
  const auto notes = DeathNotes::Open(*folder, 2000, 5);
  REQUIRE(notes.ok());
  REQUIRE((*notes)->last());
  CHECK((*notes)->last()->first == "bad");
  CHECK((*notes)->last()->second.cause == "signal 11 (Segmentation fault)");
  CHECK_FALSE((*notes)->SetAside("good"));
  const auto why = (*notes)->SetAside("bad");
  REQUIRE(why);
  CHECK(*why ==
        "3 daemons died under it within 0 s, the last one of signal 11 (Segmentation fault)");
  (*notes)->Forget("bad");
  CHECK_FALSE((*notes)->SetAside("bad"));
}

TEST_CASE("a fault where no pipeline's work is done is nobody's") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  LifeOf(*folder, 1000, 5, [](DeathNotes& notes) {
    notes.NoteSignals();
    const auto account = AccountOf(notes, "p", 500 * kMiB);
    abort();
  });
  CHECK_FALSE((*DeathNotes::Open(*folder, 2000, 6))->last());
}

TEST_CASE("a death for want of memory is that of the pipeline which had taken most") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  const auto killed = [&](std::optional<uint64_t> before, uint64_t bytes) {
    LifeOf(*folder, 1000, before, [bytes](DeathNotes& notes) {
      const auto a = AccountOf(notes, "a", bytes / 2), b = AccountOf(notes, "b", bytes);
      const auto gone = AccountOf(notes, "gone", 3 * bytes);
      gone->GiveBack(3 * bytes);
      raise(SIGKILL);
    });
  };
  SECTION("the kernel has ended processes since") {
    killed(5, 100 * kMiB);
    const auto notes = DeathNotes::Open(*folder, 2000, 6);
    REQUIRE((*notes)->last());
    CHECK((*notes)->last()->first == "b");
    CHECK((*notes)->last()->second.cause ==
          "the kernel ended it for want of memory, of which the pipeline had 100.0 MiB");
  }
  SECTION("somebody killed it") {
    killed(5, 100 * kMiB);
    CHECK_FALSE((*DeathNotes::Open(*folder, 2000, 5))->last());
  }
  SECTION("the kernel does not say") {
    killed(std::nullopt, 100 * kMiB);
    CHECK_FALSE((*DeathNotes::Open(*folder, 2000, std::nullopt))->last());
  }
  SECTION("no pipeline had much") {
    killed(5, kMiB);
    CHECK_FALSE((*DeathNotes::Open(*folder, 2000, 6))->last());
  }
}

TEST_CASE(
    "a daemon that ends by itself dies under nobody, and deaths far apart set nothing aside") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  LifeOf(*folder, 1000, 5, [](DeathNotes& notes) {
    // Left behind, as what hangs in a read is.
    new std::shared_ptr<MemoryAccount>(AccountOf(notes, "p", 100 * kMiB));
  });
  CHECK_FALSE((*DeathNotes::Open(*folder, 2000, 9))->last());
  for (const int64_t now_ms : {int64_t{0}, DeathNotes::kWithinMs / 2, DeathNotes::kWithinMs + 1}) {
    LifeOf(*folder, now_ms, 5, [](DeathNotes& notes) {
      notes.NoteSignals();
      const auto account = AccountOf(notes, "p", kMiB);
      const MemoryAccount::Scope charged(account.get());
      abort();
    });
    // The death is written down by the next one.
    LifeOf(*folder, now_ms, 5, [](DeathNotes&) {});
  }
  CHECK_FALSE((*DeathNotes::Open(*folder, 2000, 5))->SetAside("p"));
}

TEST_CASE("entries are used again, and a pipeline without one is shown nowhere") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  const auto notes = DeathNotes::Open(*folder, 1000, 5);
  REQUIRE(notes.ok());
  std::vector<std::shared_ptr<MemoryAccount::Shown>> all;
  for (size_t i = 0; i < DeathNotes::kMaxEntries; ++i)
    all.push_back((*notes)->Enter(absl::StrCat("p", i)));
  CHECK(all.back() != nullptr);
  CHECK((*notes)->Enter("one more") == nullptr);
  all.pop_back();
  CHECK((*notes)->Enter("one more") != nullptr);
}

TEST_CASE("a page that is no daemon's is no death") {
  ScratchFolder scratch;
  const auto folder = Open(scratch / "state");
  std::ofstream(folder->PathOf("running")) << std::string(300000, 'x');
  CHECK_FALSE((*DeathNotes::Open(*folder, 1000, 5))->last());
}

TEST_CASE("how often the kernel has ended processes is read where it says so") {
  ScratchFolder scratch;
  std::filesystem::create_directories(scratch / "proc");
  CHECK_FALSE(DeathNotes::OutOfMemoryKills(scratch.path()));
  std::ofstream(scratch / "proc/vmstat") << "nr_free_pages 12\noom_kill 7\nlast 1\n";
  CHECK(DeathNotes::OutOfMemoryKills(scratch.path()) == 7);
}

}  // namespace
}  // namespace penstock::test
