#include "server/engine/tasks/work_queue.h"

#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("A worker is given what it would rather do, else what has waited longest") {
  WorkQueue<int> queue;
  std::vector<int> requests = {1, 2, 3, 4, 5};
  const auto prefers_even = [](int request) { return request % 2 == 0; };
  CHECK(queue.Pop(prefers_even) == nullptr);
  for (int& request : requests) queue.Push(&request);
  CHECK(*queue.Pop(prefers_even) == 2);
  CHECK(*queue.Pop(prefers_even) == 4);
  CHECK(*queue.Pop(prefers_even) == 1);
  CHECK(queue.size() == 2);
  CHECK(*queue.Pop() == 3);
  CHECK(*queue.Pop() == 5);
  CHECK(queue.Pop() == nullptr);
  CHECK(queue.empty());
}

}  // namespace
}  // namespace penstock
