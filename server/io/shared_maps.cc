#include "server/io/shared_maps.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

namespace penstock {

struct SharedMaps::Table {
  using Key = std::tuple<std::string, uint64_t, int64_t, uint64_t>;
  static Key KeyOf(const std::string& path, uint64_t size, const FileIdentity& identity) {
    return {path, size, identity.mtime_ns, identity.inode};
  }

  explicit Table(uint64_t max_bytes) : max_bytes(max_bytes) {}

  bool HasRoomFor(uint64_t bytes) const {
    return use.files < kMaxFiles && bytes <= max_bytes - use.bytes;
  }

  void GiveBack(const Key& key, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    --use.files;
    use.bytes -= bytes;
    // Another one may have come in its place while it went.
    const auto known = maps.find(key);
    if (known != maps.end() && known->second.expired()) maps.erase(known);
  }

  const uint64_t max_bytes;
  mutable std::mutex mutex;
  Use use;                                              // under mutex
  std::map<Key, std::weak_ptr<const MappedFile>> maps;  // under mutex
};

SharedMaps::SharedMaps(uint64_t max_bytes) : table_(std::make_shared<Table>(max_bytes)) {}

SharedMaps::~SharedMaps() = default;

SharedMaps::Map SharedMaps::Get(const RandomAccessFile& file) {
  if (file.descriptor() < 0) return nullptr;
  const Table::Key key = Table::KeyOf(file.path(), file.size(), file.identity());
  std::lock_guard<std::mutex> lock(table_->mutex);
  const auto known = table_->maps.find(key);
  if (known != table_->maps.end()) {
    if (Map map = known->second.lock()) return map;
  }
  if (!table_->HasRoomFor(file.size())) return nullptr;
  absl::StatusOr<std::unique_ptr<MappedFile>> made = MappedFile::Map(file);
  if (!made.ok()) return nullptr;
  ++table_->use.files;
  table_->use.bytes += file.size();
  const auto end = [table = table_, key](const MappedFile* map) {
    const uint64_t bytes = map->size();
    delete map;
    table->GiveBack(key, bytes);
  };
  const Map map(made->release(), end);
  table_->maps[key] = map;
  return map;
}

SharedMaps::Use SharedMaps::InUse() const {
  std::lock_guard<std::mutex> lock(table_->mutex);
  return table_->use;
}

}  // namespace penstock
