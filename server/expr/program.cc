#include "server/expr/program.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/row_shape.h"
#include "base/step_times.h"
#include "base/stop_flag.h"
#include "base/tick_clock.h"
#include "server/expr/arguments.h"
#include "server/expr/compile.h"
#include "server/expr/lowering.h"
#include "server/expr/typer.h"
#include "server/kernels/lane_program.h"

namespace penstock::expr {
namespace {

// Temporaries of one group of rows stay in L1.
constexpr size_t kGroupBytes = 24 << 10;

class StepProgram : public Program {
 public:
  StepProgram(Signature output, Steps steps, bool draws)
      : output_(std::move(output)), steps_(std::move(steps)), draws_(draws) {
    for (const Feature& feature : output_) {
      const std::optional<int64_t> bytes = NumBytes(feature.type);
      output_bytes_.push_back(bytes.value_or(kElsewhere));
      any_elsewhere_ = any_elsewhere_ || !bytes;
    }
    size_t temporary_bytes = 0;
    for (const size_t bytes : steps_.temporary_bytes) temporary_bytes += bytes;
    if (steps_.row_by_row) {
      // A single step finds the lowest failing row by itself.
      if (steps_.steps.size() > 1) group_rows_ = 1;
    } else if (temporary_bytes > 0) {
      group_rows_ = static_cast<int>(std::clamp<size_t>(kGroupBytes / temporary_bytes, 1, 1 << 20));
    }
  }

  const Signature& output() const override { return output_; }
  bool draws() const override { return draws_; }

  using Program::Run;
  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out, Arena& arena,
                bool past_caches) const override {
    if (in.size() != steps_.num_inputs) std::abort();  // a caller that forgot the identities
    absl::InlinedVector<Scattered, 4> scattered;
    for (size_t i = 0; i < out.size() && any_elsewhere_; ++i) {
      if (output_bytes_[i] != kElsewhere) continue;
      const size_t axes = output_[i].type.shape.size();
      // Packed rows, which are handed on as they are, tell their sizes themselves.
      const bool sized = !output_[i].type.packed() && HasUnknownAxes(output_[i].type.shape);
      scattered.push_back({i, arena.AllocateArray<RowBytes>(rows),
                           sized ? arena.AllocateArray<int64_t>(axes * rows) : nullptr, axes});
      out[i] = {nullptr, 0, scattered.back().rows, scattered.back().dims};
    }
    const size_t num_columns = steps_.num_inputs + steps_.num_outputs +
                               steps_.temporary_bytes.size() + steps_.constants.size();
    absl::InlinedVector<Column, 16> columns(num_columns);
    Frame frame;
    // Constants lie in front: column -1 is the first of them.
    const size_t num_constants = steps_.constants.size();
    frame.columns = columns.data() + num_constants;
    frame.arena = &arena;
    frame.past_caches = past_caches;
    for (size_t i = 0; i < num_constants; ++i) {
      columns[num_constants - 1 - i] = {const_cast<uint8_t*>(steps_.constants[i].data()), 0,
                                        nullptr};
    }
    StepTimes* const times = StepTimes::OfThisThread();
    absl::InlinedVector<uint64_t, 8> ticks(times == nullptr ? 0 : steps_.steps.size());
    for (int first = 0; first < rows; first += group_rows_) {
      frame.rows = std::min(group_rows_, rows - first);
      frame.more_rows = first + frame.rows < rows;
      // A group's temporaries take the place of the one before, while they are warm.
      const Arena::Mark mark = arena.GetMark();
      size_t column = num_constants;
      for (size_t i = 0; i < in.size(); ++i, ++column) {
        const Column& input = in[i];
        columns[column] = input;
        if (input.rows != nullptr) {
          columns[column].rows += first;
        } else {
          columns[column].data += first * input.row_bytes;
        }
        if (input.dims != nullptr) columns[column].dims += first * steps_.input_axes[i];
      }
      for (size_t i = 0; i < out.size(); ++i) {
        columns[column++] =
            output_bytes_[i] == kElsewhere
                ? Column{}
                : Column{out[i].data + first * output_bytes_[i], output_bytes_[i], nullptr};
      }
      for (const size_t bytes : steps_.temporary_bytes) {
        columns[column++] = {bytes == 0 ? nullptr : arena.Allocate(bytes * frame.rows), bytes,
                             nullptr};
      }
      RowStatus status =
          times == nullptr ? RunSteps(frame) : RunTimedSteps(frame, absl::MakeSpan(ticks));
      if (!status.ok()) {
        status.row += first;
        return status;
      }
      for (const Scattered& output : scattered) {
        const Column& made = frame.columns[steps_.num_inputs + output.index];
        for (int r = 0; r < frame.rows; ++r)
          output.rows[first + r] = {made.row(r), made.row_size(r)};
        if (output.dims != nullptr) {
          std::copy_n(made.dims, output.axes * frame.rows, output.dims + output.axes * first);
        }
      }
      // What was made of unknown size is still to be read.
      if (frame.more_rows && !any_elsewhere_) arena.Rewind(mark);
    }
    if (past_caches) kernels::FinishStores();
    if (times != nullptr) times->Add(steps_.names, ticks);
    return {};
  }

