#include "server/codec/example.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/example_wire.h"
#include "server/codec/wire.h"

namespace penstock {
namespace {

using example_wire::KindName;
using example_wire::ParseFeature;
using example_wire::Sink;
using example_wire::WalkEntry;
using wire::ReadSize;
using wire::ReadTag;
using wire::SkipField;

// Field tags, all of one byte when written by an ordinary writer.
using example_wire::kBytesListTag;
using example_wire::kBytesTag;
using example_wire::kEntryTag;
using example_wire::kExampleDepth;
using example_wire::kFeaturesDepth;
using example_wire::kFeaturesTag;
using example_wire::kInt64ListTag;
using example_wire::kKeyTag;
using example_wire::kPackedTag;
using example_wire::kValueTag;

uint64_t LoadWord(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

bool KeyLess(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

void FetchAhead(const Column& records, int row, int rows) {
  constexpr int kDistance = 10;
  constexpr size_t kMaxBytes = 512;
  constexpr size_t kLineBytes = 64;
  if (row + kDistance >= rows) return;
  const uint8_t* const next = records.row(row + kDistance);
  const size_t bytes = std::min(records.row_size(row + kDistance), kMaxBytes);
  for (size_t offset = 0; offset < bytes; offset += kLineBytes) __builtin_prefetch(next + offset);
}

// One record being parsed.
class ExampleParser::Cursor {
 public:
  Cursor(const ExampleParser& parser, ExampleValue* values, void* const* numbers, Arena* arena)
      : parser_(parser), values_(values), numbers_(numbers), arena_(arena) {}

  const uint8_t* ParseExample(const uint8_t* p, const uint8_t* end) {
    while (p < end) {
      uint32_t tag;
      if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
      if (tag == kFeaturesTag) {
        size_t size;
        if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
        if ((p = ParseFeatures(p, p + size)) == nullptr) return nullptr;
      } else if ((p = SkipField(tag, p, end, kExampleDepth)) == nullptr) {
        return nullptr;
      }
    }
    return p;
  }

  // Of the features that are not as wanted, the first of the plan.
  absl::Status Verdict() const {
    if (faults_.empty()) return absl::OkStatus();
    const Fault& fault =
        *std::min_element(faults_.begin(), faults_.end(),
                          [](const Fault& a, const Fault& b) { return a.position < b.position; });
    const ExampleFeature& wanted = parser_.wanted_[fault.position].feature;
    if (fault.kind != wanted.kind) {
      return absl::DataLossError(absl::StrCat("feature \"", wanted.key, "\": expected ",
                                              KindName(wanted.kind), ", found ",
                                              KindName(fault.kind)));
    }
    return absl::DataLossError(absl::StrCat("feature \"", wanted.key, "\": expected ", wanted.count,
                                            wanted.count == 1 ? " value" : " values", ", found ",
                                            fault.num_values));
  }

 private:
  // A feature that is there but not as wanted. Kept aside since a later entry of the same key may
  // still replace it.
  struct Fault {
    int position;
    DType kind;
    int64_t num_values;
  };

  const uint8_t* ParseFeatures(const uint8_t* p, const uint8_t* end) {
    while (p < end) {
      uint32_t tag;
      if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
      if (tag == kEntryTag) {
        size_t size;
        if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
        if ((p = ParseEntry(p, p + size)) == nullptr) return nullptr;
      } else if ((p = SkipField(tag, p, end, kFeaturesDepth)) == nullptr) {
        return nullptr;
      }
    }
    return p;
  }

  const uint8_t* ParseEntry(const uint8_t* p, const uint8_t* end) {
    int position = -1;
    const uint8_t* value = MatchExpected(p, end);
    if (value != nullptr) {
      position = next_;
    } else {
      value = ReadKey(p, end, &position);
    }
    if (position >= 0 && ParseOrdinaryValue(value, end, position)) return end;
    if (value != nullptr) {
      size_t size;
      value = ReadSize(value, end, &size);
      // Nothing may follow the value: then the key cannot change any more.
      if (value != nullptr && value + size == end) {
        Sink sink = SinkFor(position);
        if (ParseFeature(value, end, sink) == nullptr) return nullptr;
        Gather(position, sink, [&](Sink& full) { ParseFeature(value, end, full); });
        Finish(position, sink);
        return end;
      }
    }
    return ParseUnusualEntry(p, end);
  }

  // Takes a value of one byte string or one integer in the form that ordinary writers choose;
  // false, having done nothing, for any other. `p` is at the value's size.
  bool ParseOrdinaryValue(const uint8_t* p, const uint8_t* end, int position) {
    const ExampleFeature& wanted = parser_.wanted_[position].feature;
    const bool is_bytes = wanted.kind == DType::kString;
    if (wanted.gathered || (!is_bytes && (wanted.kind != DType::kInt64 || wanted.count != 1)))
      return false;
    // Value, list and run (or string) each fill what encloses them.
    if ((p = EnterWhole(p, end)) == nullptr) return false;
    if (p == end || *p != (is_bytes ? kBytesListTag : kInt64ListTag)) return false;
    if ((p = EnterWhole(p + 1, end)) == nullptr) return false;
    static_assert(kBytesTag == kPackedTag);
    if (p == end || *p != kBytesTag) return false;
    if ((p = EnterWhole(p + 1, end)) == nullptr) return false;
    if (!is_bytes) {
      // The eight bytes that ReadWholeVarint() may look at in front are the tags and sizes just
      // read.
      uint64_t number;
      if (!wire::ReadWholeVarint(p, end, &number)) return false;
      *static_cast<int64_t*>(numbers_[position]) = static_cast<int64_t>(number);
    }
    Arrived(position, {true, 1, p, static_cast<size_t>(end - p)});
    return true;
  }

  // The content of a length-delimited field that ends at `end`; null for any other.
  static const uint8_t* EnterWhole(const uint8_t* p, const uint8_t* end) {
    size_t size;
    p = ReadSize(p, end, &size);
    return p != nullptr && p + size == end ? p : nullptr;
  }

  // The position of the value's size if the entry is that of the feature whose turn it is.
  const uint8_t* MatchExpected(const uint8_t* p, const uint8_t* end) const {
    if (static_cast<size_t>(next_) >= parser_.wanted_.size()) return nullptr;
    const Wanted& wanted = parser_.wanted_[next_];
    const size_t size = wanted.entry_start.size();
    if (end - p < 8 || (LoadWord(p) & wanted.start_mask) != wanted.start_word ||
        wanted.start_mask == 0) {
      return nullptr;
    }
    if (size > 8 && (static_cast<size_t>(end - p) < size ||
                     std::memcmp(p + 8, wanted.entry_start.data() + 8, size - 8) != 0)) {
      return nullptr;
    }
    return p + size;
  }

  // The same for an entry with any key in front of a value; null when it does not look so.
  const uint8_t* ReadKey(const uint8_t* p, const uint8_t* end, int* position) const {
    if (p == end || *p != kKeyTag) return nullptr;
    size_t size;
    p = ReadSize(p + 1, end, &size);
    if (p == nullptr || p + size == end || p[size] != kValueTag || !wire::IsUtf8(p, size)) {
      return nullptr;
    }
    *position = parser_.Find(std::string_view(reinterpret_cast<const char*>(p), size));
    return p + size + 1;
  }

  // Twice over an entry whose fields are split, repeated or out of order: what its key is may stand
  // behind its value.
  const uint8_t* ParseUnusualEntry(const uint8_t* p, const uint8_t* end) {
    std::string_view key;
    Sink nowhere;
    if (WalkEntry(p, end, nowhere, &key) == nullptr) return nullptr;
    const int position = parser_.Find(key);
    if (position >= 0) {
      Sink sink = SinkFor(position);
      WalkEntry(p, end, sink, &key);
      Gather(position, sink, [&](Sink& full) { WalkEntry(p, end, full, &key); });
      Finish(position, sink);
    }
    return end;
  }

  Sink SinkFor(int position) const {
    Sink sink;
    if (position >= 0) {
      const ExampleFeature& wanted = parser_.wanted_[position].feature;
      sink.wanted = wanted.kind;
      if (wanted.kind != DType::kString && !wanted.gathered) {
        sink.capacity = wanted.count;
        sink.numbers = numbers_[position];
      }
    }
    return sink;
  }

  // Values that an entry turned out to hold are put together by a second walk over it, now that
  // their number is known.
  template <typename Walk>
  void Gather(int position, Sink& sink, const Walk& walk) {
    if (position < 0) return;
    const ExampleFeature& wanted = parser_.wanted_[position].feature;
    if (!wanted.gathered || !IsAsWanted(wanted, sink)) return;
    Sink full;
    full.wanted = wanted.kind;
    full.capacity = sink.num_values;
    if (wanted.kind == DType::kString) {
      const size_t sizes_bytes = sink.num_values * sizeof(uint32_t);
      full.text_capacity = sink.text_size;
      sink.bytes_size = sizes_bytes + sink.text_size;
      full.sizes = arena_->Allocate(sink.bytes_size);
      full.text = full.sizes + sizes_bytes;
      sink.bytes = full.sizes;
    } else {
      sink.bytes_size = sink.num_values * DTypeSize(wanted.kind);
      uint8_t* place = arena_->Allocate(sink.bytes_size);
      full.numbers = place;
      sink.bytes = place;
    }
    walk(full);
  }

  static bool IsAsWanted(const ExampleFeature& wanted, const Sink& sink) {
    return sink.kind == wanted.kind &&
           (sink.num_values == wanted.count || wanted.count == ExampleFeature::kAnyCount);
  }

  // Notes what an entry held; what an earlier entry of the same key held is gone.
  void Finish(int position, const Sink& sink) {
    if (position < 0) return;
    const ExampleFeature& wanted = parser_.wanted_[position].feature;
    const bool present = sink.kind != DType::kInvalid;
    Arrived(position,
            {present, static_cast<uint32_t>(sink.num_values), sink.bytes, sink.bytes_size});
    if (present && !IsAsWanted(wanted, sink)) {
      faults_.push_back({position, sink.kind, sink.num_values});
    }
  }

  void Arrived(int position, const ExampleValue& value) {
    next_ = position + 1 == static_cast<int>(parser_.wanted_.size()) ? 0 : position + 1;
    values_[position] = value;
    if (!faults_.empty()) [[unlikely]] {
      std::erase_if(faults_, [&](const Fault& fault) { return fault.position == position; });
    }
  }

  const ExampleParser& parser_;
  ExampleValue* const values_;
  void* const* const numbers_;
  Arena* const arena_;
  int next_ = 0;  // the position after that of the last feature found
  std::vector<Fault> faults_;
};

ExampleParser::ExampleParser(std::vector<ExampleFeature> features) {
  for (ExampleFeature& feature : features) {
    Wanted wanted;
    const std::string& key = feature.key;
    // A longer size takes two bytes, and a key that is no UTF-8 must not be found: such features
    // are never matched this way.
    if (key.size() < 0x80 && wire::IsUtf8(key)) {
      wanted.entry_start.push_back(static_cast<char>(kKeyTag));
      wanted.entry_start.push_back(static_cast<char>(key.size()));
      wanted.entry_start.append(key);
      wanted.entry_start.push_back(static_cast<char>(kValueTag));
      const size_t size = std::min<size_t>(wanted.entry_start.size(), 8);
      std::memcpy(&wanted.start_word, wanted.entry_start.data(), size);
      std::memset(&wanted.start_mask, 0xff, size);
    }
    // Records with features of any length have too many forms to remember.
    if (feature.gathered) num_tried_.store(kMaxMade, std::memory_order_relaxed);
    wanted.feature = std::move(feature);
    wanted_.push_back(std::move(wanted));
  }
  by_key_.resize(wanted_.size());
  std::iota(by_key_.begin(), by_key_.end(), 0);
  std::sort(by_key_.begin(), by_key_.end(), [this](int a, int b) {
    return KeyLess(wanted_[a].feature.key, wanted_[b].feature.key);
  });
}

int ExampleParser::Find(std::string_view key) const {
  const auto found = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                      [this](int position, std::string_view k) {
                                        return KeyLess(wanted_[position].feature.key, k);
                                      });
  if (found == by_key_.end() || wanted_[*found].feature.key != key) return -1;
  return *found;
}

absl::Status ExampleParser::Parse(const uint8_t* data, size_t size, ExampleValue* values,
                                  void* const* numbers, Arena* arena) const {
  for (size_t i = 0; i < wanted_.size(); ++i) values[i].present = false;
  const ExampleSkeleton* form =
      forms_[size % kForms].load(std::memory_order_acquire);  // SYNC example-form
  if (form != nullptr && form->size() == size && form->Match(data)) {
    form->Extract(data, values, numbers);
    return absl::OkStatus();
  }
  const ExampleOutline* outline = outline_.load(std::memory_order_acquire);  // SYNC example-outline
  if (outline != nullptr) {
    if (outline->Read(data, size, values, numbers, arena)) {
      if (num_tried_.load(std::memory_order_relaxed) < kMaxMade) Remember(data, size);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < wanted_.size(); ++i) values[i].present = false;
  }
  Cursor cursor(*this, values, numbers, arena);
  if (cursor.ParseExample(data, data + size) == nullptr) {
    return absl::DataLossError("not a tf.train.Example: malformed protobuf message");
  }
  absl::Status verdict = cursor.Verdict();
  if (!verdict.ok()) return verdict;
  if (num_tried_.load(std::memory_order_relaxed) < kMaxMade) Remember(data, size);
  if (num_outlines_tried_.load(std::memory_order_relaxed) < kMaxOutlines)
    RememberOutline(data, size);
  return verdict;
}

int ExampleParser::ParseKnown(const Column& records, int first, int rows,
                              const ExampleRows* places) const {
  for (int row = first; row < rows; ++row) {
    FetchAhead(records, row, rows);
    const uint8_t* const data = records.row(row);
    const size_t size = records.row_size(row);
    const ExampleSkeleton* form =
        forms_[size % kForms].load(std::memory_order_acquire);  // SYNC example-form
    if (form == nullptr || form->size() != size || form->num_found() != wanted_.size() ||
        !form->Match(data) || !form->ExtractRow(data, row, places)) {
      return row;
    }
  }
  return rows;
}

void ExampleParser::Remember(const uint8_t* data, size_t size) const {
  num_tried_.fetch_add(1, std::memory_order_relaxed);
  std::unique_ptr<const ExampleSkeleton> form =
      ExampleSkeleton::Make(data, size, [this](std::string_view key) -> ExampleSkeleton::Wish {
        const int position = Find(key);
        if (position < 0) return {};
        const ExampleFeature& feature = wanted_[position].feature;
        return {position, feature.kind, feature.count};
      });
  if (form == nullptr) return;
  std::lock_guard<std::mutex> lock(made_mutex_);
  forms_[size % kForms].store(form.get(), std::memory_order_release);  // SYNC example-form
  made_.push_back(std::move(form));
}

void ExampleParser::RememberOutline(const uint8_t* data, size_t size) const {
  num_outlines_tried_.fetch_add(1, std::memory_order_relaxed);
  const auto lookup = [this](std::string_view key) -> ExampleOutline::Wish {
    const int position = Find(key);
    if (position < 0) return {};
    const ExampleFeature& feature = wanted_[position].feature;
    return {position, feature.kind, feature.count, feature.gathered};
  };
  std::lock_guard<std::mutex> lock(made_mutex_);
  std::unique_ptr<const ExampleOutline> outline = ExampleOutline::Make(
      data, size, lookup, outlines_.empty() ? nullptr : outlines_.back().get());
  if (outline == nullptr) return;
  outline_.store(outline.get(), std::memory_order_release);  // SYNC example-outline
  outlines_.push_back(std::move(outline));
}

}  // namespace penstock
