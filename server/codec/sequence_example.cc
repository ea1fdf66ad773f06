#include "server/codec/sequence_example.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/codec/example_wire.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

using example_wire::KindName;
using example_wire::Sink;
using wire::ReadSize;
using wire::ReadTag;
using wire::SkipField;

constexpr uint32_t kFeatureListsTag = 0x12;
constexpr uint32_t kFeatureTag = 0x0a;  // FeatureList.feature

// How many more levels may nest inside each message.
constexpr int kListsDepth = wire::kDepthLimit - 1;
constexpr int kEntryDepth = kListsDepth - 1;
constexpr int kListDepth = kEntryDepth - 1;

// Calls visit(begin, end) for each Feature of one more part of a FeatureList, which returns whether
// it is sound.
template <typename Visit>
const uint8_t* WalkList(const uint8_t* p, const uint8_t* end, const Visit& visit) {
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag == kFeatureTag) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
      if (!visit(p, p + size)) return nullptr;
      p += size;
    } else if ((p = SkipField(tag, p, end, kListDepth)) == nullptr) {
      return nullptr;
    }
  }
  return p;
}

// The same for a map entry of any form; the key is the last one.
template <typename Visit>
const uint8_t* WalkListEntry(const uint8_t* p, const uint8_t* end, std::string_view* key,
                             const Visit& visit) {
  *key = {};
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag == example_wire::kKeyTag || tag == example_wire::kValueTag) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
      if (tag == example_wire::kKeyTag) {
        if (!wire::IsUtf8(p, size)) return nullptr;
        *key = std::string_view(reinterpret_cast<const char*>(p), size);
        p += size;
      } else if ((p = WalkList(p, p + size, visit)) == nullptr) {
        return nullptr;
      }
    } else if ((p = SkipField(tag, p, end, kEntryDepth)) == nullptr) {
      return nullptr;
    }
  }
  return p;
}

// A step that is not as wanted.
struct Fault {
  size_t list = 0;
  int64_t step = 0;
  DType kind = DType::kInvalid;
  int64_t num_values = 0;
};

}  // namespace

struct SequenceParser::Walk {
  const std::vector<ExampleFeature>& lists;
  SequenceValue* const values;
  Arena& arena;
  // By list; a later entry of the same key replaces what an earlier one held.
  std::vector<std::optional<Fault>> faults;

  const uint8_t* Lists(const uint8_t* p, const uint8_t* end) {
    while (p < end) {
      uint32_t tag;
      if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
      if (tag == example_wire::kEntryTag) {
        size_t size;
        if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
        if ((p = Entry(p, p + size)) == nullptr) return nullptr;
      } else if ((p = SkipField(tag, p, end, kListsDepth)) == nullptr) {
        return nullptr;
      }
    }
    return p;
  }

  const uint8_t* Entry(const uint8_t* p, const uint8_t* end) {
    std::string_view key;
    const auto parse = [](const uint8_t* from, const uint8_t* to, Sink& sink) {
      sink.levels_above = 1;
      return example_wire::ParseFeature(from, to, sink) != nullptr;
    };
    if (WalkListEntry(p, end, &key, [&](const uint8_t* from, const uint8_t* to) {
          Sink nowhere;
          return parse(from, to, nowhere);
        }) == nullptr) {
      return nullptr;
    }
    size_t i = 0;
    while (i < lists.size() && lists[i].key != key) ++i;
    if (i == lists.size()) return end;
    const ExampleFeature& wanted = lists[i];
    SequenceValue& value = values[i];
    value = {};
    value.values.present = true;
    faults[i].reset();
    // Counted first, and then put together.
    uint64_t count = 0, text = 0;
    WalkListEntry(p, end, &key, [&](const uint8_t* from, const uint8_t* to) {
      Sink sink;
      sink.wanted = wanted.kind;
      parse(from, to, sink);
      const bool other_kind = sink.kind != DType::kInvalid && sink.kind != wanted.kind;
      const bool other_count =
          wanted.count != ExampleFeature::kAnyCount && sink.num_values != wanted.count;
      if (!faults[i] && (other_kind || other_count))
        faults[i] = Fault{i, value.steps, sink.kind, sink.num_values};
      ++value.steps;
      count += static_cast<uint64_t>(sink.num_values);
      text += sink.text_size;
      return true;
    });
    if (faults[i]) return end;
    value.lengths = arena.AllocateArray<int64_t>(value.steps);
    const bool is_string = wanted.kind == DType::kString;
    const size_t head = is_string ? count * sizeof(uint32_t) : 0;
    const size_t size = is_string ? head + text : count * DTypeSize(wanted.kind);
    uint8_t* const bytes = arena.Allocate(size);
    uint64_t done = 0, text_done = 0;
    int64_t step = 0;
    WalkListEntry(p, end, &key, [&](const uint8_t* from, const uint8_t* to) {
      Sink sink;
      sink.wanted = wanted.kind;
      sink.capacity = static_cast<int64_t>(count - done);
      if (is_string) {
        sink.sizes = bytes + done * sizeof(uint32_t);
        sink.text = bytes + head + text_done;
        sink.text_capacity = text - text_done;
      } else {
        sink.numbers = bytes + done * DTypeSize(wanted.kind);
      }
      parse(from, to, sink);
      value.lengths[step++] = sink.num_values;
      done += static_cast<uint64_t>(sink.num_values);
      text_done += sink.text_size;
      return true;
    });
    value.values.count = static_cast<uint32_t>(count);
    value.values.bytes = bytes;
    value.values.size = size;
    return end;
  }
};

absl::Status SequenceParser::Parse(const uint8_t* data, size_t size, SequenceValue* values,
                                   Arena& arena) const {
  for (size_t i = 0; i < lists_.size(); ++i) values[i] = {};
  Walk walk{lists_, values, arena, {}};
  walk.faults.resize(lists_.size());
  const uint8_t* p = data;
  const uint8_t* const end = data + size;
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) break;
    if (tag == kFeatureListsTag) {
      size_t bytes;
      if ((p = ReadSize(p, end, &bytes)) == nullptr) break;
      if ((p = walk.Lists(p, p + bytes)) == nullptr) break;
    } else if ((p = SkipField(tag, p, end, wire::kDepthLimit)) == nullptr) {
      break;
    }
  }
  if (p == nullptr)
    return absl::DataLossError("not a tf.train.SequenceExample: malformed protobuf message");
  for (const std::optional<Fault>& fault : walk.faults) {
    if (!fault) continue;
    const ExampleFeature& wanted = lists_[fault->list];
    const bool other_kind = fault->kind != DType::kInvalid && fault->kind != wanted.kind;
    return absl::DataLossError(absl::StrCat(
        "feature list \"", wanted.key, "\", step ", fault->step, ": expected ",
        other_kind ? KindName(wanted.kind) : absl::StrCat(wanted.count, " values"), ", found ",
        other_kind ? KindName(fault->kind) : absl::StrCat(fault->num_values)));
  }
  return absl::OkStatus();
}

}  // namespace penstock
