#include "client/samples/fill_shards.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/side_by_side.h"
#include "client/ctl/terminal/progress_bar.h"
#include "io/record/example_builder.h"

namespace penstock::samples {

absl::Status FillShards(
    ctl::ShardSet& shards, int64_t records, const std::string& name,
    const std::function<absl::Status(int64_t ordinal, ExampleBuilder* example)>& make) {
  std::atomic<int> next_shard = 0;
  std::mutex mutex;
  absl::Status failure;  // this and the next two: guarded by mutex
  int64_t done = 0;
  ctl::ProgressBar progress(static_cast<uint64_t>(records));
  const auto work = [&] {
    ExampleBuilder example;
    for (int shard; (shard = next_shard.fetch_add(1)) < shards.size();) {
      for (int64_t i = shard; i < records; i += shards.size()) {
        example.Clear();
        absl::Status status = make(i, &example);
        if (status.ok()) status = shards[shard].Write(example.Serialize());
        std::lock_guard lock(mutex);
        failure.Update(status);
        if (!failure.ok()) return;
        progress.Show(static_cast<uint64_t>(++done), name);
      }
    }
  };
  SideBySide(std::max(1u, std::thread::hardware_concurrency()), "samples", name, work);
  return failure.ok() ? shards.Close() : failure;
}

}  // namespace penstock::samples
