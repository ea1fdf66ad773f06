#include "server/expr/program.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/expr/compile.h"
#include "server/expr/lowering.h"
#include "server/expr/typer.h"

namespace penstock::expr {
namespace {

// Temporaries of one group of rows stay in L2.
constexpr size_t kGroupBytes = 256 << 10;

class StepProgram : public Program {
 public:
  StepProgram(Signature output, Steps steps)
      : output_(std::move(output)), steps_(std::move(steps)) {
    for (const Feature& feature : output_) output_bytes_.push_back(*NumBytes(feature.type));
    size_t temporary_bytes = 0;
    for (const size_t bytes : steps_.temporary_bytes) temporary_bytes += bytes;
    if (steps_.row_by_row) {
      group_rows_ = 1;
    } else if (temporary_bytes > 0) {
      group_rows_ = static_cast<int>(std::clamp<size_t>(kGroupBytes / temporary_bytes, 1, 1 << 20));
    }
  }

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<uint8_t* const> out,
                Arena& arena) const override {
    const size_t num_columns = steps_.num_inputs + steps_.num_outputs +
                               steps_.temporary_bytes.size() + steps_.constants.size();
    absl::InlinedVector<Column, 16> columns(num_columns);
    absl::InlinedVector<RowShape*, 16> shapes(num_columns, nullptr);
    Frame frame;
    // Constants lie in front: column -1 is the first of them.
    const size_t num_constants = steps_.constants.size();
    frame.columns = columns.data() + num_constants;
    frame.shapes = shapes.data() + num_constants;
    frame.arena = &arena;
    for (size_t i = 0; i < num_constants; ++i) {
      columns[num_constants - 1 - i] = {const_cast<uint8_t*>(steps_.constants[i].data()), 0,
                                        nullptr};
    }
    for (int first = 0; first < rows; first += group_rows_) {
      frame.rows = std::min(group_rows_, rows - first);
      frame.more_rows = first + frame.rows < rows;
      // A group's temporaries take the place of the one before, while they are warm.
      const Arena::Mark mark = arena.GetMark();
      size_t column = num_constants;
      for (const Column& input : in) {
        columns[column] = input;
        if (input.rows != nullptr) {
          columns[column].rows += first;
        } else {
          columns[column].data += first * input.row_bytes;
        }
        ++column;
      }
      for (size_t i = 0; i < out.size(); ++i) {
        columns[column++] = {out[i] + first * output_bytes_[i], output_bytes_[i], nullptr};
      }
      for (const size_t bytes : steps_.temporary_bytes) {
        columns[column++] = {bytes == 0 ? nullptr : arena.Allocate(bytes * frame.rows), bytes,
                             nullptr};
      }
      for (const auto& step : steps_.steps) {
        RowStatus status = step->Run(frame);
        if (!status.ok()) {
          status.row += first;
          return status;
        }
      }
      if (frame.more_rows) arena.Rewind(mark);
    }
    return {};
  }

  std::string DebugString() const override {
    std::string text;
    for (const auto& step : steps_.steps) absl::StrAppend(&text, step->DebugString(), "\n");
    return text;
  }

 private:
  const Signature output_;
  const Steps steps_;
  std::vector<size_t> output_bytes_;
  int group_rows_ = 1 << 20;
};

// "stage "map", column 7 of "x = y + 1": message".
absl::Status InExpression(const MapSource& map, const std::string& text,
                          const absl::Status& status) {
  const std::string message(status.message());
  const size_t colon = message.find(": ");
  if (!absl::StartsWith(message, "column ") || colon == std::string::npos) {
    return absl::Status(status.code(),
                        absl::StrCat("stage \"", map.stage, "\", \"", text, "\": ", message));
  }
  return absl::Status(
      status.code(), absl::StrCat("stage \"", map.stage, "\", ", message.substr(0, colon), " of \"",
                                  text, "\"", message.substr(colon)));
}

absl::StatusOr<std::vector<NamedValue>> TypeMap(Graph& graph, const MapSource& map,
                                                std::vector<NamedValue> features) {
  // A value is behind a batch, or not, for all of a map.
  for (NamedValue& feature : features) feature.value.batch_axis = map.batched;
  Typer typer(graph, features, map.batched);
  const auto in_stage = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("stage \"", map.stage, "\": ", std::string(status.message())));
  };
  for (const NamedConstant& constant : map.constants) {
    if (auto status = typer.AddConstant(constant); !status.ok()) return in_stage(status);
  }
  for (const std::string& text : map.lets) {
    if (auto status = typer.AddLet(text); !status.ok()) return InExpression(map, text, status);
  }
  if (map.outs.empty())
    return in_stage(absl::InvalidArgumentError("expected at least one out, found none"));
  std::vector<NamedValue> outputs;
  for (const std::string& text : map.outs) {
    auto output = typer.Output(text);
    if (!output.ok()) return InExpression(map, text, output.status());
    if (map.batched && !output->value.batch_axis) {
      return InExpression(
          map, text,
          ErrorAt(
              1, absl::StrCat("\"", output->name,
                              "\" is the same for all rows of a batch: compute it before batch, or "
                              "from a feature")));
    }
    outputs.push_back(std::move(*output));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> Compile(const Signature& inputs,
                                                 absl::Span<const MapSource> maps) {
  return CompileFor(inputs, maps, Lanes::kVector);
}

absl::StatusOr<std::unique_ptr<Program>> CompileFor(const Signature& inputs,
                                                    absl::Span<const MapSource> maps, Lanes lanes) {
  Graph graph;
  std::vector<NamedValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto node = graph.Input(static_cast<int>(i), inputs[i].type);
    if (!node.ok()) return node.status();
    values.push_back({inputs[i].name, {*node, false, {}}});
  }
  for (const MapSource& map : maps) {
    auto outputs = TypeMap(graph, map, std::move(values));
    if (!outputs.ok()) return outputs.status();
    values = std::move(*outputs);
  }
  Signature signature;
  std::vector<const Node*> nodes;
  for (const NamedValue& value : values) {
    const TensorType& type = value.value.node->type;
    if (!NumBytes(type) || *NumBytes(type) > kMaxRowElements * 8) {
      return absl::InvalidArgumentError(absl::StrCat(
          "stage \"", maps.empty() ? "map" : maps.back().stage, "\": output \"", value.name,
          "\": expected numbers of known sizes, found ", TypeToString(type)));
    }
    signature.push_back({value.name, type});
    nodes.push_back(value.value.node);
  }
  auto steps = Lowering(graph, inputs.size(), lanes).Lower(nodes);
  if (!steps.ok()) return steps.status();
  return std::make_unique<StepProgram>(std::move(signature), std::move(*steps));
}

}  // namespace penstock::expr
