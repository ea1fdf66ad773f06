#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/order/pack_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/packed_documents.h"

namespace penstock {
namespace {

constexpr int64_t kMaxSequence = int64_t{1} << 24;
constexpr int64_t kMaxWindow = int64_t{1} << 20;
constexpr int64_t kDefaultWindow = 10'000;

absl::Status CheckRange(const char* field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected 1 to ", most, ", found ", value));
}

absl::StatusOr<PackRules> ReadRules(const v1::Pack& options) {
  PackRules rules;
  const std::string& method = options.method();
  if (method == "best_fit") {
    rules.method = PackMethod::kBestFit;
  } else if (method == "first_fit_decreasing") {
    rules.method = PackMethod::kFirstFitDecreasing;
  } else if (!method.empty() && method != "concat") {
    return absl::InvalidArgumentError(absl::StrCat(
        "method: expected \"concat\", \"best_fit\" or \"first_fit_decreasing\", found \"", method,
        "\"", DidYouMean(method, {"concat", "best_fit", "first_fit_decreasing"})));
  }
  if (rules.method != PackMethod::kConcat) {
    const char* const only_concat = options.has_split_documents() ? "split_documents"
                                    : options.drop_remainder()    ? "drop_remainder"
                                                                  : nullptr;
    if (only_concat != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          only_concat, ": expected it with method \"concat\", found \"", method, "\""));
    }
  }
  const std::string& long_documents = options.long_documents();
  if (!long_documents.empty() && long_documents != "split" && long_documents != "truncate" &&
      long_documents != "error") {
    return absl::InvalidArgumentError(
        absl::StrCat("long_documents: expected \"split\", \"truncate\" or \"error\", found \"",
                     long_documents, "\""));
  }
  absl::Status status = CheckRange("sequence_length", options.sequence_length(), kMaxSequence);
  if (status.ok() && options.has_window())
    status = CheckRange("window", options.window(), kMaxWindow);
  if (status.ok() && options.has_max_documents())
    status = CheckRange("max_documents", options.max_documents(), kMaxWindow);
  if (!status.ok()) return status;
  rules.sequence_length = static_cast<uint32_t>(options.sequence_length());
  rules.split_documents = !options.has_split_documents() || options.split_documents();
  rules.truncate = long_documents == "truncate";
  if (options.has_max_documents())
    rules.max_documents = static_cast<uint32_t>(options.max_documents());
  rules.drop_remainder = options.drop_remainder();
  return rules;
}

absl::StatusOr<size_t> FindFeature(const char* field, const std::string& name,
                                   const Signature& documents) {
  std::vector<std::string> names;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].name == name) return i;
    names.push_back(documents[i].name);
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected one of ", ListNames(names),
                                                 ", found \"", name, "\"",
                                                 DidYouMean(name, names)));
}

// Whether it has one value for each token.
bool IsList(const TensorType& type) {
  return !type.packed() && type.form != RowForm::kSparse && type.shape.size() == 1;
}

absl::Status CheckId(const char* field, int64_t id, const Feature& tokens) {
  const bool fits =
      tokens.type.dtype == DType::kInt64 ||
      (id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max());
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected a number of the type of \"",
                                                 tokens.name, "\", int32, found ", id));
}

absl::Status ReadMask(const v1::Pack& options, const Signature& documents, PackForm* form) {
  if (!options.mask().empty() && !options.answer_begin().empty()) {
    return absl::InvalidArgumentError("mask, answer_begin: expected one of the two, found both");
  }
  const bool by_feature = !options.mask().empty() || !options.answer_begin().empty();
  if (!options.loss_mask()) {
    if (!by_feature) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(options.mask().empty() ? "answer_begin" : "mask",
                                                   ": expected it with loss_mask, found none"));
  }
  form->mask = LossMask::kTokens;
  if (!by_feature) return absl::OkStatus();
  const bool is_answer = options.mask().empty();
  const char* const field = is_answer ? "answer_begin" : "mask";
  absl::StatusOr<size_t> found =
      FindFeature(field, is_answer ? options.answer_begin() : options.mask(), documents);
  if (!found.ok()) return found.status();
  form->mask_by = *found;
  form->mask = is_answer ? LossMask::kAnswer : LossMask::kFeature;
  const TensorType& type = documents[*found].type;
  const bool is_integer = type.dtype == DType::kInt32 || type.dtype == DType::kInt64;
  if (is_answer && !(is_integer && type.shape.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("answer_begin: expected an int32 or int64 (), found ", TypeToString(type)));
  }
  if (!is_answer && !(IsList(type) && type.dtype != DType::kString)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mask: expected numbers or bools (?), found ", TypeToString(type)));
  }
  return absl::OkStatus();
}

absl::StatusOr<PackForm> ReadForm(const v1::Pack& options, const PackRules& rules,
                                  const Signature& documents) {
  PackForm form;
  form.sequence_length = rules.sequence_length;
  if (!options.tokens().empty()) {
    absl::StatusOr<size_t> found = FindFeature("tokens", options.tokens(), documents);
    if (!found.ok()) return found.status();
    form.tokens = *found;
  } else if (documents.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens: expected the name of a feature, since documents have ",
                     documents.size(), ": ", SignatureToString(documents)));
  }
  const Feature& tokens = documents[form.tokens];
  const bool is_integer = tokens.type.dtype == DType::kInt32 || tokens.type.dtype == DType::kInt64;
  if (!is_integer || !IsList(tokens.type)) {
    return absl::InvalidArgumentError(absl::StrCat("tokens: expected \"", tokens.name,
                                                   "\" as int32 or int64 (?,), found ",
                                                   TypeToString(tokens.type)));
  }
  form.pad_id = options.pad_id();
  if (options.has_end_id()) form.end_id = options.end_id();
  absl::Status status = CheckId("pad_id", form.pad_id, tokens);
  if (status.ok()) status = CheckId("end_id", form.end_id.value_or(0), tokens);
  if (status.ok()) status = ReadMask(options, documents, &form);
  if (!status.ok()) return status;
  form.segment_ids = options.segment_ids();
  form.positions = options.positions();
  form.cu_seqlens = options.cu_seqlens();
  if (options.has_max_documents()) form.max_documents = rules.max_documents;
  form.refuses_long = options.long_documents() == "error";
  for (const char* const name : {"segment_ids", "positions", "loss_mask", "cu_seqlens"}) {
    if (tokens.name != name) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tokens: expected another name than that of a feature that pack makes, found \"", name,
        "\": rename it in a map"));
  }
  return form;
}

const OpRegistration<v1::Pack> kPack(
    "pack", {}, [](const v1::Pack& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<PackRules> rules = ReadRules(options);
      if (!rules.ok()) return rules.status();
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      const Signature documents = plan.signature();
      absl::StatusOr<PackForm> form = ReadForm(options, *rules, documents);
      if (!form.ok()) return form.status();
      plan.EndSectionWith(MeasureDocuments(documents, *form), /*hidden=*/1);
      const Signature packed = PackedSignature(documents, *form);
      PackWindows windows;
      windows.rules = *rules;
      windows.window = options.has_window() ? options.window() : kDefaultWindow;
      windows.stage = plan.stage_index();
      plan.BeginLoaded(LoadPacked({documents, *form, windows, plan.ignored()}, *plan.cells()),
                       DictStructure(packed));
      plan.ChangePaths();
      plan.AddOrder(
          [windows](FrontContext& context, OrderInputs inputs) {
            return PackOrder(context, windows, DocumentsInCells(std::move(inputs[0])));
          },
          CursorClass::kReplayData);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
