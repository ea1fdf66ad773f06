#include "client/ctl/make_sample.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace penstock::ctl {
namespace {

void AddSampleOptions(CLI::App* command, SampleOptions* options) {
  command->add_option("--records", options->records, "Number of records")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--out", options->directory, "Folder for the shards; made if absent")
      ->required();
  command->add_option("--shards", options->shards, "Number of files")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Another seed gives other records")
      ->capture_default_str();
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

void AddPhotoSample(CLI::App* parent, const char* name, const char* description,
                    std::shared_ptr<SampleOptions> options,
                    absl::Status (*make)(const SampleOptions&, const std::vector<std::string>&),
                    int* exit_code) {
  auto photos = std::make_shared<std::vector<std::string>>();
  CLI::App* command = parent->add_subcommand(name, description);
  AddSampleOptions(command, options.get());
  command
      ->add_option("--photos", *photos,
                   "JPEG photographs to cut the pieces from: paths or globs. The Debian package "
                   "lomiri-wallpapers-16.04 has some in /usr/share/backgrounds")
      ->required();
  command->callback([options, photos, make, exit_code] {
    *exit_code = Report(*options, make(*options, *photos));
  });
}

}  // namespace

void AddMakeSample(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("make-sample", "Make TFRecord shards to try Penstock with");
  command->require_subcommand(1);

  auto chess = std::make_shared<SampleOptions>();
  chess->records = 100000;
  chess->shards = 8;
  CLI::App* chess_command = command->add_subcommand(
      "chess", "Positions of well-known games: for config/pipelines/chess.textproto");
  AddSampleOptions(chess_command, chess.get());
  chess_command->callback([chess, exit_code] { *exit_code = Report(*chess, MakeChess(*chess)); });

  auto flowers = std::make_shared<SampleOptions>();
  flowers->records = 2000;
  flowers->shards = 4;
  AddPhotoSample(command, "flowers",
                 "Pieces of photographs: for config/pipelines/flowers.textproto", flowers,
                 MakeFlowers, exit_code);

  auto segmentation = std::make_shared<SampleOptions>();
  segmentation->records = 300;
  segmentation->shards = 4;
  AddPhotoSample(command, "segmentation",
                 "Pieces of photographs and their label images, as PNG files and records: for "
                 "config/pipelines/segmentation.textproto",
                 segmentation, MakeSegmentation, exit_code);
}

}  // namespace penstock::ctl
