#include "server/engine/spec/descriptor_path.h"

#include <string>
#include <vector>

namespace penstock {
namespace {

// Cuts digits off the front; false where there are none.
bool TakeNumber(std::string_view* text) {
  const size_t end = text->find_first_not_of("0123456789");
  const size_t digits = end == text->npos ? text->size() : end;
  text->remove_prefix(digits);
  return digits > 0;
}

}  // namespace

bool IsDescriptorPath(std::string_view path) {
  constexpr std::string_view kProc = "/proc/", kDescriptors = "/fd/";
  if (path.substr(0, kProc.size()) != kProc) return false;
  path.remove_prefix(kProc.size());
  if (!TakeNumber(&path) || path.substr(0, kDescriptors.size()) != kDescriptors) return false;
  path.remove_prefix(kDescriptors.size());
  return TakeNumber(&path) && path.empty();
}

void StripDescriptorPaths(google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if ((field->name() == "npy" || field->name() == "npz") &&
        IsDescriptorPath(reflection.GetString(*message, field))) {
      reflection.ClearField(message, field);
    } else if (field->message_type() == nullptr) {
      continue;
    } else if (!field->is_repeated()) {
      StripDescriptorPaths(reflection.MutableMessage(message, field));
    } else {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
        StripDescriptorPaths(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace penstock
