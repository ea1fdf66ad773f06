#include "io/parquet/parquet_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "io/parquet/delta_packed.h"
#include "io/parquet/rle_hybrid.h"

namespace penstock {
namespace {

constexpr size_t kAtOnce = 1024;

absl::Status TooFew(absl::string_view encoding, uint64_t values) {
  return absl::DataLossError(
      absl::StrCat("a page of encoding ", encoding, " ends before its ", values, " values"));
}

absl::Status NotRead(const ParquetColumn& column, ParquetEncoding encoding) {
  return absl::UnimplementedError(absl::StrCat(ParquetTypeName(column.type), " values of encoding ",
                                               ParquetEncodingName(encoding),
                                               " are not read here"));
}

template <typename T>
T LoadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
void StoreAs(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

// Copies whole numbers of 32 bits to shorter ones.
template <typename T>
void Narrow(const uint8_t* from, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i)
    StoreAs(to + i * sizeof(T), static_cast<T>(LoadAs<uint32_t>(from + i * sizeof(uint32_t))));
}

absl::Status DecodePlainNumbers(const ParquetColumn& column, absl::Span<const uint8_t> bytes,
                                uint64_t skipped, uint64_t count, uint8_t* slots) {
  const size_t stored = column.value_bytes, slot = ParquetSlotBytes(column);
  if ((skipped + count) > bytes.size() / stored) return TooFew("PLAIN", skipped + count);
  const uint8_t* const from = bytes.data() + skipped * stored;
  if (slot == stored) {
    if (count > 0) CopyInPieces(slots, from, count * stored);
    return absl::OkStatus();
  }
  InPieces(count, [&](size_t first, size_t some) {
    (slot == 1 ? Narrow<uint8_t> : Narrow<uint16_t>)(from + first * stored, some,
                                                     slots + first * slot);
  });
  return absl::OkStatus();
}

absl::Status DecodePlainBools(absl::Span<const uint8_t> bytes, uint64_t skipped, uint64_t count,
                              uint8_t* slots) {
  const uint64_t end = skipped + count;
  if (end / 8 + (end % 8 != 0) > bytes.size()) return TooFew("PLAIN", end);
  InPieces(count, [&](size_t first, size_t some) {
    for (uint64_t i = first; i < first + some; ++i) {
      const uint64_t bit = skipped + i;
      slots[i] = bytes[bit / 8] >> (bit % 8) & 1;
    }
  });
  return absl::OkStatus();
}

absl::Status DecodeRunsOfBools(absl::Span<const uint8_t> bytes, uint64_t skipped, uint64_t count,
                               uint8_t* slots) {
  uint32_t size = 0;
  if (bytes.size() >= sizeof(size)) std::memcpy(&size, bytes.data(), sizeof(size));
  if (bytes.size() < sizeof(size) || size > bytes.size() - sizeof(size))
    return TooFew("RLE", skipped + count);
  RleHybrid runs(bytes.subspan(sizeof(size), size), /*bits=*/1);
  if (!runs.Skip(skipped)) return TooFew("RLE", skipped + count);
  uint32_t bits[kAtOnce];
  StopLook look;
  for (uint64_t done = 0; done < count;) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(count - done, kAtOnce));
    if (!runs.Read(bits, some)) return TooFew("RLE", skipped + count);
    for (size_t i = 0; i < some; ++i) slots[done + i] = static_cast<uint8_t>(bits[i]);
    done += some;
    look.Did(some);
  }
  return absl::OkStatus();
}

absl::Status DecodePlainTexts(const ParquetColumn& column, absl::Span<const uint8_t> bytes,
                              uint64_t skipped, uint64_t count, uint8_t* slots) {
  StopLook look;
  if (column.type == ParquetType::kFixedLenByteArray) {
    const uint64_t size = column.value_bytes;
    if (skipped + count > bytes.size() / size) return TooFew("PLAIN", skipped + count);
    for (uint64_t i = 0; i < count; ++i) {
      StoreAs(slots + i * sizeof(ParquetText),
              ParquetText{bytes.data() + (skipped + i) * size, size});
      look.Did(1);
    }
    return absl::OkStatus();
  }
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (uint64_t i = 0; i < skipped + count; ++i) {
    if (left < sizeof(uint32_t)) return TooFew("PLAIN", skipped + count);
    const auto size = LoadAs<uint32_t>(at);
    at += sizeof(size);
    left -= sizeof(size);
    if (size > left) {
      return absl::DataLossError(
          absl::StrCat("a string of ", size, " bytes, where its page has ", left, " left"));
    }
    if (i >= skipped) StoreAs(slots + (i - skipped) * sizeof(ParquetText), ParquetText{at, size});
    at += size;
    left -= size;
    look.Did(1);
  }
  return absl::OkStatus();
}

template <typename T>
void Gather(const uint8_t* from, const uint32_t* places, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(to + i * sizeof(T), from + size_t{places[i]} * sizeof(T), sizeof(T));
}