  std::string DebugString() const override {
    std::string text;
    for (const auto& step : steps_.steps) absl::StrAppend(&text, step->DebugString(), "\n");
    return text;
  }

 private:
  static constexpr size_t kElsewhere = SIZE_MAX;

  // An output that is no block of memory, for all rows.
  struct Scattered {
    size_t index;
    RowBytes* rows;
    int64_t* dims;
    size_t axes;
  };

  // All steps, for a group of rows, from whose first one a failing row is counted.
  RowStatus RunSteps(Frame& frame) const {
    try {
      for (const auto& step : steps_.steps) {
        CheckStop();
        if (RowStatus status = step->Run(frame); !status.ok()) return status;
      }
    } catch (const MemoryLimitError& error) {
      return {MemoryStatus(error), 0};
    }
    return {};
  }

  // The same; adds the time that each of them takes to its `ticks`.
  RowStatus RunTimedSteps(Frame& frame, absl::Span<uint64_t> ticks) const {
    for (size_t s = 0; s < steps_.steps.size(); ++s) {
      CheckStop();
      RowStatus status;
      const uint64_t begin = Ticks();
      try {
        status = steps_.steps[s]->Run(frame);
      } catch (const MemoryLimitError& error) {
        status = {MemoryStatus(error), 0};
      }
      ticks[s] += Ticks() - begin;
      if (!status.ok()) return status;
    }
    return {};
  }

