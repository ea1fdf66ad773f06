#include "client/ctl/arguments/spec_arguments.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "ring/descriptor.h"

namespace penstock::ctl {
namespace {

// The daemon's limit for a spec is 1 MiB; reading one byte more lets it say so.
constexpr size_t kMaxTextBytes = (1 << 20) + 1;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const ring::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return FileError(errno, absl::StrCat("cannot open the spec ", path));
  std::string text(kMaxTextBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, absl::StrCat("cannot read the spec ", path));
    size += got;
  }
  text.resize(size);
  return text;
}

bool IsStageName(const std::string& text) {
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') return false;
  }
  return !text.empty();
}

// [STAGE=]GLOB. What stands before the first "=" is a stage if it can be the name of one: a path
// that has a "=" can be written as ./PATH.
v1::FilesOverride ParseFiles(const std::string& text) {
  v1::FilesOverride files;
  const size_t equals = text.find('=');
  if (equals != text.npos && IsStageName(text.substr(0, equals))) {
    files.set_stage(text.substr(0, equals));
    files.set_glob(text.substr(equals + 1));
  } else {
    files.set_glob(text);
  }
  return files;
}

// [STAGE.]NAME=VALUE.
v1::ConstantOverride ParseConstant(const std::string& text) {
  v1::ConstantOverride constant;
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const size_t dot = name.rfind('.');
  if (dot != name.npos) constant.set_stage(name.substr(0, dot));
  constant.set_name(dot == name.npos ? name : name.substr(dot + 1));
  constant.set_value(text.substr(equals + 1));
  return constant;
}

std::string CheckConstant(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != text.npos && equals > 0 && equals + 1 < text.size()) return "";
  return "expected [STAGE.]NAME=VALUE, found " + text;
}

}  // namespace

void SpecArguments::Add(Command command, SpecArguments* arguments) {
  command.Add("SPEC", &arguments->path, "A PipelineSpec as text (config/pipelines)").Required();
  command
      .Add("--files", &arguments->files, "[STAGE=]GLOB: replaces a source's files; may be repeated")
      .OneByOne();
  command
      .Add("--set", &arguments->constants,
           "[STAGE.]NAME=VALUE: replaces a constant; may be repeated")
      .OneByOne()
      .Checked(CheckConstant);
  command.Add("--workers", &arguments->workers, "Worker threads").InRange(1, 1024);
  command.Add("--numa-node", &arguments->numa_node, "The NUMA node to be on; -1: none")
      .InRange(-1, 1023);
  command.Add("--name", &arguments->name, "The pipeline's name, over the spec's");
}

absl::StatusOr<v1::SpecSource> SpecArguments::Read() const {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  v1::SpecSource source;
  source.mutable_text()->set_text(*std::move(text));
  source.mutable_text()->set_file_name(path);
  if (absl::Status status = AddOverrides(&source); !status.ok()) return status;
  return source;
}

absl::Status SpecArguments::AddOverrides(v1::SpecSource* source) const {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::current_path(error);
  if (error) return FileError(error.value(), "cannot find the current directory");
  source->set_base_directory(directory.string());
  v1::SpecOverrides* overrides = source->mutable_overrides();
  overrides->set_name(name);
  overrides->set_workers(workers);
  if (numa_node) overrides->set_numa_node(*numa_node);
  for (const std::string& file : files) *overrides->add_files() = ParseFiles(file);
  for (const std::string& constant : constants) {
    *overrides->add_constants() = ParseConstant(constant);
  }
  return absl::OkStatus();
}

}  // namespace penstock::ctl
