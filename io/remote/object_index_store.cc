#include "io/remote/object_index_store.h"

#include <algorithm>
#include <memory>

#include "io/remote/object_writer.h"

namespace penstock {
namespace {

class WrittenText final : public WrittenFile {
 public:
  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) override {
    if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), text.begin() + static_cast<int64_t>(offset));
    return absl::OkStatus();
  }
  absl::Status Truncate(uint64_t bytes) override {
    text.resize(bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }

  std::string text;
};

}  // namespace

std::vector<std::string> ObjectIndexStore::PlacesToRead(const std::string& data_path) const {
  return {IndexPathBeside(data_path)};
}

std::vector<std::string> ObjectIndexStore::PlacesToWrite(const std::string& data_path) const {
  return {IndexPathBeside(data_path)};
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> ObjectIndexStore::Open(const std::string& place) {
  return files_.Open(place);
}

absl::Status ObjectIndexStore::Write(const std::string& place, Writing write) {
  WrittenText index;
  if (absl::Status status = write(index); !status.ok()) return status;
  const absl::StatusOr<std::unique_ptr<ObjectWriter>> object = ObjectWriter::Create(client_, place);
  if (!object.ok()) return object.status();
  absl::Status status = (*object)->Write(index.text);
  if (status.ok()) status = (*object)->Close();
  // Unavailable means that somebody else writes it.
  if (absl::IsUnavailable(status)) return absl::AbortedError(status.message());
  return status;
}

}  // namespace penstock
