// A column that is asked for: the fields on the way to its values, and which nodes and buffers of a
// record batch are theirs.
//
//   struct ─► list ─► fixed-size list ─► values        each of them a level: 0 to 1 bitmap, offsets or values
//
// A batch has a node for each field and some buffers for each, parents before their children
// (ArrowBatch).
//
// Threads:  constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/dtype.h"
#include "io/arrow/arrow_schema.h"

namespace penstock {

struct ArrowLevel {
  enum class Kind : uint8_t {
    kStruct,      // may be null, and that is all
    kList,        // offsets
    kFixedList,   // `size` elements each
    kNumbers,     // `size` bytes each
    kBools,       // a bit each
    kTexts,       // offsets, and bytes
    kFixedTexts,  // `size` bytes each
    kPlaces,      // numbers of `size` bytes: places in a dictionary
  };
  Kind kind = Kind::kStruct;
  bool is_wide = false;  // offsets of 64 bits; signed places
  uint32_t size = 0;
  // In a batch: its node, its first buffer, which is the bitmap, and how many columns of view types
  // stand before it.
  uint32_t node = 0;
  uint32_t buffer = 0;
  uint32_t views_before = 0;

  bool is_list() const { return kind == Kind::kList || kind == Kind::kFixedList; }
  // Of another file, where it may stand at another place.
  bool IsLike(const ArrowLevel& other) const {
    return kind == other.kind && is_wide == other.is_wide && size == other.size;
  }
};

struct ArrowColumn {
  std::vector<ArrowLevel> levels;  // the last one holds the values
  DType dtype = DType::kInvalid;
  std::string type_name;              // of the values
  ArrowKind kind = ArrowKind::kNull;  // of these
  int16_t unit = 0;                   // of these (ArrowType)
  // Where the last level holds places: of which dictionary, and the one level of that.
  std::optional<int64_t> dictionary;
  ArrowLevel values;

  size_t num_lists() const {
    size_t lists = 0;
    for (const ArrowLevel& level : levels) lists += level.is_list();
    return lists;
  }
  bool IsLike(const ArrowColumn& other) const;
};

// The names in a path such as "image.bytes"; a backslash makes the next character part of a name.
absl::StatusOr<std::vector<std::string>> ParseArrowPath(absl::string_view path);
// The path of such names.
std::string ArrowPath(const std::vector<std::string>& names);

// The column of that path. `to_values`: down to its values, through all of its lists; else the
// column itself, for its nulls alone: the last level is what the path names. InvalidArgument where
// there is none, or its type has no dtype here; messages leave out which column it is.
absl::StatusOr<ArrowColumn> FindArrowColumn(const ArrowSchema& schema,
                                            const std::vector<std::string>& path, bool to_values);

// The paths of all columns, where structs are those of their fields, in the schema's order.
std::vector<std::vector<std::string>> ArrowPaths(const ArrowSchema& schema);

// How many nodes and buffers a batch of the schema has, without the further buffers of its views.
struct ArrowCounts {
  uint32_t nodes = 0;
  uint32_t buffers = 0;
  uint32_t views = 0;
};
ArrowCounts CountArrowParts(const ArrowSchema& schema);

}  // namespace penstock