  const Signature output_;
  const Steps steps_;
  const bool draws_;
  std::vector<size_t> output_bytes_;  // of a row, or kElsewhere
  bool any_elsewhere_ = false;
  int group_rows_ = 1 << 20;
};

// A text as messages quote it: of a long one what stands around the column, counted from 1 in
// bytes.
std::string Quoted(const std::string& text, size_t column) {
  constexpr size_t kAround = 400;
  if (text.size() <= 2 * kAround) return text;
  size_t begin = column > kAround ? std::min(column - 1 - kAround, text.size() - kAround) : 0;
  size_t end = std::min(text.size(), begin + 2 * kAround);
  // Not within a character.
  const auto is_within = [&](size_t at) {
    return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  while (is_within(begin)) ++begin;
  while (is_within(end)) ++end;
  return absl::StrCat(begin > 0 ? "…" : "", text.substr(begin, end - begin),
                      end < text.size() ? "…" : "");
}

// "stage "map", column 7 of "x = y + 1": message".
absl::Status InExpression(const MapSource& map, const std::string& text,
                          const absl::Status& status) {
  const std::string message(status.message());
  const size_t colon = message.find(": ");
  if (!absl::StartsWith(message, "column ") || colon == std::string::npos) {
    return absl::Status(status.code(), absl::StrCat("stage \"", map.stage, "\", \"",
                                                    Quoted(text, 1), "\": ", message));
  }
  size_t column = 1;
  std::from_chars(message.data() + std::strlen("column "), message.data() + colon, column);
  return absl::Status(
      status.code(), absl::StrCat("stage \"", map.stage, "\", ", message.substr(0, colon), " of \"",
                                  Quoted(text, column), "\"", message.substr(colon)));
}

absl::StatusOr<std::vector<NamedValue>> TypeMap(Graph& graph, const MapSource& map,
                                                std::vector<NamedValue> features) {
  // A value is behind a batch, or not, for all of a map.
  for (NamedValue& feature : features) feature.value.batch_axis = map.batched;
  Typer typer(graph, features, map.stage, map.batched, map.files);
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

RowStatus Program::Run(int rows, absl::Span<const Column> in, absl::Span<uint8_t* const> out,
                       Arena& arena) const {
  absl::InlinedVector<Column, 16> columns(out.size());
  for (size_t i = 0; i < out.size(); ++i) columns[i].data = out[i];
  return Run(rows, in, absl::MakeSpan(columns), arena);
}

absl::StatusOr<std::unique_ptr<Program>> Compile(const Signature& inputs,
                                                 absl::Span<const MapSource> maps) {
  return CompileFor(inputs, maps, Lanes::kVector);
}

absl::StatusOr<std::unique_ptr<Program>> CompileFor(const Signature& inputs,
                                                    absl::Span<const MapSource> maps, Lanes lanes) {
  Graph graph;
  std::vector<NamedValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // A list is a list here, whatever a batch makes of it. Of packed rows a program can only hand
    // on the bytes.
    TensorType type = inputs[i].type;
    if (type.packed()) {
      type.dtype = DType::kString;
      type.shape.clear();
    }
    type.form = RowForm::kPlain;
    type.narrow_splits = false;
    if (NumElements(type.shape) == 0 && !FitsRow(type.shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "stage \"", maps.empty() ? "map" : maps.front().stage, "\": \"", inputs[i].name,
          "\": expected at most ", kMaxRowElements,
          " elements in a row but for the axis that has none, found ", TypeToString(type)));
    }
    auto node = graph.Input(static_cast<int>(i), type);
    if (!node.ok()) return node.status();
    const TensorType* const packed = inputs[i].type.packed() ? &inputs[i].type : nullptr;
    values.push_back({inputs[i].name, {*node, false, {}, packed}});
  }
  graph.set_identity_input(static_cast<int>(inputs.size()));
  for (const MapSource& map : maps) {
    auto outputs = TypeMap(graph, map, std::move(values));
    if (!outputs.ok()) return outputs.status();
    values = std::move(*outputs);
  }
  Signature signature;
  std::vector<const Node*> nodes;
  for (const NamedValue& value : values) {
    TensorType type = value.value.node->type;
    const std::optional<int64_t> elements = NumElements(type.shape);
    if (elements ? *elements > kMaxRowElements : !HasUnknownAxes(type.shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage \"", maps.empty() ? "map" : maps.back().stage, "\": output \"",
                       value.name, "\": expected at most ", kMaxRowElements,
                       " elements in a row, found ", TypeToString(type)));
    }
    if (const Node* node = value.value.node;
        node->kind == Node::Kind::kInput && node->input < static_cast<int>(inputs.size())) {
      type = inputs[node->input].type;
    }
    signature.push_back({value.name, type});
    nodes.push_back(value.value.node);
  }
  const size_t num_inputs = inputs.size() + (graph.has_identity() ? 1 : 0);
  auto steps = Lowering(graph, num_inputs, lanes).Lower(nodes);
  if (!steps.ok()) return steps.status();
  for (const Feature& feature : inputs) steps->input_axes.push_back(feature.type.shape.size());
  steps->input_axes.resize(num_inputs, 1);
  return std::make_unique<StepProgram>(std::move(signature), std::move(*steps),
                                       graph.has_identity());
}

}  // namespace penstock::expr
