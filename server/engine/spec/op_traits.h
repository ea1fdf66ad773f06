// What an op is like, for those who know no op by its name: cursors, changes of a running pipeline,
// counts of steps, overrides, watching. An op says it where it registers itself
// (engine/plan/op_registry.h), and leaves out what it has not.
//
// Threads: traits are registered before main() and constant then; functions without state.
// Cost:    TraitsOf() looks up a name: for the control plane, not for elements.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/read/skip_limits.h"

namespace penstock {

// Where a stage of an op may stand in its list.
enum class OpPlace {
  kSource,  // first
  kInside,  // anywhere but first
  kAnywhere,
};

// Which elements an op gives for those of its input.
enum class Given {
  kOthers,    // sources, and ops that leave out, add or join elements
  kOneEach,   // one for each of them, in any order
  kFirstOnes  // the first of them, and no others
};

// What an op means (engine/plan/op_meaning.h).
struct OpMeaning {
  int number = 1;
  // What the newest number has changed, as a sentence without its end: "a list of files keeps its
  // order".
  std::string change = {};
};

// An option of an op, named by the number of its field (v1::Take::kCountFieldNumber) or, of one in
// a message that several ops have in common, by that message's field and its own:
// {v1::Python::kFunctionFieldNumber, v1::PythonFunction::kSeedFieldNumber}. 0: none.
struct Option {
  constexpr Option(int field = 0, int inside = 0) : number(field), inside_number(inside) {}
  bool operator==(const Option&) const = default;
  int number;
  int inside_number;
};

// 0, or an empty list: the op has no such option.
struct OpTraits {
  OpPlace place = OpPlace::kInside;
  Given gives = Given::kOthers;
  // Whether elements, or what was found out of them, may wait in the op between two steps. Then no
  // op in front of it may change the order while the pipeline runs: what waits was chosen before.
  bool keeps_elements = true;
  // Whether its nested stages are made for each of its elements, or for each window of them.
  bool nests_elements = false;
  // Whether it is a source of those elements, in the nested stages.
  bool is_window_part = false;
  // Whether its inputs advance together, so that an element that is left out of one of them puts
  // the others out of step.
  bool joins_in_step = false;
  // Whether elements on which a stage before the op fails count in it, where an ignore_errors
  // follows. Of one that does not, the elements are those of a filter in the place of the failures.
  bool counts_failures = false;
  // Set where elements on which a stage before the op fails are left out: reads within which
  // limits.
  std::function<absl::Status(const google::protobuf::Message& options, SkipLimits* limits)>
      reads_ignored = nullptr;

  // int64: how many elements the op joins to a batch.
  Option batch_size = 0;
  // int64: how often the op repeats its input. Absent or negative: without end.
  Option passes = 0;
  // A list of doubles: how often the op takes of each of its inputs. Without any it takes of all
  // alike.
  Option weights = 0;
  // int64: tells its draws from those of others. A changed stage without one keeps the one that it
  // had.
  Option seed = 0;
  // A list of strings: paths or globs of the files that a source reads. They count in the
  // fingerprint by what they match.
  Option files = 0;
  // string: a folder in which elements are kept. Which one is no matter of the order.
  Option folder = 0;
  // string: a file of arrays. Its folder is no matter of the order.
  Option arrays = 0;
  // Of any type: other options that are no matter of the elements or their order.
  std::vector<Option> without_effect = {};
  // Strings, or lists of them: expressions, in which random functions without a seed get one.
  std::vector<Option> expressions = {};
  // Whether its work may draw, whatever its expressions are.
  bool draws = false;
  // Of any type: options of an order op that may change while the pipeline runs. They are no part
  // of a position.
  std::vector<Option> may_change = {};
  // What it means in every plan; PlanBuilder::RaiseMeaning() raises that for one.
  OpMeaning meaning = {};
};

// By the op's registration.
void RegisterTraits(std::string_view op, OpTraits traits);
// Those of an op that is not in this build, or of none, are the default ones. `op`: a field of
// v1::Stage.
const OpTraits& TraitsOf(const google::protobuf::FieldDescriptor* op);
const OpTraits& TraitsOf(const v1::Stage& stage);

// The field of that option, and the message that has it.
template <typename Options>
struct FoundOption {
  Options* options =
      nullptr;  // null where the op has no such option, or the message around it is absent
  const google::protobuf::FieldDescriptor* field = nullptr;
};
FoundOption<const google::protobuf::Message> FindOption(const google::protobuf::Message& options,
                                                        Option option);
FoundOption<google::protobuf::Message> FindOption(google::protobuf::Message* options,
                                                  Option option);
void ClearOption(google::protobuf::Message* options, Option option);
// Of an op with such options; null for none.
const google::protobuf::FieldDescriptor* OptionField(const google::protobuf::Descriptor& options,
                                                     Option option);
// The field that holds nested stages; null where the op has none.
const google::protobuf::FieldDescriptor* InputField(const google::protobuf::Message& options);

}  // namespace penstock
