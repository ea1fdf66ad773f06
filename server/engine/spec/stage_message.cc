#include "server/engine/spec/stage_message.h"

#include <string>

#include "server/engine/spec/drawn_seed.h"
#include "server/engine/spec/op_traits.h"
#include "server/expr/seeds.h"

namespace penstock {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const FieldDescriptor* OpField(const v1::Stage& stage) {
  const google::protobuf::OneofDescriptor* op = v1::Stage::descriptor()->FindOneofByName("op");
  return stage.GetReflection()->GetOneofFieldDescriptor(stage, op);
}

const Message* OptionsOf(const v1::Stage& stage) {
  const FieldDescriptor* const op = OpField(stage);
  return op == nullptr ? nullptr : &stage.GetReflection()->GetMessage(stage, op);
}

Message* MutableOptionsOf(v1::Stage* stage) {
  const FieldDescriptor* const op = OpField(*stage);
  return op == nullptr ? nullptr : stage->GetReflection()->MutableMessage(stage, op);
}

bool CallsRandom(const v1::Stage& stage) {
  if (TraitsOf(stage).draws) return true;
  for (const Option option : TraitsOf(stage).expressions) {
    const auto [options, field] = FindOption(*OptionsOf(stage), option);
    if (options == nullptr) continue;
    const Reflection& reflection = *options->GetReflection();
    if (!field->is_repeated()) {
      if (expr::CallsRandom(reflection.GetString(*options, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*options, field); ++i) {
      if (expr::CallsRandom(reflection.GetRepeatedString(*options, field, i))) return true;
    }
  }
  return false;
}

void GiveSeeds(v1::Stage* stage) {
  // Short ones, since they stand in a text that people read; a stage has but few.
  const auto draw = [] { return DrawSeed() & INT32_MAX; };
  for (const Option option : TraitsOf(*stage).expressions) {
    const auto [options, field] = FindOption(MutableOptionsOf(stage), option);
    if (options == nullptr) continue;
    const Reflection& reflection = *options->GetReflection();
    if (!field->is_repeated()) {
      const std::string text = reflection.GetString(*options, field);
      const std::string seeded = expr::WithSeeds(text, draw);
      if (seeded != text) reflection.SetString(options, field, seeded);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*options, field); ++i) {
      const std::string text = reflection.GetRepeatedString(*options, field, i);
      const std::string seeded = expr::WithSeeds(text, draw);
      if (seeded != text) reflection.SetRepeatedString(options, field, i, seeded);
    }
  }
}

}  // namespace penstock
