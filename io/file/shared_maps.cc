#include "io/file/shared_maps.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

struct SharedMaps::Table {
  using Key = std::tuple<std::string, uint64_t, int64_t, uint64_t, uint64_t, int64_t>;
  static Key KeyOf(const std::string& path, uint64_t size, const FileVersion& version) {
    return {path, size, version.modified_ns, version.object, version.holder, version.changed_ns};
  }

  explicit Table(uint64_t max_bytes) : max_bytes(max_bytes) {}

  bool Reserve(uint64_t bytes) {
    if (use.files >= kMaxFiles || bytes > max_bytes - use.bytes) return false;
    ++use.files;
    use.bytes += bytes;
    return true;
  }

  void GiveBack(const Key& key, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    --use.files;
    use.bytes -= bytes;
    // Another one may have come in its place while it went.
    const auto known = maps.find(key);
    if (known != maps.end() && known->second.expired()) maps.erase(known);
  }

  // One that somebody has, and that lost nothing; a `torn` one is the caller's to let go of behind
  // the lock. REQUIRES: mutex.
  Map Find(const Key& key, Map* torn) const {
    const auto known = maps.find(key);
    Map map = known == maps.end() ? nullptr : known->second.lock();
    if (map == nullptr || !map->torn()) return map;
    *torn = std::move(map);
    return nullptr;
  }

  const uint64_t max_bytes;
  mutable std::mutex mutex;
  Use use;                                              // under mutex
  std::map<Key, std::weak_ptr<const MappedFile>> maps;  // under mutex
};

SharedMaps::SharedMaps(uint64_t max_bytes) : table_(std::make_shared<Table>(max_bytes)) {}

SharedMaps::~SharedMaps() = default;

absl::StatusOr<SharedMaps::Map> SharedMaps::Get(const RandomAccessFile& file) {
  if (file.descriptor() < 0) return absl::UnimplementedError("a file without a descriptor");
  const Table::Key key = Table::KeyOf(file.path(), file.size(), file.version());
  Map torn, also_torn;  // a map that ends takes the table's mutex
  {
    std::lock_guard<std::mutex> lock(table_->mutex);
    if (Map map = table_->Find(key, &torn)) return map;
    if (!table_->Reserve(file.size())) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for a map of ", file.size(), " bytes: ", table_->use.bytes, " of ",
                       table_->max_bytes, " are taken by ", table_->use.files, " files"));
    }
  }
  absl::StatusOr<std::unique_ptr<MappedFile>> made = MappedFile::Map(file);
  if (!made.ok()) {
    table_->GiveBack(key, file.size());
    return made.status();
  }
  const auto end = [table = table_, key](const MappedFile* map) {
    const uint64_t bytes = map->size();
    delete map;
    table->GiveBack(key, bytes);
  };
  Map map(made->release(), end);
  std::lock_guard<std::mutex> lock(table_->mutex);
  // Another thread may have been first.
  if (Map other = table_->Find(key, &also_torn)) return other;
  table_->maps[key] = map;
  return map;
}

SharedMaps::Use SharedMaps::InUse() const {
  std::lock_guard<std::mutex> lock(table_->mutex);
  return table_->use;
}

}  // namespace penstock
