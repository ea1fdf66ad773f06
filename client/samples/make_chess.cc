#include <string_view>
#include <utility>

#include "client/ctl/files/shards.h"
#include "client/ctl/terminal/progress_bar.h"
#include "client/samples/chess/position_stream.h"
#include "client/samples/samples.h"
#include "io/record/example_builder.h"

namespace penstock::samples {

absl::Status MakeChess(const SampleOptions& options) {
  auto shards = ctl::ShardSet::Create(options.directory, "chess", options.shards);
  if (!shards.ok()) return shards.status();
  chess::PositionStream stream(options.seed);
  ExampleBuilder example;
  ctl::ProgressBar progress(static_cast<uint64_t>(options.records));
  for (int64_t record = 0; record < options.records; ++record) {
    const chess::Record position = stream.Next();
    example.Clear();
    example.AddBytes("d", std::string_view(reinterpret_cast<const char*>(position.bits.data()),
                                           position.bits.size()));
    example.AddInt64("s", position.score);
    absl::Status status =
        (*shards)[static_cast<int>(record % options.shards)].Write(example.Serialize());
    if (!status.ok()) return status;
    progress.Show(static_cast<uint64_t>(record) + 1, options.directory);
  }
  return shards->Close();
}

}  // namespace penstock::samples
