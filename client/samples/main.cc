// `penstock-samples`: makes data to try Penstock with. `penstock make-sample` runs it.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/ctl/command_line.h"
#include "client/ctl/terminal.h"
#include "client/samples/sample_spec.h"
#include "client/samples/samples.h"

namespace penstock::samples {
namespace {

// What a sample is made with, and where its spec goes.
struct Asked : SampleOptions {
  std::string name;
  std::string spec;
};

void AddSampleOptions(ctl::Command command, Asked* options) {
  command.Add("--records", &options->records, "Number of records").Positive().WithDefault();
  command.Add("--out", &options->directory, "Folder for the shards; made if absent").Required();
  command.Add("--shards", &options->shards, "Number of files").InRange(1, 1024).WithDefault();
  command.Add("--seed", &options->seed, "Another seed gives other records").WithDefault();
  command.Add("--spec", &options->spec,
              "Also write the spec of a pipeline of these files, for `penstock create`");
}

int Report(const Asked& options, absl::Status status) {
  if (status.ok() && !options.spec.empty()) {
    status = WriteSpec(options.name, options.directory, options.spec);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "penstock make-sample: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  std::printf("wrote %lld records in %d shards to %s\n", static_cast<long long>(options.records),
              options.shards, options.directory.c_str());
  if (!options.spec.empty()) {
    std::printf("wrote their pipeline's spec to %s\n", options.spec.c_str());
  }
  return 0;
}

void AddPhotoSample(ctl::Command root, const std::string& name, const std::string& help,
                    std::shared_ptr<Asked> options,
                    absl::Status (*make)(const SampleOptions&, const std::vector<std::string>&)) {
  auto photos = std::make_shared<std::vector<std::string>>();
  ctl::Command command = root.AddCommand(name, help);
  AddSampleOptions(command, options.get());
  command.Add("--photos", photos.get(),
              "JPEG photographs to cut the pieces from: paths or globs. The Debian package "
              "lomiri-wallpapers-16.04 has some in /usr/share/backgrounds. Without it, pictures of "
              "flowers are drawn");
  command.Runs([options, photos, make] { return Report(*options, make(*options, *photos)); });
}

int Main(int argc, char** argv) {
  ctl::GuardTerminals();
  ctl::CommandLine line("penstock-samples", "Make TFRecord shards to try Penstock with");
  ctl::Command root = line.root();
  std::string unused;
  root.Add("--socket", &unused, "Taken as by every command of penstock, and not used");

  auto chess = std::make_shared<Asked>();
  chess->name = "chess";
  chess->records = 100000;
  chess->shards = 8;
  ctl::Command chess_command = root.AddCommand(
      "chess", "Positions of well-known games: for config/pipelines/chess.textproto");
  AddSampleOptions(chess_command, chess.get());
  chess_command.Runs([chess] { return Report(*chess, MakeChess(*chess)); });

  auto flowers = std::make_shared<Asked>();
  flowers->name = "flowers";
  flowers->records = 2000;
  flowers->shards = 4;
  AddPhotoSample(
      root, "flowers",
      "Pieces of photographs, or of drawn flowers: for config/pipelines/flowers.textproto", flowers,
      MakeFlowers);

  auto segmentation = std::make_shared<Asked>();
  segmentation->name = "segmentation";
  segmentation->records = 300;
  segmentation->shards = 4;
  AddPhotoSample(root, "segmentation",
                 "Pieces of photographs (or of drawn flowers) and their label images, as PNG files "
                 "and records: for "
                 "config/pipelines/segmentation.textproto",
                 segmentation, MakeSegmentation);
  return line.Run(argc, argv);
}

}  // namespace
}  // namespace penstock::samples

int main(int argc, char** argv) { return penstock::samples::Main(argc, argv); }
