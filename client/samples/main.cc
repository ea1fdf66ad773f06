// `penstock-samples`: makes data to try Penstock with. `penstock make-sample` runs it.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/ctl/command_line.h"
#include "client/ctl/terminal.h"
#include "client/samples/samples.h"

namespace penstock::samples {
namespace {

void AddSampleOptions(ctl::Command command, SampleOptions* options) {
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

void AddPhotoSample(ctl::Command root, const std::string& name, const std::string& help,
                    std::shared_ptr<SampleOptions> options,
                    absl::Status (*make)(const SampleOptions&, const std::vector<std::string>&)) {
  auto photos = std::make_shared<std::vector<std::string>>();
  ctl::Command command = root.AddCommand(name, help);
  AddSampleOptions(command, options.get());
  command
      .Add("--photos", photos.get(),
           "JPEG photographs to cut the pieces from: paths or globs. The Debian package "
           "lomiri-wallpapers-16.04 has some in /usr/share/backgrounds")
      .Required();
  command.Runs([options, photos, make] { return Report(*options, make(*options, *photos)); });
}

int Main(int argc, char** argv) {
  ctl::GuardTerminals();
  ctl::CommandLine line("penstock-samples", "Make TFRecord shards to try Penstock with");
  ctl::Command root = line.root();
  std::string unused;
  root.Add("--socket", &unused, "Taken as by every command of penstock, and not used");

  auto chess = std::make_shared<SampleOptions>();
  chess->records = 100000;
  chess->shards = 8;
  ctl::Command chess_command = root.AddCommand(
      "chess", "Positions of well-known games: for config/pipelines/chess.textproto");
  AddSampleOptions(chess_command, chess.get());
  chess_command.Runs([chess] { return Report(*chess, MakeChess(*chess)); });

  auto flowers = std::make_shared<SampleOptions>();
  flowers->records = 2000;
  flowers->shards = 4;
  AddPhotoSample(root, "flowers", "Pieces of photographs: for config/pipelines/flowers.textproto",
                 flowers, MakeFlowers);

  auto segmentation = std::make_shared<SampleOptions>();
  segmentation->records = 300;
  segmentation->shards = 4;
  AddPhotoSample(root, "segmentation",
                 "Pieces of photographs and their label images, as PNG files and records: for "
                 "config/pipelines/segmentation.textproto",
                 segmentation, MakeSegmentation);
  return line.Run(argc, argv);
}

}  // namespace
}  // namespace penstock::samples

int main(int argc, char** argv) { return penstock::samples::Main(argc, argv); }
