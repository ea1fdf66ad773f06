// Whose tasks run beside whose.
#include "server/service/socket/task_pool.h"

#include <future>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("fault 28: tasks of one object run one after the other, and leave a thread to others") {
  const int hangs = 0, other = 0;
  std::promise<void> begun, end, done;
  std::vector<int> order;  // of the tasks of `hangs`, which do not meet
  TaskPool pool(2);
  REQUIRE(pool.Run(
      [&] {
        begun.set_value();
        end.get_future().wait();
        order.push_back(0);
      },
      &hangs));
  begun.get_future().wait();
  for (int number = 1; number <= 20; ++number)
    REQUIRE(pool.Run([&order, number] { order.push_back(number); }, &hangs));
  REQUIRE(pool.Run([&done] { done.set_value(); }, &other));
  done.get_future().wait();

  end.set_value();
  std::promise<void> last;
  REQUIRE(pool.Run([&last] { last.set_value(); }, &hangs));
  last.get_future().wait();
  REQUIRE(order.size() == 21);
  for (int number = 0; number <= 20; ++number) CHECK(order[static_cast<size_t>(number)] == number);
}

}  // namespace
}  // namespace penstock
