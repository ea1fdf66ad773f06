#include "server/engine/spec/spec_paths.h"

#include <vector>

#include "google/protobuf/message.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A path that is a field of its own, or each of a list of them.
void VisitField(Message* message, const FieldDescriptor* field, PathKind kind,
                const PathVisit& visit) {
  if (field == nullptr) return;
  const Reflection& reflection = *message->GetReflection();
  if (field->is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      std::string path = reflection.GetRepeatedString(*message, field, i);
      visit(kind, &path);
      reflection.SetRepeatedString(message, field, i, path);
    }
    return;
  }
  std::string path = reflection.GetString(*message, field);
  if (path.empty()) return;
  visit(kind, &path);
  if (path.empty()) {
    reflection.ClearField(message, field);
  } else {
    reflection.SetString(message, field, path);
  }
}

void VisitOption(Message* message, Option option, PathKind kind, const PathVisit& visit) {
  const FoundOption<Message> found = FindOption(message, option);
  VisitField(found.options, found.field, kind, visit);
}

// What an op's options hold of these two types may be in files, whatever the op is.
void VisitValues(Message* message, const PathVisit& visit) {
  if (message->GetDescriptor() == v1::TensorValues::descriptor()) {
    VisitOption(message, v1::TensorValues::kNpyFieldNumber, PathKind::kArrays, visit);
    VisitOption(message, v1::TensorValues::kNpzFieldNumber, PathKind::kArrays, visit);
  } else if (message->GetDescriptor() == v1::Constant::descriptor()) {
    VisitOption(message, v1::Constant::kNpyFieldNumber, PathKind::kConstants, visit);
    VisitOption(message, v1::Constant::kTextLineFieldNumber, PathKind::kConstants, visit);
  }
}

// Of each message that is in a field of these options.
template <typename Visit>
void VisitMessages(Message* options, const Visit& visit) {
  const Reflection& reflection = *options->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*options, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      visit(reflection.MutableMessage(options, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*options, field); ++i)
      visit(reflection.MutableRepeatedMessage(options, field, i));
  }
}

}  // namespace

void VisitPaths(v1::Stage* stage, const PathVisit& visit) {
  Message* const options = MutableOptionsOf(stage);
  if (options == nullptr) return;
  const OpTraits& traits = TraitsOf(*stage);
  VisitOption(options, traits.files, PathKind::kFiles, visit);
  VisitOption(options, traits.arrays, PathKind::kArrays, visit);
  VisitOption(options, traits.folder, PathKind::kFolder, visit);
  VisitMessages(options, [&visit](Message* message) { VisitValues(message, visit); });
}

void VisitAllPaths(v1::Stage* stage, const PathVisit& visit) {
  VisitPaths(stage, visit);
  Message* const options = MutableOptionsOf(stage);
  if (options == nullptr) return;
  VisitMessages(options, [&visit](Message* message) {
    if (message->GetDescriptor() != v1::Input::descriptor()) return;
    for (v1::Stage& nested : *static_cast<v1::Input*>(message)->mutable_stage())
      VisitAllPaths(&nested, visit);
  });
}

}  // namespace penstock