// Slots of 1, 2, 4, 8 bytes, and of strings.
void GatherSlots(size_t slot, const uint8_t* from, const uint32_t* places, size_t count,
                 uint8_t* to) {
  switch (slot) {
    case 1:
      return Gather<uint8_t>(from, places, count, to);
    case 2:
      return Gather<uint16_t>(from, places, count, to);
    case 4:
      return Gather<uint32_t>(from, places, count, to);
    case 8:
      return Gather<uint64_t>(from, places, count, to);
    default:
      return Gather<ParquetText>(from, places, count, to);
  }
}

absl::Status DecodePlaces(const ParquetColumn& column, absl::Span<const uint8_t> bytes,
                          const ParquetDictionary& dictionary, uint64_t skipped, uint64_t count,
                          uint8_t* slots) {
  constexpr char kName[] = "RLE_DICTIONARY";
  if (bytes.empty()) return TooFew(kName, skipped + count);
  const uint32_t bits = bytes[0];
  if (bits > kMaxHybridBits)
    return absl::DataLossError(absl::StrCat("places of ", bits, " bits in a dictionary"));
  RleHybrid runs(bytes.subspan(1), bits);
  if (!runs.Skip(skipped)) return TooFew(kName, skipped + count);
  const size_t slot = ParquetSlotBytes(column);
  uint32_t places[kAtOnce];
  StopLook look;
  for (uint64_t done = 0; done < count;) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(count - done, kAtOnce));
    if (!runs.Read(places, some)) return TooFew(kName, skipped + count);
    uint32_t largest = 0;
    for (size_t i = 0; i < some; ++i) largest = std::max(largest, places[i]);
    if (largest >= dictionary.count) {
      return absl::DataLossError(
          absl::StrCat("place ", largest, " in a dictionary of ", dictionary.count, " values"));
    }
    GatherSlots(slot, dictionary.slots, places, some, slots + done * slot);
    done += some;
    look.Did(some);
  }
  return absl::OkStatus();
}

// Stores whole numbers as slots of their size.
void StoreNumbers(const int64_t* numbers, size_t count, size_t slot, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    switch (slot) {
      case 1:
        StoreAs(to + i, static_cast<uint8_t>(numbers[i]));
        break;
      case 2:
        StoreAs(to + i * 2, static_cast<uint16_t>(numbers[i]));
        break;
      case 4:
        StoreAs(to + i * 4, static_cast<uint32_t>(numbers[i]));
        break;
      default:
        StoreAs(to + i * 8, numbers[i]);
        break;
    }
  }
}

absl::Status DecodeDeltas(const ParquetColumn& column, absl::Span<const uint8_t> bytes,
                          uint64_t skipped, uint64_t count, uint8_t* slots) {
  constexpr char kName[] = "DELTA_BINARY_PACKED";
  DeltaPacked deltas(bytes);
  if (!deltas.Begin() || !deltas.Skip(skipped)) return TooFew(kName, skipped + count);
  const size_t slot = ParquetSlotBytes(column);
  int64_t numbers[kAtOnce];
  StopLook look;
  for (uint64_t done = 0; done < count;) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(count - done, kAtOnce));
    if (!deltas.Read(numbers, some)) return TooFew(kName, skipped + count);
    StoreNumbers(numbers, some, slot, slots + done * slot);
    done += some;
    look.Did(some);
  }
  return absl::OkStatus();
}

// Lengths of all strings, and then their bytes.
absl::Status DecodeDeltaTexts(absl::Span<const uint8_t> bytes, uint64_t skipped, uint64_t count,
                              uint8_t* slots) {
  constexpr char kName[] = "DELTA_LENGTH_BYTE_ARRAY";
  DeltaPacked all(bytes);
  const bool is_sound = all.Begin() && all.num_values() >= skipped + count;
  StopLook look;
  int64_t lengths[kAtOnce];
  for (uint64_t left = is_sound ? all.num_values() : 0; left > 0;) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(left, kAtOnce));
    if (!all.Read(lengths, some)) return TooFew(kName, skipped + count);
    left -= some;
    look.Did(some);
  }
  if (!is_sound) return TooFew(kName, skipped + count);
  const uint8_t* at = all.end();
  auto left = static_cast<uint64_t>(bytes.data() + bytes.size() - at);
  DeltaPacked wanted(bytes);
  if (!wanted.Begin()) return TooFew(kName, skipped + count);
  for (uint64_t done = 0; done < skipped + count;) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(skipped + count - done, kAtOnce));
    if (!wanted.Read(lengths, some)) return TooFew(kName, skipped + count);
    for (size_t i = 0; i < some; ++i, ++done) {
      const int64_t size = lengths[i];
      if (size < 0 || static_cast<uint64_t>(size) > left) {
        return absl::DataLossError(
            absl::StrCat("a string of ", size, " bytes, where its page has ", left, " left"));
      }
      if (done >= skipped) {
        StoreAs(slots + (done - skipped) * sizeof(ParquetText),
                ParquetText{at, static_cast<uint64_t>(size)});
      }
      at += size;
      left -= static_cast<uint64_t>(size);
    }
    look.Did(some);
  }
  return absl::OkStatus();
}

