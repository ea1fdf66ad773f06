#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/on_behalf.h"
#include "nlohmann/json.hpp"
#include "server/engine/order/away_work_op.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/section/split_op.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/stage/declared_outputs.h"
#include "server/engine/tensor/structure.h"
#include "server/python/function_file.h"
#include "server/python/iterator_states.h"
#include "server/python/pool.h"

// An iterable's elements, which a worker process makes one after the other.
//
//   source          work (one process)                      section's end
//   pass, number ─► state behind an earlier element ─► the   ─► ends behind the last one; keeps the
//                   outputs, whether there is one, a state       states, for cursors and new processes
//
// The source deals numbers without end. A process that is asked for another number than the next
// one begins again: from a state, or from the first element.
namespace penstock {
namespace {

using Json = nlohmann::ordered_json;
using python::IteratorStates;

constexpr int kFunction = v1::FromGenerator::kFunctionFieldNumber;

// What the source's references say: the element's number in `offset`, the pass in `length`.
uint32_t PassNumber(uint64_t epoch) { return static_cast<uint32_t>(epoch ^ epoch >> 32); }

class NumberOrder final : public OrderOp {
 public:
  NumberOrder(std::shared_ptr<IteratorStates> states, uint32_t file)
      : states_(std::move(states)), file_(file) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) out.push_back({nullptr, next_++, PassNumber(epoch_), file_});
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    next_ += count - *skipped;
    *skipped = count;
    return Pulled::kSome;
  }
  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
  }
  // Pass, number, and the latest state of an element in front: its number, its bytes, and these,
  // seven in a counter.
  void Save(Position& position) const override {
    const IteratorStates::State state = states_->Find(PassNumber(epoch_), next_);
    position.Add(epoch_);
    position.Add(next_);
    position.Add(state.number);
    position.Add(state.bytes.size());
    for (size_t i = 0; i < state.bytes.size(); i += 7) {
      uint64_t counter = 0;
      std::memcpy(&counter, &state.bytes[i], std::min<size_t>(7, state.bytes.size() - i));
      position.Add(counter);
    }
  }
  absl::Status Restore(Position& position) override {
    epoch_ = position.Take();
    next_ = position.Take();
    IteratorStates::State state{position.Take(), {}};
    const uint64_t bytes = position.Take();
    if (bytes > IteratorStates::kMaxStateBytes || state.number > next_) {
      return absl::InvalidArgumentError(absl::StrCat("not a cursor: a state of ", bytes,
                                                     " bytes after element ", state.number,
                                                     " for element ", next_));
    }
    for (size_t i = 0; i < bytes; i += 7) {
      const uint64_t counter = position.Take();
      state.bytes.append(reinterpret_cast<const char*>(&counter), std::min<size_t>(7, bytes - i));
    }
    if (bytes > 0) states_->Add(PassNumber(epoch_), std::move(state));
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return kEndless; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<IteratorStates> states_;
  const uint32_t file_;
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
};

const Signature kNumbers = {{"pass", {DType::kInt64, {}}}, {"number", {DType::kInt64, {}}}};

class NumberLoader final : public ColumnLoader {
 public:
  const Signature& output() const override { return kNumbers; }
  bool is_dict() const override { return true; }
  RowStatus Load(RowReferences rows, FileTable&, absl::Span<Column> out,
                 Arena& arena) const override {
    for (const size_t i : {0, 1}) {
      Column& column = out[i];
      column.row_bytes = sizeof(int64_t);
      if (column.data == nullptr) column.data = arena.Allocate(rows.rows * sizeof(int64_t));
      auto* const values = reinterpret_cast<int64_t*>(column.data);
      for (uint32_t row = 0; row < rows.rows; ++row)
        values[row] = static_cast<int64_t>(i == 0 ? rows[row].length : rows[row].offset);
    }
    return {};
  }
};

// What a process is given of each element, and, behind the outputs, what it says of it.
const Signature kGiven = {{"pass", {DType::kInt64, {}}},
                          {"number", {DType::kInt64, {}}},
                          {"state_number", {DType::kInt64, {}}},
                          {"state", {DType::kString, {}}}};
const Signature kTold = {{"pass", {DType::kInt64, {}}},
                         {"number", {DType::kInt64, {}}},
                         {"is_one", {DType::kBool, {}}},
                         {"state", {DType::kString, {}}}};

