#include "server/engine/read/arrow_walk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/packed_row.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

using Kind = ArrowLevel::Kind;

// Of one row: 24 bytes each.
constexpr size_t kMaxRuns = size_t{1} << 22;

absl::Status TooLong() {
  return absl::DataLossError(
      absl::StrCat("its values take more than ", kMaxArrowRowBytes, " bytes in one row"));
}

}  // namespace

absl::Status ArrowWalk::Null() const {
  const bool wants_lists = feature_.list_axes > 0 && !feature_.allow_missing;
  return absl::DataLossError(absl::StrCat("it is null, and ",
                                          wants_lists ? "allow_missing is not set, or " : "",
                                          "there is no default_value"));
}

uint64_t ArrowWalk::NumValues() const {
  uint64_t values = 0;
  // Lists that overlap may have more elements together than a number holds.
  for (const Run& run : runs_) {
    if (__builtin_add_overflow(values, run.count, &values)) return UINT64_MAX;
  }
  return values;
}

// Appends a run, which goes on with the last one where it can.
void ArrowWalk::Add(std::vector<Run>* runs, const Run& run) {
  if (run.count == 0) return;
  if (!runs->empty()) {
    Run& last = runs->back();
    const bool goes_on =
        last.is_null == run.is_null && (run.is_null || last.begin + last.count == run.begin);
    if (goes_on) {
      last.count += run.count;
      return;
    }
  }
  runs->push_back(run);
}

absl::Status ArrowWalk::EndLevel() {
  if (next_.size() > kMaxRuns) {
    return absl::DataLossError(absl::StrCat(
        "its nulls part the elements of one row into more than ", kMaxRuns, " stretches"));
  }
  runs_.swap(next_);
  return absl::OkStatus();
}

absl::StatusOr<const uint8_t*> ArrowWalk::Bitmap(uint64_t place, uint64_t end) {
  if (batches_.place(place).parts[static_cast<size_t>(ArrowPart::kBitmap)].bytes == 0)
    return nullptr;
  return view_.Get(*batch_, place, ArrowPart::kBitmap, BitmapBytes(end));
}

absl::Status ArrowWalk::LeaveOutNulls(uint64_t place) {
  next_.clear();
  for (const Run& run : runs_) {
    if (run.is_null) {
      Add(&next_, run);
      continue;
    }
    absl::StatusOr<const uint8_t*> bits = Bitmap(place, run.begin + run.count);
    if (!bits.ok()) return bits.status();
    if (*bits == nullptr) return absl::OkStatus();
    for (uint64_t i = run.begin; i < run.begin + run.count && next_.size() <= kMaxRuns; ++i)
      Add(&next_, ArrowBit(*bits, i) ? Run{i, 1, false} : Run{0, 1, true});
  }
  return EndLevel();
}

// One list is entered whose elements are these.
absl::Status ArrowWalk::EnterList(size_t axis, uint64_t begin, uint64_t length) {
  const int64_t wanted = feature_.type.shape[axis];
  if (wanted != kUnknownSize && static_cast<uint64_t>(wanted) != length) {
    return absl::DataLossError(absl::StrCat("a list of ", length, " elements, expected ", wanted));
  }
  if (wanted == kUnknownSize && axis == 0) outer_size_ = static_cast<int64_t>(length);
  if (wanted == kUnknownSize && axis > 0) {
    std::vector<int64_t>& splits = splits_[axis - 1];
    // Lists of no elements take no bytes in the file: there may be any number of them.
    if (splits.size() >= kMaxArrowRowBytes / sizeof(int64_t)) return TooLong();
    if (length > kMaxArrowRowBytes) return TooLong();
    splits.push_back(splits.back() + static_cast<int64_t>(length));
  }
  Add(&next_, {begin, length, false});
  return absl::OkStatus();
}

