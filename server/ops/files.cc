#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/kept_descriptors.h"
#include "io/record/record_chunk.h"
#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/list_files.h"

namespace penstock {
namespace {

// The folders that files lie in, by number.
struct Classes {
  std::vector<std::string> names;  // in byte order
  std::vector<int64_t> of_file;    // from the source's first file on; empty: nobody asks
};

// The name of the folder that a file lies in; "" where its path names none.
std::string FolderOf(const std::string& path) {
  const size_t end = path.rfind('/');
  if (end == std::string::npos || end == 0) return "";
  const size_t begin = path.rfind('/', end - 1);
  return path.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1));
}

absl::StatusOr<Classes> NumberFolders(const Manifest& manifest) {
  std::map<std::string, int64_t> numbers;
  for (const FileEntry& entry : manifest) {
    const std::string name = FolderOf(entry.path);
    // What "." and ".." are called, and whether they are the same folder, the path does not tell.
    if (name.empty() || name == "." || name == "..") {
      return absl::InvalidArgumentError(absl::StrCat(
          "class_from_folder: expected paths that name the file's folder, found ", entry.path));
    }
    numbers[name] = 0;
  }
  Classes classes;
  for (auto& [name, number] : numbers) {
    number = static_cast<int64_t>(classes.names.size());
    classes.names.push_back(name);
  }
  for (const FileEntry& entry : manifest) classes.of_file.push_back(numbers[FolderOf(entry.path)]);
  return classes;
}

RowBytes Copy(const std::string& text, Arena& arena) {
  uint8_t* const copy = arena.Allocate(text.size());
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

class WholeFileLoader final : public ColumnLoader {
 public:
  WholeFileLoader(uint32_t first_file, Classes classes)
      : first_file_(first_file), classes_(std::move(classes)) {
    output_ = {{"path", {DType::kString, {}}}, {"bytes", {DType::kString, {}}}};
    if (classes_.of_file.empty()) return;
    output_.push_back({"label", {DType::kInt64, {}}});
    output_.push_back({"class_name", {DType::kString, {}}});
  }

  const Signature& output() const override { return output_; }
  bool is_dict() const override { return true; }

  // A class's number depends on which others there are.
  std::string ContentKey() const override {
    return absl::StrCat("files ", absl::StrJoin(classes_.names, "/"));
  }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    auto* paths = arena.AllocateArray<RowBytes>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row)
      paths[row] = Copy(files.manifest()[rows[row].file].path, arena);
    out[0].rows = paths;
    if (!classes_.of_file.empty()) LoadClasses(rows, out, arena);
    return LoadContents(rows, files, &out[1], arena);
  }

 private:
  static RowStatus LoadContents(RowReferences rows, FileTable& files, Column* out, Arena& arena) {
    auto* contents = arena.AllocateArray<RowBytes>(rows.rows);
    out->rows = contents;
    // The disk is told of what follows before a file is waited for.
    std::vector<std::shared_ptr<RandomAccessFile>> open;
    const size_t ahead = FilesOpenedAhead();
    for (uint32_t row = 0; row < rows.rows; ++row) {
      while (open.size() < std::min<size_t>(rows.rows, row + ahead)) {
        const auto next = static_cast<uint32_t>(open.size());
        absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.OpenAnew(rows[next].file);
        if (!file.ok()) return {file.status(), static_cast<int>(next)};
        (*file)->WillNeed(0, (*file)->size());
        open.push_back(*std::move(file));
      }
      const uint64_t size = open[row]->size();
      uint8_t* const data = arena.Allocate(size);
      const absl::StatusOr<size_t> read = open[row]->ReadAt(0, absl::MakeSpan(data, size));
      if (!read.ok()) return {read.status(), static_cast<int>(row)};
      if (*read < size) {
        return {absl::FailedPreconditionError(absl::StrCat(
                    "the file became shorter while it was read: ", size, " bytes, then ", *read)),
                static_cast<int>(row)};
      }
      contents[row] = {data, size};
      files.CountRead(size);
      open[row].reset();
    }
    return {};
  }

  void LoadClasses(RowReferences rows, absl::Span<Column> out, Arena& arena) const {
    Column& labels = out[2];
    labels.row_bytes = sizeof(int64_t);
    if (labels.data == nullptr) labels.data = arena.Allocate(rows.rows * sizeof(int64_t));
    auto* names = arena.AllocateArray<RowBytes>(rows.rows);
    out[3].rows = names;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const int64_t number = classes_.of_file[rows[row].file - first_file_];
      std::memcpy(labels.data + row * sizeof(int64_t), &number, sizeof(number));
      names[row] = Copy(classes_.names[number], arena);
    }
  }

  const uint32_t first_file_;
  const Classes classes_;
  Signature output_;
};

const OpRegistration<v1::Files> kFiles(
    "files", {.place = OpPlace::kSource, .files = v1::Files::kFilesFieldNumber},
    [](const v1::Files& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<Manifest> manifest = ListFiles(options.files(), plan);
      if (!manifest.ok()) return manifest.status();
      for (FileEntry& entry : *manifest) {
        entry.is_one_element = true;
        if (entry.size_bytes > kMaxRecordBytes) {
          return absl::InvalidArgumentError(
              absl::StrCat("file longer than a record may be: ", entry.size_bytes, " > ",
                           kMaxRecordBytes, " bytes (", entry.path, ")"));
        }
      }
      Classes classes;
      if (options.class_from_folder()) {
        absl::StatusOr<Classes> numbered = NumberFolders(*manifest);
        if (!numbered.ok()) return numbered.status();
        classes = *std::move(numbered);
      }
      const FileRange files = plan.AddFiles(*std::move(manifest));
      CountedElements elements;
      elements.count = files.count;
      elements.first_file = files.first;
      elements.file_step = 1;
      plan.SetSource(std::make_unique<WholeFileLoader>(files.first, std::move(classes)), files,
                     CountedOrder(elements));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