Signature With(Signature first, const Signature& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class IteratorOp final : public AwayWorkOp {
 public:
  IteratorOp(std::shared_ptr<IteratorStates> states, const Signature& outputs, bool by_state,
             python::FunctionFile function, python::PoolOptions options)
      : output_(With(outputs, kTold)),
        states_(std::move(states)),
        by_state_(by_state),
        name_(options.name),
        pool_(std::move(function), python::SheetForm(With(kGiven, {{"", {DType::kUint64, {}}}})),
              python::SheetForm(output_), std::move(options)) {}

  const Signature& output() const override { return output_; }
  const char* doing() const override { return "waiting for elements of a Python iterable"; }
  std::string place() const override { return name_; }

  void Begin(AwayRows* rows, Completion end) const override {
    try {
      Arena& arena = *rows->arena;
      const auto at = [&](int column) {
        uint64_t value = 0;
        std::memcpy(&value, rows->in[column].row(0), sizeof(value));
        return value;
      };
      const IteratorStates::State state = states_->Find(static_cast<uint32_t>(at(0)), at(1));
      uint8_t* const bytes = arena.Allocate(state.bytes.size());
      std::memcpy(bytes, state.bytes.data(), state.bytes.size());
      auto* const numbers = arena.AllocateArray<uint64_t>(rows->rows);
      auto* const places = arena.AllocateArray<RowBytes>(rows->rows);
      std::fill_n(numbers, rows->rows, state.number);
      std::fill_n(places, rows->rows, RowBytes{bytes, state.bytes.size()});
      auto* const in = arena.AllocateArray<Column>(5);
      in[0] = rows->in[0];
      in[1] = rows->in[1];
      in[2] = {.data = reinterpret_cast<uint8_t*>(numbers), .row_bytes = sizeof(uint64_t)};
      in[3] = {.rows = places};
      // In the place of an identity.
      in[4] = rows->in[1];
      rows->in = {in, 5};
    } catch (const MemoryLimitError& error) {
      end.End(MemoryStatus(error));
      return;
    }
    pool_.Begin(rows, std::move(end));
  }

  std::optional<AwayWorkers> workers() const override { return pool_.Workers(); }
  std::vector<AwaySpan> SpansSince(uint64_t monotonic_ns) const override {
    return pool_.SpansSince(monotonic_ns);
  }

  std::string Describe() const override {
    return absl::StrCat(
        "Python iterable ", name_, " in one worker process; a resume ",
        by_state_ ? "begins at a state of its iterator"
                  : "goes through it again from its first element, unless its iterator has "
                    "state_dict() and load_state_dict()",
        "\n");
  }

 private:
  const Signature output_;
  const std::shared_ptr<IteratorStates> states_;
  const bool by_state_;
  const std::string name_;
  mutable python::Pool pool_;  // locks itself
};

// Ends behind the last element, and keeps states.
class LastElement final : public SplitOp {
 public:
  LastElement(Signature outputs, std::shared_ptr<IteratorStates> states)
      : output_(std::move(outputs)), states_(std::move(states)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena&) const override {
    const size_t told = output_.size();
    for (int row = 0; row < rows; ++row) {
      split->ends = split->ends || *in[told + 2].row(row) == 0;
      split->counts[row] = split->ends ? 0 : 1;
      const size_t bytes = in[told + 3].row_size(row);
      if (split->ends || bytes == 0 || bytes > IteratorStates::kMaxStateBytes) continue;
      uint64_t pass = 0, number = 0;
      std::memcpy(&pass, in[told].row(row), sizeof(pass));
      std::memcpy(&number, in[told + 1].row(row), sizeof(number));
      states_->Add(static_cast<uint32_t>(pass),
                   {number, {reinterpret_cast<const char*>(in[told + 3].row(row)), bytes}});
    }
    for (size_t i = 0; i < out.size(); ++i) out[i] = in[i];
    return {};
  }

 private:
  const Signature output_;
  const std::shared_ptr<IteratorStates> states_;
};

const OpRegistration<v1::FromGenerator> kFromGenerator(
    "from_generator",
    {.place = OpPlace::kSource,
     .seed = {kFunction, v1::PythonFunction::kSeedFieldNumber},
     .arrays = {kFunction, v1::PythonFunction::kFileFieldNumber},
     .without_effect = {{kFunction, v1::PythonFunction::kTimeoutMsFieldNumber},
                        {kFunction, v1::PythonFunction::kCodeFieldNumber},
                        {kFunction, v1::PythonFunction::kThreadsFieldNumber},
                        v1::FromGenerator::kResumeFieldNumber}},
    [](const v1::FromGenerator& options, PlanBuilder& plan) -> absl::Status {
      const v1::PythonFunction& function = options.function();
      absl::StatusOr<Signature> outputs = ReadDeclaredFunction(function, /*counted=*/false);
      if (!outputs.ok()) return outputs.status();
      const bool by_state = options.resume() == "state";
      if (!by_state && options.resume() != "again" && !options.resume().empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "resume: expected \"state\" or \"again\", found \"", options.resume(), "\""));
      }
      absl::StatusOr<python::FunctionFile> file =
          python::OpenFunctionFile(function.file(), function.code(), OnBehalf::User());
      if (!file.ok()) return file.status();
      const int64_t seed = function.has_seed() ? function.seed() : DrawSeed();
      plan.stage_spec().mutable_from_generator()->mutable_function()->set_seed(seed);
      const std::string name = function.name().empty() ? "iterable" : function.name();
      const std::string structure =
          function.structure().empty() ? DictStructure(*outputs) : function.structure();
      Json configuration = FunctionJson(function, name);
      configuration.update({
          {"inputs", ExchangedJson(kGiven)},
          {"input_structure", "[null,null,null,null]"},
          {"outputs", ExchangedJson(With(*outputs, kTold))},
          {"output_structure", structure},
          {"key", plan.DrawKey(seed)},
          {"yields", false},
          {"lists", false},
          {"tensors", false},
          {"iterates", true},
      });
      auto states = std::make_shared<IteratorStates>();
      const FileRange files = plan.AddFiles({FileEntry{}});
      plan.SetSource(
          std::make_unique<NumberLoader>(), files,
          [states, first = files.first](FrontContext&, OrderInputs) {
            return std::make_unique<NumberOrder>(states, first);
          },
          by_state ? CursorClass::kSeek : CursorClass::kReplayData);
      plan.AddWork(std::make_unique<IteratorOp>(
          states, *outputs, by_state, *std::move(file),
          python::PoolOptions{
              .name = name,
              .configuration = configuration.dump(-1, ' ', false, Json::error_handler_t::replace),
              .workers = 1,
              .timeout_ms = function.timeout_ms(),
              .lends = function.describes(),
              .threads = function.threads()}));
      plan.EndSection(std::make_unique<LastElement>(*outputs, states), structure);
      plan.SetEndless(false);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
