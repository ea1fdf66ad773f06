#include "server/service/watch/event_log.h"

#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

int64_t FixedMs() { return 1'700'000'000'123; }
bool Any(const std::string&) { return true; }

void PublishMany(EventLog& log, size_t count, const std::string& pipeline = "p") {
  for (size_t i = 0; i < count; ++i)
    log.Publish(MakeEvent(pipeline, v1::EVENT_KIND_UPDATED, std::to_string(i)));
}

// All that waits for a listener, and how many were lost.
std::vector<uint64_t> TakeAll(EventLog::Listener& listener, uint64_t* lost) {
  std::vector<uint64_t> numbers;
  *lost = 0;
  while (true) {
    v1::WatchEventsResponse response;
    listener.Take(absl::ZeroDuration(), &response);
    *lost += response.lost();
    CHECK(response.events_size() <= EventLog::kEventsAtATime);
    if (response.events().empty()) return numbers;
    for (const v1::Event& event : response.events()) numbers.push_back(event.number());
  }
}

TEST_CASE("a listener begins with what is kept behind a number, and goes on") {
  EventLog log(FixedMs);
  PublishMany(log, 5);
  const auto all = log.Listen(0, Any);
  const auto late = log.Listen(3, Any);
  const auto future = log.Listen(UINT64_MAX, Any);
  PublishMany(log, 1);
  uint64_t lost = 0;
  CHECK(TakeAll(*all, &lost) == std::vector<uint64_t>{1, 2, 3, 4, 5, 6});
  CHECK(TakeAll(*late, &lost) == std::vector<uint64_t>{4, 5, 6});
  CHECK(TakeAll(*future, &lost) == std::vector<uint64_t>{6});
  CHECK(lost == 0);
}

TEST_CASE("an event has the clock's time, and its own fields") {
  EventLog log(FixedMs);
  const auto listener = log.Listen(0, Any);
  log.Publish(MakeEvent("p", v1::EVENT_KIND_ENDED, "behind step 7"));
  v1::WatchEventsResponse response;
  CHECK(listener->Take(absl::InfiniteDuration(), &response));
  REQUIRE(response.events_size() == 1);
  CHECK(response.events(0).time_unix_ms() == FixedMs());
  CHECK(response.events(0).pipeline() == "p");
  CHECK(response.events(0).kind() == v1::EVENT_KIND_ENDED);
  CHECK(response.events(0).text() == "behind step 7");
}

TEST_CASE("a slow listener loses the oldest and is told how many, a quick one loses none") {
  EventLog log(FixedMs);
  const auto slow = log.Listen(0, Any);
  const auto quick = log.Listen(0, Any);
  uint64_t lost = 0, quick_lost = 0;
  size_t quick_taken = 0;
  for (int i = 0; i < 3; ++i) {
    PublishMany(log, EventLog::kKept / 2 + 10);
    quick_taken += TakeAll(*quick, &lost).size();
    quick_lost += lost;
  }
  const size_t published = 3 * (EventLog::kKept / 2 + 10);
  CHECK(quick_taken == published);
  CHECK(quick_lost == 0);
  const std::vector<uint64_t> taken = TakeAll(*slow, &lost);
  REQUIRE(taken.size() == EventLog::kKept);
  CHECK(lost == published - EventLog::kKept);
  CHECK(taken.front() == lost + 1);
  CHECK(taken.back() == published);
  // It is counted once.
  CHECK(TakeAll(*slow, &lost).empty());
  CHECK(lost == 0);
}

TEST_CASE("what a listener does not want is neither told nor lost to it") {
  EventLog log(FixedMs);
  PublishMany(log, 3, "hidden");
  const auto listener = log.Listen(0, [](const std::string& name) { return name == "seen"; });
  PublishMany(log, 2 * EventLog::kKept, "hidden");
  PublishMany(log, 1, "seen");
  uint64_t lost = 0;
  CHECK(TakeAll(*listener, &lost).size() == 1);
  CHECK(lost == 0);
}

TEST_CASE("the end of the log wakes who waits") {
  EventLog log(FixedMs);
  const auto listener = log.Listen(0, Any);
  bool goes_on = true;
  std::thread waiting([&] {
    v1::WatchEventsResponse response;
    goes_on = listener->Take(absl::InfiniteDuration(), &response);
  });
  log.Close();
  waiting.join();
  CHECK_FALSE(goes_on);
  CHECK(log.closed());
}

}  // namespace
}  // namespace penstock
