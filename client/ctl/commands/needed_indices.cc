#include "client/ctl/commands/needed_indices.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "base/file_error.h"
#include "client/ctl/arguments/first_error.h"
#include "client/ctl/terminal/progress_bar.h"
#include "google/protobuf/text_format.h"
#include "io/record/named_access.h"
#include "io/record/record_index.h"

namespace penstock::ctl {
namespace {

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// What all ops call the list of files that they read, and so do overrides of it.
const std::string& NameOfFiles() {
  return v1::SpecOverrides::descriptor()
      ->FindFieldByNumber(v1::SpecOverrides::kFilesFieldNumber)
      ->name();
}

// How many values a message has in such fields, and how many of them are addresses; nested ones
// too.
struct Files {
  int all = 0;
  int far = 0;
};
void CountFiles(const google::protobuf::Message& message, Files* files) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const bool is_files = field->name() == NameOfFiles() && field->is_repeated() &&
                          field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size && (is_files || is_message); ++i) {
      if (is_files) {
        ++files->all;
        files->far += IsAddress(reflection.GetRepeatedString(message, field, i)) ? 1 : 0;
      } else {
        CountFiles(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                        : reflection.GetMessage(message, field),
                   files);
      }
    }
  }
}

}  // namespace

bool ReadsOnlyAddresses(const v1::SpecSource& source) {
  if (source.overrides().files_size() > 0) return false;
  FirstError ignored;  // the daemon tells what is wrong with a text
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&ignored);
  v1::PipelineSpec spec;
  if (!parser.ParseFromString(source.text().text(), &spec)) return false;
  Files files;
  CountFiles(spec, &files);
  return files.all > 0 && files.far == files.all;
}

void BuildNeededIndices(const v1::ValidatePipelineResponse& validated) {
  uint64_t bytes = 0;
  for (const v1::IndexedFile& needed : validated.index_file()) bytes += SizeOf(needed.path());
  ProgressBar progress(bytes);
  uint64_t bytes_before = 0;
  FolderIndexStore store(LocalFileSystem(), CacheFolder("index"));
  for (const v1::IndexedFile& needed : validated.index_file()) {
    // Of the others the daemon makes their indices.
    const RecordAccess* const access = AccessNamed(needed.format());
    if (access == nullptr) continue;
    IndexOptions options;
    options.on_damage = needed.skip_damage() ? OnDamage::kSkipRecord : OnDamage::kFail;
    options.progress = [&](uint64_t done) {
      progress.Show(bytes_before + done, "indexing " + needed.path());
    };
    if (auto file = LocalFileSystem().Open(needed.path()); file.ok())
      LoadOrBuildIndex(*file, *access, store, options).status().IgnoreError();
    bytes_before += SizeOf(needed.path());
  }
  progress.Clear();
}

}  // namespace penstock::ctl
