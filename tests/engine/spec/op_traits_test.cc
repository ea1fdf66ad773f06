// What ops say of themselves fits their messages.
#include "server/engine/spec/op_traits.h"

#include <string>
#include <vector>

#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/op_registry.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::vector<const FieldDescriptor*> AllOps() {
  std::vector<const FieldDescriptor*> ops;
  const auto* const oneof = v1::Stage::descriptor()->FindOneofByName("op");
  for (int i = 0; i < oneof->field_count(); ++i) ops.push_back(oneof->field(i));
  return ops;
}

// The type of an option, as the schema writes it; "" where there is none.
std::string TypeOf(const Descriptor& options, Option option) {
  const FieldDescriptor* const field = OptionField(options, option);
  if (field == nullptr) return "";
  return std::string(field->is_repeated() ? "repeated " : "") + field->type_name();
}

// An op's options of that name: its own, and those in messages that ops have in common.
std::vector<Option> OptionsCalled(const Descriptor& options, const char* name) {
  std::vector<Option> found;
  for (int i = 0; i < options.field_count(); ++i) {
    const FieldDescriptor& field = *options.field(i);
    if (field.name() == name) found.push_back(field.number());
    if (field.is_repeated() || field.message_type() == nullptr) continue;
    if (const FieldDescriptor* const inside = field.message_type()->FindFieldByName(name))
      found.push_back({field.number(), inside->number()});
  }
  return found;
}

TEST_CASE("The options that an op names are there, and of the type that they need") {
  for (const FieldDescriptor* const op : AllOps()) {
    INFO(op->name());
    const Descriptor& options = *op->message_type();
    const OpTraits& traits = TraitsOf(op);
    for (const Option option : {traits.batch_size, traits.passes, traits.seed})
      CHECK((option == 0 || TypeOf(options, option) == "int64"));
    if (traits.seed != 0) CHECK(OptionField(options, traits.seed)->has_presence());
    for (const Option option : {traits.folder, traits.arrays})
      CHECK((option == 0 || TypeOf(options, option) == "string"));
    CHECK((traits.weights == 0 || TypeOf(options, traits.weights) == "repeated double"));
    CHECK((traits.files == 0 || TypeOf(options, traits.files) == "repeated string"));
    for (const Option option : traits.expressions) {
      const std::string type = TypeOf(options, option);
      CHECK((type == "string" || type == "repeated string"));
    }
    for (const auto* const list : {&traits.without_effect, &traits.may_change}) {
      for (const Option option : *list) CHECK(!TypeOf(options, option).empty());
    }
  }
}

// An option that nobody declares is an ordinary one: what it is called says nothing.
TEST_CASE("Options that are called as declared ones are, are declared") {
  for (const FieldDescriptor* const op : AllOps()) {
    const Descriptor& options = *op->message_type();
    const OpTraits& traits = TraitsOf(op);
    const auto is_declared = [&](const char* name, Option declared) {
      INFO(op->name() << "." << name);
      for (const Option option : OptionsCalled(options, name)) {
        const FieldDescriptor& field = *OptionField(options, option);
        // Of `rebatch`, several sizes are taken by turns.
        if (field.is_repeated() && field.name() == "batch_size") continue;
        CHECK(option == declared);
      }
    };
    is_declared("weight", traits.weights);
    is_declared("seed", traits.seed);
    is_declared("files", traits.files);
    is_declared("npz", traits.arrays);
    is_declared("path", traits.folder);
    is_declared("filename", traits.folder);
    is_declared("batch_size", traits.batch_size);
    const FieldDescriptor* const let = options.FindFieldByName("let");
    CHECK((let == nullptr ||
           (!traits.expressions.empty() && traits.expressions.front() == let->number())));
  }
}

TEST_CASE(
    "An option is found in the message that ops have in common, and not made where that is "
    "absent") {
  const Option seed = {v1::Python::kFunctionFieldNumber, v1::PythonFunction::kSeedFieldNumber};
  v1::Python options;
  CHECK(FindOption(options, seed).options == nullptr);
  CHECK(FindOption(&options, seed).options == nullptr);
  ClearOption(&options, seed);
  CHECK(!options.has_function());
  options.mutable_function()->set_seed(7);
  options.set_workers(3);
  CHECK(FindOption(options, seed).options == &options.function());
  CHECK(FindOption(options, v1::Python::kWorkersFieldNumber).options == &options);
  ClearOption(&options, seed);
  CHECK(!options.function().has_seed());
  CHECK(options.workers() == 3);
  CHECK(FindOption(options, 0).options == nullptr);
  // No field is both: an int64 holds no message.
  CHECK(FindOption(options, {v1::Python::kWorkersFieldNumber, 1}).options == nullptr);
}

TEST_CASE("What is no op, or is in no build, is like nothing") {
  CHECK(TraitsOf(v1::Stage()).keeps_elements);
  CHECK(TraitsOf(nullptr).seed == 0);
}

}  // namespace
}  // namespace penstock::test
