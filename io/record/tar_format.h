// Samples of tar files, as WebDataset lays them out: members that follow each other and have one
// key (SplitTarPath) are one record, whose bytes are those members' heads and data as they stand in
// the file. Members without a key, of other types or of the archive's own (`__meta__`) are part of
// no record, but may lie inside of one's bytes. A record of a plain file that is long is located
// only, by its heads.
//
// Damage: a head whose checksum does not hold. Reading goes on at the next sound one. The damaged
// one's path field tells which of the samples around it has lost a member, and that one is left
// out; both are, where it tells neither. What the damage covers is then what was left out.
//
// Threads:  as RecordFormat: constant, and safe from any thread; functions without state.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/record/record_access.h"
#include "io/record/record_format.h"

namespace penstock {

const std::shared_ptr<const RecordFormat>& TarFormat();

// A member of a sample.
struct TarMember {
  absl::string_view extension;  // as it is in the path
  absl::Span<const uint8_t> data;
};

// Calls `take` with each member of the sample that `bytes` are, as it stands in the file or as a
// cell holds it (tar_cell.h), until one fails; `*key` becomes the sample's. DataLoss where they are
// no sample.
absl::Status ForEachTarMember(absl::Span<const uint8_t> bytes, std::string* key,
                              absl::FunctionRef<absl::Status(const TarMember&)> take);

}  // namespace penstock
