// Arrow data in memory, read as a source reads it: by all of its columns that can be read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/packed_row.h"
#include "io/arrow/arrow_file.h"
#include "server/engine/read/arrow_loader.h"
#include "tests/support/memory_file.h"

namespace penstock::test {

// The file system of one file, whatever it is called.
class OneFile final : public FileSystem {
 public:
  explicit OneFile(std::shared_ptr<RandomAccessFile> file) : file_(std::move(file)) {}
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string&) override {
    return file_;
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return std::vector<ListedFile>{{pattern, file_->size(), {}}};
  }

 private:
  const std::shared_ptr<RandomAccessFile> file_;
};

// Loads rows from `first` on, `count` of them, and returns a text of all of their bytes.
inline absl::StatusOr<std::string> LoadAsText(const ColumnLoader& loader, FileTable& table,
                                              uint64_t first, uint32_t count) {
  std::vector<RecordRef> refs(count);
  for (uint32_t row = 0; row < count; ++row) refs[row].offset = first + row;
  Arena arena;
  const Signature& output = loader.output();
  std::vector<Column> columns(output.size());
  RowStatus status = loader.Load({refs.data(), count, 1}, table, absl::MakeSpan(columns), arena);
  if (!status.ok()) return status.status;
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (uint32_t row = 0; row < count; ++row) {
      const uint8_t* const bytes = columns[i].row(row);
      text.append(reinterpret_cast<const char*>(bytes), columns[i].row_size(row));
      if (output[i].type.packed() && !IsPackedRow(output[i].type, bytes, columns[i].row_size(row)))
        return absl::InternalError("a row that is none of its type");
      text += '\n';
    }
  }
  return text;
}

class ArrowInMemory {
 public:
  // The features of all columns that can be read. A null is `is_filled` or an error.
  static absl::StatusOr<std::unique_ptr<ArrowInMemory>> Open(std::shared_ptr<RandomAccessFile> file,
                                                             OnDamage on_damage,
                                                             bool is_filled = true) {
    std::unique_ptr<ArrowInMemory> opened(new ArrowInMemory(file));
    auto arrow = ArrowFile::Open(file, on_damage);
    if (!arrow.ok()) return arrow.status();
    ArrowSource source;
    source.on_damage = on_damage;
    std::vector<ArrowColumn> columns;
    for (const std::vector<std::string>& path : ArrowPaths((*arrow)->schema())) {
      google::protobuf::RepeatedPtrField<v1::ArrowFeature> wanted;
      v1::ArrowFeature& feature = *wanted.Add();
      feature.set_name("f");
      feature.set_column(ArrowPath(path));
      auto planned = PlanArrowFeatures(wanted, (*arrow)->schema());
      if (!planned.ok()) continue;
      ArrowFeature& one = planned->front();
      one.name = absl::StrCat("f", columns.size());
      if (is_filled) {
        one.allow_missing = one.list_axes > 0;
        one.default_value = std::string(std::max<size_t>(1, DTypeSize(one.type.dtype)), '\7');
      }
      columns.push_back(one.column);
      source.features.push_back(std::move(one));
    }
    auto batches = std::make_shared<ArrowBatches>(columns.size());
    absl::Status status = batches->AddFile(**arrow, columns, &opened->damage);
    if (!status.ok()) return status;
    auto rows = ArrowRows::Make({}, "", batches->num_rows(), opened->files_, nullptr);
    if (!rows.ok()) return rows.status();
    source.batches = batches;
    source.rows = *std::move(rows);
    opened->batches = batches;
    opened->manifest_.push_back(EntryOf(*file));
    opened->manifest_[0].indexed = ArrowPlaces(batches, 0);
    opened->table_ = std::make_unique<FileTable>(opened->files_, opened->manifest_);
    opened->loader = ArrowLoader(std::move(source));
    return opened;
  }

  // As LoadAsText().
  absl::StatusOr<std::string> Load(uint64_t first, uint32_t count) {
    return LoadAsText(*loader, *table_, first, count);
  }

  std::shared_ptr<const ArrowBatches> batches;
  std::unique_ptr<ColumnLoader> loader;
  std::vector<Damage> damage;

 private:
  explicit ArrowInMemory(std::shared_ptr<RandomAccessFile> file) : files_(std::move(file)) {}

  OneFile files_;
  Manifest manifest_;
  std::unique_ptr<FileTable> table_;
};

}  // namespace penstock::test
