#include "io/record/named_access.h"

#include "absl/strings/str_cat.h"
#include "io/record/json_line_format.h"
#include "io/record/line_access.h"
#include "io/record/tar_format.h"
#include "io/record/tfrecord_access.h"

namespace penstock {
namespace {

absl::Span<const RecordAccess* const> All() {
  static const RecordAccess* const all[] = {&TfrecordAccess(), &LineAccess(), TarFormat()->access(),
                                            JsonLineFormat(/*any_bytes=*/false)->access(),
                                            JsonLineFormat(/*any_bytes=*/true)->access()};
  return all;
}

}  // namespace

const RecordAccess* AccessNamed(absl::string_view index_key) {
  for (const RecordAccess* access : All()) {
    if (access->IndexKey() == index_key) return access;
  }
  return nullptr;
}

std::string NamesOfAccesses() {
  std::string names;
  for (const RecordAccess* access : All())
    absl::StrAppend(&names, names.empty() ? "" : ", ", access->IndexKey());
  return names;
}

}  // namespace penstock