// The same of that many lists that are null.
absl::Status ArrowWalk::EnterNulls(size_t axis, uint64_t count) {
  const int64_t wanted = feature_.type.shape[axis];
  if (wanted == kUnknownSize) {
    if (!feature_.allow_missing) return Null();
    for (uint64_t i = 0; i < count; ++i) {
      if (absl::Status status = EnterList(axis, 0, 0); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  if (!feature_.default_value) return Null();
  if (count > kMaxArrowRowBytes / static_cast<uint64_t>(wanted)) return TooLong();
  Add(&next_, {0, count * static_cast<uint64_t>(wanted), true});
  return absl::OkStatus();
}

absl::Status ArrowWalk::EnterLists(const ArrowLevel& level, uint64_t place, size_t axis) {
  next_.clear();
  // Of the elements in the lists. The table of batches has compared it with what a fixed size asks
  // for.
  const uint64_t inner = batches_.place(place + 1).length;
  for (const Run& run : runs_) {
    if (run.is_null) {
      if (absl::Status status = EnterNulls(axis, run.count); !status.ok()) return status;
      continue;
    }
    const uint64_t end = run.begin + run.count;
    absl::StatusOr<const uint8_t*> bits = Bitmap(place, end);
    if (!bits.ok()) return bits.status();
    const bool is_fixed = level.kind == Kind::kFixedList;
    if (is_fixed && *bits == nullptr && feature_.type.shape[axis] != kUnknownSize) {
      Add(&next_, {run.begin * level.size, run.count * level.size, false});
      continue;
    }
    const uint32_t width = level.is_wide ? 8 : 4;
    const uint8_t* offsets = nullptr;
    if (!is_fixed) {
      absl::StatusOr<const uint8_t*> found =
          view_.Get(*batch_, place, ArrowPart::kOffsets, (end + 1) * width);
      if (!found.ok()) return found.status();
      offsets = *found;
    }
    uint64_t from = is_fixed ? run.begin * level.size
                             : LoadArrowNumber(offsets + run.begin * width, width, false);
    for (uint64_t i = run.begin; i < end; ++i) {
      const uint64_t to =
          is_fixed ? from + level.size : LoadArrowNumber(offsets + (i + 1) * width, width, false);
      if (to < from || to > inner) {
        return absl::DataLossError(absl::StrCat("a list of elements ", from, " to ", to, " of ",
                                                inner, ": its offsets are not sound"));
      }
      const bool is_null = *bits != nullptr && !ArrowBit(*bits, i);
      absl::Status status = is_null ? EnterNulls(axis, 1) : EnterList(axis, from, to - from);
      if (!status.ok()) return status;
      if (next_.size() > kMaxRuns) return EndLevel();
      from = to;
    }
  }
  return EndLevel();
}

absl::Status ArrowWalk::CopyNumbers(uint64_t place, const ArrowLevel& level, uint8_t* to) {
  for (const Run& run : runs_) {
    if (run.is_null) {
      if (!feature_.default_value) return Null();
      for (uint64_t i = 0; i < run.count; ++i, to += level.size)
        std::memcpy(to, feature_.default_value->data(), level.size);
      continue;
    }
    absl::StatusOr<const uint8_t*> values =
        view_.Get(*batch_, place, ArrowPart::kValues, (run.begin + run.count) * level.size);
    if (!values.ok()) return values.status();
    std::memcpy(to, *values + run.begin * level.size, run.count * level.size);
    absl::StatusOr<const uint8_t*> valid = Bitmap(place, run.begin + run.count);
    if (!valid.ok()) return valid.status();
    for (uint64_t i = 0; *valid != nullptr && i < run.count; ++i) {
      if (ArrowBit(*valid, run.begin + i)) continue;
      if (!feature_.default_value) return Null();
      std::memcpy(to + i * level.size, feature_.default_value->data(), level.size);
    }
    to += run.count * level.size;
  }
  return absl::OkStatus();
}

absl::Status ArrowWalk::CopyBools(uint64_t place, uint8_t* to) {
  for (const Run& run : runs_) {
    if (run.is_null) {
      if (!feature_.default_value) return Null();
      to = std::fill_n(to, run.count, static_cast<uint8_t>(feature_.default_value->front()));
      continue;
    }
    absl::StatusOr<const uint8_t*> bits =
        view_.Get(*batch_, place, ArrowPart::kValues, BitmapBytes(run.begin + run.count));
    if (!bits.ok()) return bits.status();
    absl::StatusOr<const uint8_t*> valid = Bitmap(place, run.begin + run.count);
    if (!valid.ok()) return valid.status();
    for (uint64_t i = run.begin; i < run.begin + run.count; ++i) {
      const bool is_null = *valid != nullptr && !ArrowBit(*valid, i);
      if (is_null && !feature_.default_value) return Null();
      *to++ = is_null ? static_cast<uint8_t>(feature_.default_value->front()) : ArrowBit(*bits, i);
    }
  }
  return absl::OkStatus();
}

absl::Status ArrowWalk::FindText(const Batch& batch, uint64_t place, const ArrowLevel& level,
                                 uint64_t number, Text* text) {
  if (level.kind == Kind::kFixedTexts) {
    absl::StatusOr<const uint8_t*> values =
        view_.Get(batch, place, ArrowPart::kValues, (number + 1) * level.size);
    if (!values.ok()) return values.status();
    *text = {*values + number * level.size, level.size};
    return absl::OkStatus();
  }
  const uint32_t width = level.is_wide ? 8 : 4;
  absl::StatusOr<const uint8_t*> offsets =
      view_.Get(batch, place, ArrowPart::kOffsets, (number + 2) * width);
  if (!offsets.ok()) return offsets.status();
  const uint64_t from = LoadArrowNumber(*offsets + number * width, width, false);
  const uint64_t to = LoadArrowNumber(*offsets + (number + 1) * width, width, false);
  uint64_t bytes = 0;
  absl::StatusOr<const uint8_t*> values = view_.Get(batch, place, ArrowPart::kValues, 0, &bytes);
  if (!values.ok()) return values.status();
  if (to < from || to > bytes) {
    return absl::DataLossError(absl::StrCat("a string of bytes ", from, " to ", to, " of ", bytes,
                                            ": its offsets are not sound"));
  }
  *text = {*values + from, to - from};
  return absl::OkStatus();
}

absl::Status ArrowWalk::PutText(const Text& text) {
  text_bytes_ += text.size + sizeof(uint32_t);
  if (text_bytes_ > kMaxArrowRowBytes) return TooLong();
  texts_.push_back(text);
  return absl::OkStatus();
}

absl::Status ArrowWalk::ForEachValue(uint64_t place, const ArrowLevel& level,
                                     absl::FunctionRef<absl::Status(const Text&)> put) {
  Text absent;
  if (feature_.default_value) {
    absent = {reinterpret_cast<const uint8_t*>(feature_.default_value->data()),
              feature_.default_value->size()};
  }
  for (const Run& run : runs_) {
    const uint64_t end = run.begin + run.count;
    absl::StatusOr<const uint8_t*> valid = nullptr;
    if (!run.is_null) valid = Bitmap(place, end);
    if (!valid.ok()) return valid.status();
    absl::StatusOr<const uint8_t*> places = nullptr;
    if (!run.is_null && level.kind == Kind::kPlaces)
      places = view_.Get(*batch_, place, ArrowPart::kValues, end * level.size);
    if (!places.ok()) return places.status();
    for (uint64_t i = run.begin; i < end; ++i) {
      Text text;
      absl::Status status;
      if (run.is_null || (*valid != nullptr && !ArrowBit(*valid, i))) {
        if (!feature_.default_value) return Null();
        text = absent;
      } else if (level.kind == Kind::kPlaces) {
        status = Decode(level, *places + i * level.size, &text);
      } else {
        status = FindText(*batch_, place, level, i, &text);
      }
      if (status.ok()) status = put(text);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrowWalk::DictionaryValue> ArrowWalk::FindInDictionary(const ArrowLevel& level,
                                                                       const uint8_t* at) {
  const ArrowBatches::Dictionary& dictionary = batches_.dictionary(*batch_, number_);
  const uint64_t number = LoadArrowNumber(at, level.size, level.is_wide);
  if (number >= dictionary.size()) {
    return absl::DataLossError(absl::StrCat("place ", static_cast<int64_t>(number),
                                            " in a dictionary of ", dictionary.size(), " values"));
  }
  const size_t part_number =
      std::upper_bound(dictionary.ends.begin(), dictionary.ends.end(), number) -
      dictionary.ends.begin();
  DictionaryValue value;
  value.in_part = number - (part_number == 0 ? 0 : dictionary.ends[part_number - 1]);
  value.part = &batches_.parts()[dictionary.parts[part_number]];
  // A null among the values is one where it is used.
  const Batch& part = *value.part;
  const ArrowExtent& bitmap =
      batches_.place(part.first_place).parts[static_cast<size_t>(ArrowPart::kBitmap)];
  if (bitmap.bytes > 0) {
    absl::StatusOr<const uint8_t*> bits =
        view_.Get(part, part.first_place, ArrowPart::kBitmap, BitmapBytes(value.in_part + 1));
    if (!bits.ok()) return bits.status();
    value.is_null = !ArrowBit(*bits, value.in_part);
  }
  return value;
}

absl::StatusOr<bool> ArrowWalk::IsNullInDictionary(uint64_t place) {
  const ArrowLevel& level = feature_.column.levels.back();
  const uint64_t row = runs_[0].begin;
  absl::StatusOr<const uint8_t*> places =
      view_.Get(*batch_, place, ArrowPart::kValues, (row + 1) * level.size);
  if (!places.ok()) return places.status();
  absl::StatusOr<DictionaryValue> found = FindInDictionary(level, *places + row * level.size);
  if (!found.ok()) return found.status();
  return found->is_null;
}

absl::Status ArrowWalk::Decode(const ArrowLevel& level, const uint8_t* at, Text* value) {
  const absl::StatusOr<DictionaryValue> found = FindInDictionary(level, at);
  if (!found.ok()) return found.status();
  if (found->is_null) {
    if (!feature_.default_value) return Null();
    *value = {reinterpret_cast<const uint8_t*>(feature_.default_value->data()),
              feature_.default_value->size()};
    return absl::OkStatus();
  }
  const Batch& part = *found->part;
  const uint64_t in_part = found->in_part;
  const ArrowLevel& values = feature_.column.values;
  if (values.kind == Kind::kTexts || values.kind == Kind::kFixedTexts)
    return FindText(part, part.first_place, values, in_part, value);
  if (values.kind == Kind::kBools) {
    static constexpr uint8_t kBits[] = {0, 1};
    absl::StatusOr<const uint8_t*> bits =
        view_.Get(part, part.first_place, ArrowPart::kValues, BitmapBytes(in_part + 1));
    if (!bits.ok()) return bits.status();
    *value = {&kBits[ArrowBit(*bits, in_part)], 1};
    return absl::OkStatus();
  }
  absl::StatusOr<const uint8_t*> numbers =
      view_.Get(part, part.first_place, ArrowPart::kValues, (in_part + 1) * values.size);
  if (!numbers.ok()) return numbers.status();
  *value = {*numbers + in_part * values.size, values.size};
  return absl::OkStatus();
}

// Gives the row its bytes, where they are not dense.
void ArrowWalk::EndRow(const uint8_t* numbers, size_t number_bytes, RowBytes* row, int64_t* dims) {
  const Shape& shape = feature_.type.shape;
  const bool is_text = feature_.type.dtype == DType::kString;
  if (dims != nullptr) {
    std::copy(shape.begin(), shape.end(), dims);
    dims[0] = outer_size_;
  }
  if (!is_text && !feature_.type.packed()) {
    *row = {numbers, number_bytes};
    return;
  }
  const bool has_sizes = is_text && !shape.empty();
  const size_t sizes_bytes = has_sizes ? texts_.size() * sizeof(uint32_t) : 0;
  if (is_text) {
    size_t bytes = sizes_bytes;
    for (const Text& text : texts_) bytes += text.size;
    uint8_t* const to = arena_.Allocate(bytes);
    uint8_t* at = to + sizes_bytes;
    for (size_t i = 0; i < texts_.size(); ++i) {
      const Text& text = texts_[i];
      const auto size = static_cast<uint32_t>(text.size);
      if (has_sizes) std::memcpy(to + i * sizeof(size), &size, sizeof(size));
      if (size > 0) std::memcpy(at, text.data, size);
      at += size;
    }
    numbers = to;
    number_bytes = bytes;
  }
  if (!feature_.type.packed()) {
    *row = {numbers, number_bytes};
    return;
  }
  PackedValues values{numbers + sizes_bytes, number_bytes - sizes_bytes, nullptr, NumValues()};
  if (is_text) values.string_sizes = numbers;
  *row = PackRagged(absl::MakeConstSpan(splits_).first(feature_.list_axes - 1), values, arena_);
}

absl::Status ArrowWalk::Take(const Batch& batch, uint64_t in_batch, uint8_t* to, RowBytes* row,
                             int64_t* dims) {
  CheckStop();
  batch_ = &batch;
  runs_.assign(1, {in_batch, 1, false});
  splits_.resize(feature_.list_axes > 1 ? feature_.list_axes - 1 : 0);
  for (std::vector<int64_t>& splits : splits_) splits.assign(1, 0);
  outer_size_ = 0;
  const std::vector<ArrowLevel>& levels = feature_.column.levels;
  uint64_t place = batch.first_place + batches_.first_level(number_);
  size_t axis = 0;
  for (const ArrowLevel& level : levels) {
    // Those among the values are found as they are copied.
    const bool is_values = &level == &levels.back() && !feature_.is_null;
    if (is_values) break;
    absl::Status status = level.is_list() ? EnterLists(level, place, axis++) : LeaveOutNulls(place);
    if (!status.ok()) return status;
    ++place;
  }
  const ArrowLevel& last = levels.back();
  if (feature_.is_null) {
    absl::StatusOr<bool> is_null = runs_[0].is_null;
    if (!runs_[0].is_null && last.kind == Kind::kPlaces) is_null = IsNullInDictionary(place - 1);
    if (!is_null.ok()) return is_null.status();
    *to = *is_null;
    return absl::OkStatus();
  }
  const uint64_t values = NumValues();
  if (feature_.type.dtype == DType::kString) {
    if (values > kMaxArrowRowBytes / sizeof(uint32_t)) return TooLong();
    texts_.clear();
    text_bytes_ = 0;
    absl::Status status =
        ForEachValue(place, last, [this](const Text& text) { return PutText(text); });
    if (status.ok()) EndRow(nullptr, 0, row, dims);
    return status;
  }
  const size_t size = DTypeSize(feature_.type.dtype);
  if (values > kMaxArrowRowBytes / size) return TooLong();
  if (to == nullptr) to = arena_.Allocate(values * size);
  absl::Status status;
  if (last.kind == Kind::kBools) {
    status = CopyBools(place, to);
  } else if (last.kind == Kind::kNumbers) {
    status = CopyNumbers(place, last, to);
  } else {
    uint8_t* at = to;
    status = ForEachValue(place, last, [&at, size](const Text& value) {
      std::memcpy(at, value.data, size);
      at += size;
      return absl::OkStatus();
    });
  }
  if (status.ok() && row != nullptr) EndRow(to, values * size, row, dims);
  return status;
}

}  // namespace penstock
