#include "server/engine/spec/stage_message.h"

#include <string>

#include "server/engine/spec/drawn_seed.h"
#include "server/expr/seeds.h"

namespace penstock {

const google::protobuf::FieldDescriptor* OpField(const v1::Stage& stage) {
  const google::protobuf::OneofDescriptor* op = v1::Stage::descriptor()->FindOneofByName("op");
  return stage.GetReflection()->GetOneofFieldDescriptor(stage, op);
}

bool CallsRandom(const google::protobuf::Message& op) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *op.GetDescriptor();
  if (type.FindFieldByName("let") == nullptr) return false;
  const google::protobuf::Reflection& reflection = *op.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    if (!field->is_repeated()) {
      if (expr::CallsRandom(reflection.GetString(op, field))) return true;
      continue;
    }
    for (int j = 0; j < reflection.FieldSize(op, field); ++j) {
      if (expr::CallsRandom(reflection.GetRepeatedString(op, field, j))) return true;
    }
  }
  return false;
}

void GiveSeeds(google::protobuf::Message* op) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *op->GetDescriptor();
  if (type.FindFieldByName("let") == nullptr) return;
  const google::protobuf::Reflection& reflection = *op->GetReflection();
  // Short ones, since they stand in a text that people read; a stage has but few.
  const auto draw = [] { return DrawSeed() & INT32_MAX; };
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    if (!field->is_repeated()) {
      const std::string text = reflection.GetString(*op, field);
      const std::string seeded = expr::WithSeeds(text, draw);
      if (seeded != text) reflection.SetString(op, field, seeded);
      continue;
    }
    for (int j = 0; j < reflection.FieldSize(*op, field); ++j) {
      const std::string text = reflection.GetRepeatedString(*op, field, j);
      const std::string seeded = expr::WithSeeds(text, draw);
      if (seeded != text) reflection.SetRepeatedString(op, field, j, seeded);
    }
  }
}

}  // namespace penstock
