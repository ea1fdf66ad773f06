#include "io/parquet/parquet_column.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "io/parquet/parquet_levels.h"

namespace penstock {
namespace {

// Moves values that lie side by side to the rows that are there, and fills the others.
template <size_t kSlot>
void Spread(const ParquetValidity& validity, uint64_t row, uint64_t count, uint64_t values,
            const uint8_t* fill, uint8_t* slots) {
  StopLook look;
  // From the end on: what is there is moved before it is written over.
  for (uint64_t i = count; i > 0 && values < i; --i) {
    uint8_t* const to = slots + (i - 1) * kSlot;
    if (validity.IsThere(row + i - 1)) {
      std::memcpy(to, slots + --values * kSlot, kSlot);
    } else {
      std::memcpy(to, fill, kSlot);
    }
    look.Did(1);
  }
}

void SpreadSlots(size_t slot, const ParquetValidity& validity, uint64_t row, uint64_t count,
                 uint64_t values, const uint8_t* fill, uint8_t* slots) {
  switch (slot) {
    case 1:
      return Spread<1>(validity, row, count, values, fill, slots);
    case 2:
      return Spread<2>(validity, row, count, values, fill, slots);
    case 4:
      return Spread<4>(validity, row, count, values, fill, slots);
    case 8:
      return Spread<8>(validity, row, count, values, fill, slots);
    default:
      return Spread<sizeof(ParquetText)>(validity, row, count, values, fill, slots);
  }
}

bool IsOfDictionary(ParquetEncoding encoding) {
  return encoding == ParquetEncoding::kPlainDictionary ||
         encoding == ParquetEncoding::kRleDictionary;
}

}  // namespace

uint64_t ParquetValues::bytes() const {
  uint64_t bytes = slots.bytes + validity.bytes;
  for (const ArrowMemory& body : bodies) bytes += body.bytes;
  return bytes;
}

absl::StatusOr<ParquetValues> ReadParquetValues(const ParquetInput& input,
                                                const ParquetColumn& column, ParquetCodec codec,
                                                const ParquetPages& pages,
                                                std::shared_ptr<const ParquetDictionary> dictionary,
                                                uint64_t first, uint64_t count,
                                                absl::string_view fill, Arena& scratch) {
  const size_t slot = ParquetSlotBytes(column);
  if (count > kMaxParquetSlotBytes / slot) {
    return absl::InvalidArgumentError(absl::StrCat(count, " rows of ", slot,
                                                   " bytes at once; expected at most ",
                                                   kMaxParquetSlotBytes, " bytes"));
  }
  uint8_t absent[sizeof(ParquetText)] = {};
  if (column.is_text()) {
    const ParquetText text{reinterpret_cast<const uint8_t*>(fill.data()), fill.size()};
    std::memcpy(absent, &text, sizeof(text));
  } else if (!fill.empty()) {
    std::memcpy(absent, fill.data(), std::min(slot, fill.size()));
  }
  ParquetValues found;
  found.rows = count;
  found.slots = AllocateArrowMemory(count * slot);
  ParquetValidity validity(count);
  auto page = std::upper_bound(
      pages.data.begin(), pages.data.end(), first,
      [](uint64_t row, const ParquetPage& one) { return row < one.first_row + one.values; });
  for (uint64_t done = 0; done < count; ++page) {
    CheckStop();
    const auto wrong = [&](const absl::Status& status) {
      return AtParquetPage(status, *input.file, *page);
    };
    const ScratchScope scope(scratch);
    const bool stays = column.is_text() && !IsOfDictionary(page->encoding);
    absl::StatusOr<ParquetBody> body =
        ReadParquetBody(input, codec, *page, column.is_optional, stays, scratch);
    if (!body.ok()) return wrong(body.status());
    const uint64_t in_page = first + done - page->first_row;
    const uint64_t some = std::min(count - done, page->values - in_page);
    uint64_t skipped = in_page, values = some;
    if (column.is_optional) {
      absl::Status status = validity.Take(body->levels, in_page, some, &skipped, &values);
      if (!status.ok()) return wrong(status);
    } else {
      validity.TakeAll(some);
    }
    uint8_t* const to = found.slots.block.get() + done * slot;
    absl::Status status = DecodeParquetValues(column, page->encoding, body->values,
                                              dictionary.get(), skipped, values, to);
    if (!status.ok()) return wrong(status);
    if (values < some) SpreadSlots(slot, validity, done, some, values, absent, to);
    if (body->memory.block != nullptr) found.bodies.push_back(std::move(body->memory));
    done += some;
  }
  found.nulls = validity.nulls();
  found.validity = std::move(validity.bits());
  if (column.is_text()) found.dictionary = std::move(dictionary);
  return found;
}

}  // namespace penstock
