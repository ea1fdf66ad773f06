#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/order/grouped_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/keyed_elements.h"

namespace penstock {
namespace {

// The window size of a key, by an expression.
class SizeOfKey {
 public:
  SizeOfKey(std::string stage, std::unique_ptr<expr::Program> program)
      : stage_(std::move(stage)), program_(std::move(program)) {}

  absl::StatusOr<uint64_t> operator()(int64_t key) const {
    Arena arena;
    Column column;
    column.data = arena.Allocate(sizeof(key));
    column.row_bytes = sizeof(key);
    std::memcpy(column.data, &key, sizeof(key));
    int64_t size = 0;
    uint8_t* const to[] = {arena.Allocate(sizeof(size))};
    const RowStatus status = program_->Run(1, absl::MakeConstSpan(&column, 1), to, arena);
    if (!status.ok()) return status.status;
    std::memcpy(&size, to[0], sizeof(size));
    if (size >= 1) return static_cast<uint64_t>(size);
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage_,
                                                   ": expected a window size of at least 1, found ",
                                                   size, " (key ", key, ")"));
  }

 private:
  const std::string stage_;
  const std::unique_ptr<expr::Program> program_;
};

absl::Status ReadWindowSize(const v1::GroupByWindow& options, const expr::MapSource& source,
                            const std::string& stage, Grouping* grouping) {
  if (options.has_window_size() != options.window_size_of_key().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one of window_size and window_size_of_key, found ",
                     options.has_window_size() ? "both" : "none"));
  }
  if (options.has_window_size()) {
    if (options.window_size() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("window_size: expected at least 1, found ", options.window_size()));
    }
    grouping->window_size = [size = static_cast<uint64_t>(options.window_size())](int64_t) {
      return absl::StatusOr<uint64_t>(size);
    };
    return absl::OkStatus();
  }
  expr::MapSource of_key;
  of_key.stage = source.stage;
  of_key.constants = source.constants;
  absl::StatusOr<std::unique_ptr<expr::Program>> program =
      CompileInteger({{"key", {DType::kInt64, {}}}}, std::move(of_key), "window_size_of_key",
                     options.window_size_of_key());
  if (!program.ok()) return program.status();
  grouping->window_size = [size = std::make_shared<const SizeOfKey>(stage, *std::move(program))](
                              int64_t key) { return (*size)(key); };
  return absl::OkStatus();
}

const OpRegistration<v1::GroupByWindow> kGroupByWindow(
    "group_by_window",
    {.nests_elements = true,
     .expressions = {v1::GroupByWindow::kLetFieldNumber, v1::GroupByWindow::kKeyFieldNumber,
                     v1::GroupByWindow::kWindowSizeOfKeyFieldNumber}},
    [](const v1::GroupByWindow& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      absl::StatusOr<expr::MapSource> source =
          ReadMapSource(options.constant(), options.let(), plan);
      if (!source.ok()) return source.status();
      Grouping grouping;
      grouping.key_of = [](int64_t number) { return number; };
      absl::Status status = ReadWindowSize(options, *source, plan.stage(), &grouping);
      if (status.ok()) status = AddKey(*source, "key", options.key(), plan);
      if (!status.ok()) return status;
      return plan.SetWindows(
          options.input(),
          [&](const OrderNode& nested, uint32_t) {
            return [&nested, grouping](FrontContext& context, OrderInputs inputs) {
              return DatasetsOfGroups(context, nested, grouping, std::move(inputs[0]));
            };
          },
          PlanBuilder::WindowKind::kApart, CursorClass::kReplayData);
    });

}  // namespace
}  // namespace penstock
