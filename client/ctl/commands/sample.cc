// `penstock sample`: what the newest batch of a pipeline holds.

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

struct SampleArguments {
  std::string name;
  std::string png;
  int rows = 16;
};

std::string ShapeOf(const v1::SampledFeature& feature) {
  std::string shape = "(";
  for (const int64_t size : feature.shape())
    absl::StrAppend(&shape, shape.size() > 1 ? ", " : "", size);
  return shape + ")";
}

// A column for each part of the range, as high as its share of the fullest one.
std::string Histogram(const v1::SampledFeature& feature) {
  static constexpr const char* kColumns[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  uint64_t most = 1;
  for (const uint64_t count : feature.histogram()) most = std::max(most, count);
  std::string text;
  for (const uint64_t count : feature.histogram())
    text += kColumns[count == 0 ? 0
                                : 1 + static_cast<size_t>(7.0 * static_cast<double>(count) /
                                                          static_cast<double>(most))];
  return text;
}

absl::Status Sample(const std::string& socket, const SampleArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::SamplePipelineRequest request;
  request.set_name(arguments.name);
  request.set_sheet_rows(arguments.rows);
  const auto sample = daemon->Sample(request);
  if (!sample.ok()) return sample.status();
  std::printf("step %llu, %u rows\n", static_cast<unsigned long long>(sample->step()),
              sample->rows());
  for (const v1::SampledFeature& feature : sample->features()) {
    const std::string dtype =
        absl::AsciiStrToLower(absl::StripPrefix(v1::DataType_Name(feature.dtype()), "DATA_TYPE_"));
    std::printf("  %s  %s", feature.name().c_str(), dtype.c_str());
    if (feature.shape().empty() && feature.values() == 0) {
      std::printf("  of sizes that only the data tells\n");
      continue;
    }
    std::printf("  %s\n    %g … %g  mean %g  deviation %g  zeros %.1f %%", ShapeOf(feature).c_str(),
                feature.least(), feature.most(), feature.mean(), feature.deviation(),
                feature.values() == 0 ? 0.0
                                      : 100 * static_cast<double>(feature.zeros()) /
                                            static_cast<double>(feature.values()));
    if (feature.not_finite() > 0) {
      std::printf("  %llu not finite", static_cast<unsigned long long>(feature.not_finite()));
    }
    std::printf("  |%s|\n", Histogram(feature).c_str());
  }
  if (arguments.png.empty()) {
    if (!sample->sheet_png().empty())
      std::printf("%s looks like pictures: --png FILE\n", sample->sheet_feature().c_str());
    return absl::OkStatus();
  }
  if (sample->sheet_png().empty())
    return absl::NotFoundError("no feature of the batch looks like pictures");
  std::ofstream file(arguments.png, std::ios::binary);
  file << sample->sheet_png();
  file.close();
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", arguments.png));
  std::printf("%s: %s\n", arguments.png.c_str(), sample->sheet_feature().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddSample(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "sample", "What the newest batch holds: shapes, ranges, histograms, its pictures as a PNG");
  auto arguments = std::make_shared<SampleArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("--png", &arguments->png, "File for the pictures, on one sheet");
  command.Add("--rows", &arguments->rows, "Rows on the sheet").InRange(1, 64).WithDefault();
  command.Runs([&socket, arguments] { return Report("sample", Sample(socket, *arguments)); });
}

}  // namespace penstock::ctl
