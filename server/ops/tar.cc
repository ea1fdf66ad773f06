#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/record/tar_format.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

constexpr char kKey[] = "__key__";
constexpr char kUrl[] = "__url__";

struct TarColumn {
  std::vector<std::string> extensions;  // in lower case; the first one that a sample has counts
  std::optional<std::string> missing;   // the value for a sample without any
  bool is_key = false;
  bool is_url = false;
};

RowBytes CopyOf(absl::string_view text, Arena& arena) {
  uint8_t* const copy = arena.Allocate(text.size());
  std::copy(text.begin(), text.end(), copy);
  return {copy, text.size()};
}

// Whether a member's extension is this one, in whatever case: mostly it is in the same, or another
// one by its first letter.
bool IsExtension(const std::string& wanted, absl::string_view found) {
  constexpr unsigned kCase = 0x20;
  if (found.size() != wanted.size()) return false;
  if (wanted.empty()) return true;
  if (((found[0] ^ wanted[0]) & ~kCase) != 0) return false;
  return found == wanted || absl::EqualsIgnoreCase(wanted, found);
}

// Makes features of a sample's members. Members are parts of the sample's bytes, which are not
// copied.
class ParseTarSample final : public WorkOp {
 public:
  ParseTarSample(std::vector<TarColumn> columns, Signature output)
      : columns_(std::move(columns)), output_(std::move(output)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    for (Column& column : out) {
      column = Column{};
      column.rows = arena.AllocateArray<RowBytes>(rows);
    }
    std::vector<size_t> taken(columns_.size());
    std::string key;
    for (int row = 0; row < rows; ++row) {
      std::fill(taken.begin(), taken.end(), kNone);
      absl::Status status =
          ForEachTarMember({in[0].row(row), in[0].row_size(row)}, &key,
                           [&](const TarMember& member) { return Take(member, row, &taken, out); });
      for (size_t i = 0; status.ok() && i < columns_.size(); ++i) {
        if (columns_[i].is_key) {
          SetRow(out[i], row, CopyOf(key, arena));
        } else if (columns_[i].is_url) {
          SetRow(out[i], row, {in[1].row(row), in[1].row_size(row)});
        } else if (taken[i] == kNone) {
          status = PutMissing(columns_[i], key, row, out[i]);
        }
      }
      if (!status.ok()) return {std::move(status), row};
    }
    return {};
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  static void SetRow(Column& column, int row, RowBytes bytes) {
    const_cast<RowBytes*>(column.rows)[row] = bytes;
  }

  // `taken`: which of each column's extensions its value is of.
  absl::Status Take(const TarMember& member, int row, std::vector<size_t>* taken,
                    absl::Span<Column> out) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::vector<std::string>& extensions = columns_[i].extensions;
      for (size_t rank = 0; rank < extensions.size() && rank <= (*taken)[i]; ++rank) {
        if (!IsExtension(extensions[rank], member.extension)) continue;
        if (rank == (*taken)[i]) {
          return absl::DataLossError(
              absl::StrCat("the sample has two members of the extension ", extensions[rank]));
        }
        (*taken)[i] = rank;
        SetRow(out[i], row, {member.data.data(), member.data.size()});
        break;
      }
    }
    return absl::OkStatus();
  }

  static absl::Status PutMissing(const TarColumn& column, const std::string& key, int row,
                                 Column& out) {
    if (column.missing) {
      SetRow(out, row,
             {reinterpret_cast<const uint8_t*>(column.missing->data()), column.missing->size()});
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("the sample ", key, " has no member of the extension ",
                                            absl::StrJoin(column.extensions, " or "),
                                            "; give a default_value if some have none"));
  }

  const std::vector<TarColumn> columns_;
  const Signature output_;
};

absl::Status ReadColumns(const v1::Tar& options, std::vector<TarColumn>* columns,
                         Signature* output) {
  if (options.feature().empty())
    return absl::InvalidArgumentError("feature: expected at least one, found none");
  for (int i = 0; i < options.feature_size(); ++i) {
    const v1::TarFeature& feature = options.feature(i);
    const std::string where = absl::StrCat("feature ", i);
    if (feature.extension().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": extension: expected at least one, found none"));
    }
    TarColumn column;
    for (const std::string& extension : feature.extension()) {
      column.is_key = column.is_key || extension == kKey;
      column.is_url = column.is_url || extension == kUrl;
      if (absl::StrContains(extension, '/') || absl::StartsWith(extension, ".")) {
        return absl::InvalidArgumentError(absl::StrCat(
            where,
            ": extension: expected what is behind the first dot of a member's name, such as "
            "\"jpg\", found \"",
            extension, "\""));
      }
      column.extensions.push_back(absl::AsciiStrToLower(extension));
    }
    if ((column.is_key || column.is_url) &&
        (column.extensions.size() > 1 || feature.has_default_value())) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": expected ", column.is_key ? kKey : kUrl, " alone, which every sample has"));
    }
    if (feature.has_default_value()) column.missing = feature.default_value();
    const std::string name = feature.name().empty() ? feature.extension(0) : feature.name();
    for (const Feature& other : *output) {
      if (other.name == name) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ": expected another name than those before it, found \"", name, "\" again"));
      }
    }
    output->push_back({name, {DType::kString, {}}});
    columns->push_back(std::move(column));
  }
  return absl::OkStatus();
}

const OpRegistration<v1::Tar> kTar(
    "tar", {.place = OpPlace::kSource, .files = v1::Tar::kFilesFieldNumber},
    [](const v1::Tar& options, PlanBuilder& plan) -> absl::Status {
      std::vector<TarColumn> columns;
      Signature output;
      absl::Status status = ReadColumns(options, &columns, &output);
      if (!status.ok()) return status;
      FileRecordsOptions records;
      records.format.stream.format = TarFormat();
      records.format.gives_path =
          std::any_of(columns.begin(), columns.end(), [](const TarColumn& c) { return c.is_url; });
      absl::StatusOr<Compression> compression = CompressionFromName(options.compression());
      if (!compression.ok()) return compression.status();
      records.format.compression = *compression;
      status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                         options.has_block_length(), options.block_length(), &records);
      if (status.ok()) status = ReadDamagePolicy(options.damage(), &records);
      if (status.ok()) status = PlanFileRecords(options.files(), records, plan);
      if (!status.ok()) return status;
      plan.AddWork(std::make_unique<ParseTarSample>(std::move(columns), std::move(output)));
      plan.MarkStageAsOrder();
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
