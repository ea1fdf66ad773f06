// What stands around a text's ids: the processors of BERT and RoBERTa, and templates. Pairs of
// texts are none of ours.
#include "absl/strings/str_cat.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class AddFrame final : public Processor {
 public:
  explicit AddFrame(Frame frame) : frame_(std::move(frame)) {}
  void AddTo(Frame* frame) const override {
    frame->before.insert(frame->before.begin(), frame_.before.begin(), frame_.before.end());
    frame->behind.insert(frame->behind.end(), frame_.behind.begin(), frame_.behind.end());
  }

 private:
  const Frame frame_;
};

class Sequence final : public Processor {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Processor>> parts) : parts_(std::move(parts)) {}
  void AddTo(Frame* frame) const override {
    for (const auto& part : parts_) part->AddTo(frame);
  }

 private:
  const std::vector<std::unique_ptr<Processor>> parts_;
};

absl::StatusOr<std::unique_ptr<Processor>> MakeSequence(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "processors"}); !status.ok()) return status;
  auto parts = MakeParts<Processor>(json["processors"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

// Of ByteLevel only offsets come.
absl::StatusOr<std::unique_ptr<Processor>> MakeByteLevel(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (!status.ok()) return status;
  return std::make_unique<AddFrame>(Frame{});
}

// ["[SEP]", 102].
absl::Status ReadNamedId(const JsonPart& json, std::vector<uint32_t>* ids) {
  if (!json.is_array() || json.size() != 2 || !json.At(0).is_text())
    return json.Refuse("an array of a token and its id");
  return json.At(1).ReadId(&ids->emplace_back());
}

absl::StatusOr<std::unique_ptr<Processor>> MakeOfTwo(const JsonPart& json) {
  absl::Status status =
      json.OnlyMembers({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  Frame frame;
  if (status.ok()) status = ReadNamedId(json["cls"], &frame.before);
  if (status.ok()) status = ReadNamedId(json["sep"], &frame.behind);
  if (!status.ok()) return status;
  return std::make_unique<AddFrame>(std::move(frame));
}

absl::Status ReadTemplateToken(const JsonPart& token, const JsonPart& tokens,
                               std::vector<uint32_t>* ids) {
  std::string name;
  if (absl::Status status = token["id"].Read(&name); !status.ok()) return status;
  const JsonPart listed = tokens[name]["ids"];
  if (!listed.is_array()) return listed.Refuse("an array of ids");
  for (size_t i = 0; i < listed.size(); ++i)
    if (absl::Status status = listed.At(i).ReadId(&ids->emplace_back()); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Processor>> MakeTemplate(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "single", "pair", "special_tokens"});
  if (!status.ok()) return status;
  const JsonPart single = json["single"];
  if (!single.is_array()) return single.Refuse("an array");
  Frame frame;
  bool has_text = false;
  for (size_t i = 0; i < single.size(); ++i) {
    const JsonPart part = single.At(i);
    if (status = part.OnlyMembers({"SpecialToken", "Sequence"}); !status.ok()) return status;
    if (!part["SpecialToken"].is_null()) {
      status = ReadTemplateToken(part["SpecialToken"], json["special_tokens"],
                                 has_text ? &frame.behind : &frame.before);
      if (!status.ok()) return status;
      continue;
    }
    std::string name;
    if (status = part["Sequence"]["id"].Read(&name); !status.ok()) return status;
    if (name != "A" || has_text) return part.Refuse("the sequence \"A\" once");
    has_text = true;
  }
  if (!has_text) return single.Refuse("the sequence \"A\" once");
  return std::make_unique<AddFrame>(std::move(frame));
}

const PartRegistration<Processor> kSequence("Sequence", MakeSequence);
const PartRegistration<Processor> kByteLevel("ByteLevel", MakeByteLevel);
const PartRegistration<Processor> kBert("BertProcessing", MakeOfTwo);
const PartRegistration<Processor> kRoberta("RobertaProcessing", MakeOfTwo);
const PartRegistration<Processor> kTemplate("TemplateProcessing", MakeTemplate);

}  // namespace
}  // namespace penstock::text
