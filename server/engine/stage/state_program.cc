#include "server/engine/stage/state_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/read/inline_tensor.h"
#include "server/engine/stage/map_source.h"

namespace penstock {
namespace {

// A tensor's values as a column has them (base/column.h).
std::string ColumnBytes(const TensorSource& tensor) {
  if (tensor.type.dtype != DType::kString) return tensor.numbers;
  if (tensor.type.shape.empty()) return tensor.strings.front();
  std::string bytes;
  for (const std::string& value : tensor.strings) {
    const auto size = static_cast<uint32_t>(value.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
  for (const std::string& value : tensor.strings) bytes += value;
  return bytes;
}

}  // namespace

absl::StatusOr<expr::MapSource> StateProgram::ReadSource(
    const google::protobuf::RepeatedPtrField<v1::Constant>& constants,
    const google::protobuf::RepeatedPtrField<std::string>& lets, PlanBuilder& plan) {
  return ReadMapSource(constants, lets, plan);
}

absl::StatusOr<std::shared_ptr<const StateProgram>> StateProgram::Create(
    expr::MapSource source,
    const google::protobuf::RepeatedPtrField<v1::TensorValues>& initial_state,
    const google::protobuf::RepeatedPtrField<std::string>& state,
    const google::protobuf::RepeatedPtrField<std::string>& outs, const Signature& element) {
  auto made = std::make_shared<StateProgram>();
  Signature input = element;
  if (initial_state.empty())
    return absl::InvalidArgumentError("initial_state: expected at least one tensor, found none");
  for (const v1::TensorValues& values : initial_state) {
    if (values.name().empty())
      return absl::InvalidArgumentError("initial_state: a tensor has no name");
    const auto known = std::find_if(input.begin(), input.end(), [&](const Feature& feature) {
      return feature.name == values.name();
    });
    if (known != input.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "initial_state: expected a name that no feature has, found \"", values.name(), "\""));
    }
    if (!values.npy().empty() || !values.npz().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("initial_state \"", values.name(), "\": expected values, found a file"));
    }
    absl::StatusOr<TensorSource> tensor = ReadInlineTensor(values, /*may_be_scalar=*/true);
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("initial_state \"", values.name(), "\": ", tensor.status().message()));
    }
    made->state_.push_back({values.name(), tensor->type});
    made->initial_.push_back(ColumnBytes(*tensor));
    input.push_back(made->state_.back());
  }
  source.outs.assign(state.begin(), state.end());
  source.outs.insert(source.outs.end(), outs.begin(), outs.end());
  if (state.size() != initial_state.size()) {
    return absl::InvalidArgumentError(absl::StrCat("state: expected one for each initial_state, ",
                                                   initial_state.size(), " in all, found ",
                                                   state.size()));
  }
  // The names of a state's tensors may be those of outs too: they are compiled under names of their
  // own.
  for (int i = 0; i < state.size(); ++i) {
    const size_t equals = source.outs[i].find('=');
    source.outs[i] = absl::StrCat(
        "\"state/", i,
        "\" =", equals == std::string::npos ? source.outs[i] : source.outs[i].substr(equals + 1));
  }
  absl::StatusOr<std::unique_ptr<expr::Program>> program = expr::Compile(input, {source});
  if (!program.ok()) return program.status();
  if ((*program)->draws()) {
    return absl::InvalidArgumentError(
        "expected no random functions beside a state: draw in a map before this stage");
  }
  const Signature& output = (*program)->output();
  for (int i = 0; i < state.size(); ++i) {
    const std::string& text = state[i];
    std::string name = text.substr(0, std::min(text.find('='), text.size()));
    while (!name.empty() && (name.back() == ' ' || name.back() == '"')) name.pop_back();
    const size_t start = name.find_first_not_of(" \"");
    name = start == std::string::npos ? "" : name.substr(start);
    const auto found = std::find_if(made->state_.begin(), made->state_.end(),
                                    [&](const Feature& feature) { return feature.name == name; });
    if (found == made->state_.end() ||
        std::find(made->position_.begin(), made->position_.end(),
                  static_cast<size_t>(found - made->state_.begin())) != made->position_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("state: expected each name of initial_state once, found \"", name, "\""));
    }
    made->position_.push_back(found - made->state_.begin());
    if (output[i].type != found->type) {
      return absl::InvalidArgumentError(
          absl::StrCat("state \"", name, "\": expected ", TypeToString(found->type),
                       " as in initial_state, found ", TypeToString(output[i].type)));
    }
  }
  made->output_.assign(output.begin() + state.size(), output.end());
  for (const Feature& feature : output)
    made->row_bytes_.push_back(NumBytes(feature.type).value_or(0));
  made->program_ = *std::move(program);
  return std::shared_ptr<const StateProgram>(std::move(made));
}

std::vector<Column> StateProgram::StateColumns(const State& state, Arena& arena) const {
  std::vector<Column> columns(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    // Behind a value there must be room for loads of whole vectors.
    uint8_t* const bytes = arena.Allocate(state[i].size());
    std::memcpy(bytes, state[i].data(), state[i].size());
    auto* const row = arena.AllocateArray<RowBytes>(1);
    *row = {bytes, state[i].size()};
    columns[i].rows = row;
  }
  return columns;
}

absl::Status StateProgram::Run(absl::Span<const Column> element, State* state,
                               absl::Span<Column> out, Arena& arena) const {
  std::vector<Column> in(element.begin(), element.end());
  for (const Column& column : StateColumns(*state, arena)) in.push_back(column);
  std::vector<Column> results(row_bytes_.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].row_bytes = row_bytes_[i];
    if (row_bytes_[i] > 0) results[i].data = arena.Allocate(row_bytes_[i]);
  }
  const RowStatus status = program_->Run(1, in, absl::MakeSpan(results), arena);
  if (!status.ok()) return status.status;
  for (size_t i = 0; i < position_.size(); ++i) {
    (*state)[position_[i]].assign(reinterpret_cast<const char*>(results[i].row(0)),
                                  results[i].row_size(0));
  }
  std::copy(results.begin() + position_.size(), results.end(), out.begin());
  return absl::OkStatus();
}

}  // namespace penstock
