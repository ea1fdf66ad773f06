// What a cell holds of a sample that was cut out of memory: its members without their heads, which
// have been read by then.
//
//   mark  members  bytes of key  bytes of each extension, data  texts             data
//   ┌────┬────────┬─────────────┬─────────────┬─────────────┬─┬─────┬──────┬─────┬──────┬────┐
//   │ 8  │ 4      │ 4           │ 4           │ 4           │…│ key │ ext. │ 0 … │ data │ …  │
//   └────┴────────┴─────────────┴─────────────┴─────────────┴─┴─────┴──────┴─────┴──────┴────┘
//                                                                             64 and on
//
// Numbers are little-endian. The mark begins with a zero byte, as no tar file's first path does.
//
// Threads:  any; no state.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/record/tar_format.h"

namespace penstock {

struct TarCellMember {
  uint64_t offset = 0;  // of its data in the file; the cell does not hold it
  uint32_t extension_bytes = 0;
  uint32_t data_bytes = 0;
};

// Writes all in front of the data. `texts`: the key and, behind it, all extensions.
void WriteTarCellHead(uint32_t key_bytes, absl::string_view texts,
                      absl::Span<const TarCellMember> members, std::string* head);

// Whether the bytes are such a cell's, and no sample's as it stands in a file.
bool IsTarCell(absl::Span<const uint8_t> bytes);
// As ForEachTarMember. REQUIRES: IsTarCell(). The bytes may be anything otherwise; those behind the
// last member's data are not looked at.
absl::Status ForEachTarCellMember(absl::Span<const uint8_t> bytes, std::string* key,
                                  absl::FunctionRef<absl::Status(const TarMember&)> take);

}  // namespace penstock