// The first bytes of all values, then the second ones …
absl::Status DecodeStreams(const ParquetColumn& column, absl::Span<const uint8_t> bytes,
                           uint64_t skipped, uint64_t count, uint8_t* slots) {
  const size_t stored = column.value_bytes, slot = ParquetSlotBytes(column);
  const uint64_t values = bytes.size() / stored;
  if (bytes.size() % stored != 0 || skipped + count > values)
    return TooFew("BYTE_STREAM_SPLIT", skipped + count);
  InPieces(count, [&](size_t first, size_t some) {
    // The lowest bytes are all of a number that is shorter than it is stored.
    for (size_t byte = 0; byte < slot; ++byte) {
      const uint8_t* const from = bytes.data() + byte * values + skipped + first;
      uint8_t* const to = slots + first * slot + byte;
      for (size_t i = 0; i < some; ++i) to[i * slot] = from[i];
    }
  });
  return absl::OkStatus();
}

}  // namespace

size_t ParquetSlotBytes(const ParquetColumn& column) {
  return column.is_text() ? sizeof(ParquetText) : DTypeSize(column.dtype);
}

absl::Status DecodeParquetValues(const ParquetColumn& column, ParquetEncoding encoding,
                                 absl::Span<const uint8_t> bytes,
                                 const ParquetDictionary* dictionary, uint64_t skipped,
                                 uint64_t count, uint8_t* slots) {
  // Of nulls alone there may be no bytes.
  if (count == 0) return absl::OkStatus();
  const bool is_bool = column.type == ParquetType::kBoolean;
  const bool is_whole = column.type == ParquetType::kInt32 || column.type == ParquetType::kInt64;
  switch (encoding) {
    case ParquetEncoding::kPlain:
      if (is_bool) return DecodePlainBools(bytes, skipped, count, slots);
      return (column.is_text() ? DecodePlainTexts : DecodePlainNumbers)(column, bytes, skipped,
                                                                        count, slots);
    case ParquetEncoding::kPlainDictionary:
    case ParquetEncoding::kRleDictionary:
      if (is_bool) break;
      if (dictionary == nullptr)
        return absl::DataLossError("a page of places in a dictionary, where there is none");
      return DecodePlaces(column, bytes, *dictionary, skipped, count, slots);
    case ParquetEncoding::kRle:
      if (is_bool) return DecodeRunsOfBools(bytes, skipped, count, slots);
      break;
    case ParquetEncoding::kDeltaBinaryPacked:
      if (is_whole) return DecodeDeltas(column, bytes, skipped, count, slots);
      break;
    case ParquetEncoding::kDeltaLengthByteArray:
      if (column.type == ParquetType::kByteArray)
        return DecodeDeltaTexts(bytes, skipped, count, slots);
      break;
    case ParquetEncoding::kByteStreamSplit:
      if (!is_bool && !column.is_text()) return DecodeStreams(column, bytes, skipped, count, slots);
      break;
    default:
      break;
  }
  return NotRead(column, encoding);
}

absl::StatusOr<std::shared_ptr<const ParquetDictionary>> ReadParquetDictionary(
    const ParquetInput& input, const ParquetColumn& column, ParquetCodec codec,
    const ParquetPages& pages, Arena& scratch) {
  const ParquetPage& page = *pages.dictionary;
  const auto wrong = [&](const absl::Status& status) {
    return AtParquetPage(status, *input.file, page);
  };
  if (column.type == ParquetType::kBoolean ||
      (page.encoding != ParquetEncoding::kPlain &&
       page.encoding != ParquetEncoding::kPlainDictionary)) {
    return wrong(NotRead(column, page.encoding));
  }
  const ScratchScope scope(scratch);
  const bool is_decoded = column.is_text() || column.value_bytes != ParquetSlotBytes(column);
  absl::StatusOr<ParquetBody> body =
      ReadParquetBody(input, codec, page, /*has_levels=*/false,
                      /*stays=*/column.is_text() || !is_decoded, scratch);
  if (!body.ok()) return wrong(body.status());
  // Before memory is taken for them.
  const uint64_t least = column.value_bytes > 0 ? column.value_bytes : sizeof(uint32_t);
  if (page.values > body->values.size() / least) return wrong(TooFew("PLAIN", page.values));
  auto dictionary = std::make_shared<ParquetDictionary>();
  dictionary->count = page.values;
  dictionary->body = std::move(body->memory);
  dictionary->slots = body->values.data();
  if (!is_decoded) return dictionary;
  dictionary->decoded = AllocateArrowMemory(page.values * ParquetSlotBytes(column));
  dictionary->slots = dictionary->decoded.block.get();
  absl::Status status =
      DecodeParquetValues(column, ParquetEncoding::kPlain, body->values, nullptr, /*skipped=*/0,
                          page.values, dictionary->decoded.block.get());
  if (!status.ok()) return wrong(status);
  return dictionary;
}

}  // namespace penstock
