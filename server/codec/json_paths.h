// The paths of all fields of a decode_json as one tree, so that a document is gone through once.
//
// Threads:  constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/codec/json_fields.h"

namespace penstock {

class JsonPaths {
 public:
  struct Node {
    JsonStep step;  // from its parent
    int parent = -1;
    size_t depth = 0;           // steps up to it
    size_t level = 0;           // the lists around it: kEach steps up to it
    std::vector<int> keys;      // the nodes of an object's values, by kKey
    uint64_t key_sizes = 0;     // a bit for each size that a key of them has: SizeBit()
    int each = -1;              // of each value of a list; -1: none
    std::vector<int> places;    // of single ones
    std::vector<size_t> here;   // fields whose value it is
    std::vector<size_t> below;  // those, and all of the nodes below it
    bool is_text = false;       // it is the value of string scalars, and of nothing else

    static uint64_t SizeBit(size_t size) { return uint64_t{1} << (size < 63 ? size : 63); }
    bool wants_object() const { return !keys.empty(); }
    bool wants_list() const { return each >= 0 || !places.empty(); }
  };

  explicit JsonPaths(const std::vector<JsonField>& fields);

  // The document's is the first one.
  const Node& node(int index) const { return nodes_[index]; }
  size_t size() const { return nodes_.size(); }

  // The node of an object's key; -1: nobody wants it. `guess`: a place in node.keys, where it is
  // looked for first; then the one behind it.
  int FindKey(const Node& node, absl::string_view key, size_t* guess) const {
    // Most of the keys that nobody wants have another size than those that somebody does.
    return (node.key_sizes & Node::SizeBit(key.size())) == 0 ? -1 : FindAnyKey(node, key, guess);
  }

  // As in the spec, but of `[]` the place where it stands: places[level].
  std::string PathTo(int index, const std::vector<int64_t>& places) const;

 private:
  int Child(int parent, const JsonStep& step);
  int FindAnyKey(const Node& node, absl::string_view key, size_t* guess) const;

  std::vector<Node> nodes_;
  // Of nodes with many keys: by node and key.
  std::vector<absl::flat_hash_map<std::string, int>> by_key_;
};

}  // namespace penstock
