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
std::string TypeOf(const Descriptor& options, int number) {
  const FieldDescriptor* const field = options.FindFieldByNumber(number);
  if (field == nullptr) return "";
  return std::string(field->is_repeated() ? "repeated " : "") + field->type_name();
}

TEST_CASE("The options that an op names are there, and of the type that they need") {
  for (const FieldDescriptor* const op : AllOps()) {
    INFO(op->name());
    const Descriptor& options = *op->message_type();
    const OpTraits& traits = TraitsOf(op);
    for (const int number : {traits.batch_size, traits.passes, traits.seed})
      CHECK((number == 0 || TypeOf(options, number) == "int64"));
    if (traits.seed != 0) CHECK(options.FindFieldByNumber(traits.seed)->has_presence());
    for (const int number : {traits.folder, traits.arrays})
      CHECK((number == 0 || TypeOf(options, number) == "string"));
    CHECK((traits.files == 0 || TypeOf(options, traits.files) == "repeated string"));
    for (const int number : traits.expressions) {
      const std::string type = TypeOf(options, number);
      CHECK((type == "string" || type == "repeated string"));
    }
    for (const auto* const numbers : {&traits.without_effect, &traits.may_change}) {
      for (const int number : *numbers) CHECK(!TypeOf(options, number).empty());
    }
  }
}

// An option that nobody declares is an ordinary one: what it is called says nothing.
TEST_CASE("Options that are called as declared ones are, are declared") {
  for (const FieldDescriptor* const op : AllOps()) {
    const Descriptor& options = *op->message_type();
    const OpTraits& traits = TraitsOf(op);
    const auto is_declared = [&](const char* name, int number) {
      INFO(op->name() << "." << name);
      const FieldDescriptor* const field = options.FindFieldByName(name);
      if (field == nullptr || (field->is_repeated() && field->name() == "batch_size")) return;
      CHECK(field->number() == number);
    };
    is_declared("seed", traits.seed);
    is_declared("files", traits.files);
    is_declared("npz", traits.arrays);
    is_declared("path", traits.folder);
    is_declared("filename", traits.folder);
    // Of `rebatch`, several sizes are taken by turns.
    is_declared("batch_size", traits.batch_size);
    const FieldDescriptor* const let = options.FindFieldByName("let");
    CHECK((let == nullptr ||
           (!traits.expressions.empty() && traits.expressions.front() == let->number())));
  }
}

TEST_CASE("What is no op, or is in no build, is like nothing") {
  CHECK(TraitsOf(v1::Stage()).keeps_elements);
  CHECK(TraitsOf(nullptr).seed == 0);
}

}  // namespace
}  // namespace penstock::test
