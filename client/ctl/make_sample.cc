#include "client/ctl/make_sample.h"

#include <cstdio>
#include <memory>

namespace penstock::ctl {
namespace {

void AddSampleOptions(Command command, SampleOptions* options) {
  command.Add("--records", &options->records, "Number of records").Positive().WithDefault();
  command.Add("--out", &options->directory, "Folder for the shards; made if absent").Required();
  command.Add("--shards", &options->shards, "Number of files").InRange(1, 1024).WithDefault();
  command.Add("--seed", &options->seed, "Another seed gives other records").WithDefault();
}

int Report(const SampleOptions& options, const absl::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "penstock make-sample: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  std::printf("wrote %lld records in %d shards to %s\n", static_cast<long long>(options.records),
              options.shards, options.directory.c_str());
  return 0;
}

void AddPhotoSample(Command parent, const std::string& name, const std::string& help,
                    std::shared_ptr<SampleOptions> options,
                    absl::Status (*make)(const SampleOptions&, const std::vector<std::string>&)) {
  auto photos = std::make_shared<std::vector<std::string>>();
  Command command = parent.AddCommand(name, help);
  AddSampleOptions(command, options.get());
  command
      .Add("--photos", photos.get(),
           "JPEG photographs to cut the pieces from: paths or globs. The Debian package "
           "lomiri-wallpapers-16.04 has some in /usr/share/backgrounds")
      .Required();
  command.Runs([options, photos, make] { return Report(*options, make(*options, *photos)); });
}

}  // namespace

void AddMakeSample(Command root) {
  Command command = root.AddCommand("make-sample", "Make TFRecord shards to try Penstock with");

  auto chess = std::make_shared<SampleOptions>();
  chess->records = 100000;
  chess->shards = 8;
  Command chess_command = command.AddCommand(
      "chess", "Positions of well-known games: for config/pipelines/chess.textproto");
  AddSampleOptions(chess_command, chess.get());
  chess_command.Runs([chess] { return Report(*chess, MakeChess(*chess)); });

  auto flowers = std::make_shared<SampleOptions>();
  flowers->records = 2000;
  flowers->shards = 4;
  AddPhotoSample(command, "flowers",
                 "Pieces of photographs: for config/pipelines/flowers.textproto", flowers,
                 MakeFlowers);

  auto segmentation = std::make_shared<SampleOptions>();
  segmentation->records = 300;
  segmentation->shards = 4;
  AddPhotoSample(command, "segmentation",
                 "Pieces of photographs and their label images, as PNG files and records: for "
                 "config/pipelines/segmentation.textproto",
                 segmentation, MakeSegmentation);
}

}  // namespace penstock::ctl
