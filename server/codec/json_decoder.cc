#include "server/codec/json_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/large_charge.h"
#include "base/staying_room.h"
#include "base/stop_flag.h"
#include "base/utf8.h"
#include "server/codec/json_number.h"
#include "server/codec/json_row.h"

namespace penstock {
namespace {

constexpr size_t kShownBytes = 40;
// Of a list's item, as StopLook counts it.
constexpr uint64_t kItemWork = 64;
constexpr size_t kNotFound = ~size_t{0};
// So many items of lists are decoded before what their values take is charged again.
constexpr uint64_t kItemsPerCharge = 4096;
// Documents beyond it leave no memory to the next one, which nobody is charged for.
constexpr size_t kKeptDocumentBytes = size_t{4} << 20;

std::string Shown(absl::string_view text) {
  return absl::StrCat(ReadableUtf8(text, kShownBytes), text.size() > kShownBytes ? "…" : "");
}

}  // namespace

// One document.
class JsonDecoder::Walk {
 public:
  Walk(const JsonDecoder& decoder, Arena& arena, JsonScratch& scratch)
      : fields_(decoder.fields_),
        paths_(decoder.paths_),
        replaces_(decoder.errors_ == JsonErrors::kReplace),
        arena_(arena),
        scratch_(scratch),
        tokens_(scratch.tokens) {}

  // Checks the whole document, and then decodes it. The keys of a document that is an object are
  // looked up on the way. `defers`: strings that are wanted are checked when they are decoded, so
  // that their bytes are gone through once; what is told of a document in which something is wrong
  // need not be what is wrong first.
  absl::Status Run(bool defers) {
    defers_ = defers;
    JsonFault fault;
    const Node& root = paths_.node(0);
    const bool is_object =
        tokens_.kind(0) == '{' && root.wants_object() && root.here.empty() && !root.wants_list();
    size_t end = 0;
    if (is_object) {
      Forget(root.keys);
      size_t guess = 0;
      end =
          tokens_.PassObject(0, &fault, [&](absl::string_view key, bool has_escapes, size_t value) {
            const int child = Note(root, key, has_escapes, value, &guess);
            return defers_ && child >= 0 && paths_.node(child).is_text && tokens_.IsString(value);
          });
    } else {
      end = tokens_.Pass(0, &fault);
    }
    if (!fault) fault = tokens_.CheckEnd(end);
    if (!fault) fault = of_earlier_;
    if (fault) return absl::DataLossError(DescribeJsonFault(fault));
    if (is_object) {
      (void)VisitFound(root.keys);
    } else {
      (void)Visit(0, 0, &end);
    }
    ChargeValues();
    return std::move(status_);
  }

 private:
  using Node = JsonPaths::Node;

  // The value that begins with a token is the node's. False: status_ says what is wrong.
  bool Visit(int index, size_t token, size_t* end) {
    const Node& node = paths_.node(index);
    const char first = tokens_.kind(token);
    *end = token + 1;
    if (first == 'n') {
      for (const size_t field : node.below) {
        if (fields_[field].refuse_null) return Wrong(field, index, token, Expected(field, index));
      }
      return Missing(index, token);
    }
    // What one field wants may be wrong for another.
    const bool is_object = first == '{', is_list = first == '[';
    if ((!is_object && node.wants_object()) || (!is_list && node.wants_list()) ||
        ((is_object || is_list) && !node.here.empty()))
      return WrongKind(index, token);
    if (is_object) return VisitObject(index, token, end);
    if (is_list) return VisitList(index, token, end);
    for (const size_t field : node.here) {
      if (!Put(field, index, token)) return false;
    }
    return true;
  }

  bool VisitObject(int index, size_t token, size_t* end) {
    const Node& node = paths_.node(index);
    Forget(node.keys);
    size_t guess = 0;
    ++token;
    while (tokens_.kind(token) != '}') {
      const absl::string_view key = tokens_.string(token);
      const bool has_escapes = std::memchr(key.data(), '\\', key.size()) != nullptr;
      (void)Note(node, key, has_escapes, token + 2, &guess);
      token = tokens_.Skip(token + 2);
      if (tokens_.kind(token) == ',') ++token;
    }
    *end = token + 1;
    return VisitFound(node.keys);
  }

  // Of a key that comes twice the last one counts. The node that wants it, or -1.
  int Note(const Node& node, absl::string_view key, bool has_escapes, size_t value, size_t* guess) {
    int child = paths_.FindKey(node, key, guess);
    if (child < 0 && has_escapes) {
      std::string plain;
      (void)AppendJsonString(key, &plain);
      child = paths_.FindKey(node, plain, guess);
    }
    if (child < 0) return child;
    size_t& found = scratch_.found[child];
    // One that nobody decodes was perhaps not looked at either.
    if (defers_ && found != kNotFound && !of_earlier_) (void)tokens_.Pass(found, &of_earlier_);
    found = value;
    return child;
  }

  // Nothing is found yet of an object's or list's nodes.
  void Forget(const std::vector<int>& children) {
    for (const int child : children) scratch_.found[child] = kNotFound;
  }

  // What is found of them, when all of the object or list has been seen.
  bool VisitFound(const std::vector<int>& children) {
    for (const int child : children) {
      size_t behind = 0;
      const size_t found = scratch_.found[child];
      if (!(found == kNotFound ? Missing(child, kNotFound) : Visit(child, found, &behind)))
        return false;
    }
    return true;
  }

  bool VisitList(int index, size_t token, size_t* end) {
    const Node& node = paths_.node(index);
    Forget(node.places);
    int64_t place = 0;
    ++token;
    StopLook look;
    while (tokens_.kind(token) != ']') {
      look.Did(kItemWork);
      if (++items_ % kItemsPerCharge == 0) ChargeValues();
      for (const int child : node.places) {
        if (paths_.node(child).step.place == place) scratch_.found[child] = token;
      }
      if (node.each >= 0) {
        scratch_.places[node.level + 1] = place;
        if (!Visit(node.each, token, &token)) return false;
      } else {
        token = tokens_.Skip(token);
      }
      ++place;
      if (tokens_.kind(token) == ',') ++token;
    }
    *end = token + 1;
    if (node.each >= 0) {
      for (const size_t field : paths_.node(node.each).below) {
        if (!EndAxis(field, index, node.level)) return false;
      }
    }
    return VisitFound(node.places);
  }

  // --- values ---

  // What the values have grown by since the last time. A list has at most doubled meanwhile.
  void ChargeValues() {
    uint64_t bytes = 0;
    for (const JsonValues& values : scratch_.values) bytes += JsonValuesBytes(values);
    if (bytes > charged_) charge_.Add(bytes - charged_);
    charged_ = std::max(charged_, bytes);
  }

  bool Put(size_t field, int index, size_t token) {
    const JsonField& wanted = fields_[field];
    const absl::string_view text = tokens_.text(token);
    if (text[0] == '"') {
      if (wanted.type.dtype == DType::kString) return PutString(field, index, token);
      const absl::string_view inside = text.substr(1, text.size() - 2);
      if (!wanted.from_text) return Wrong(field, index, token, Expected(field, index));
      return PutScalar(field, index, token, inside);
    }
    if (wanted.type.dtype == DType::kString)
      return Wrong(field, index, token, Expected(field, index));
    return PutScalar(field, index, token, text);
  }

  bool PutScalar(size_t field, int index, size_t token, absl::string_view text) {
    uint8_t value[8];
    const char* const wrong = ReadJsonScalar(text, fields_[field].type.dtype, value);
    if (wrong == nullptr) {
      AppendJsonNumber(fields_[field], value, &scratch_.values[field]);
      return true;
    }
    if (*wrong == '\0') return Wrong(field, index, token, Expected(field, index));
    return Wrong(field, index, token, Expected(field, index),
                 absl::StrCat("one that is ", wrong, ": "));
  }

  bool PutString(size_t field, int index, size_t token) {
    const absl::string_view text = tokens_.string(token);
    JsonValues& values = scratch_.values[field];
    size_t lone = 0;
    bool are_escapes = true;
    const void* const escape = std::memchr(text.data(), '\\', text.size());
    const size_t plain = escape == nullptr
                             ? text.size()
                             : static_cast<size_t>(static_cast<const char*>(escape) - text.data());
    if (!fields_[field].shape.empty()) {
      const size_t before = values.bytes.size();
      values.bytes.resize(before + text.size());
      char* const to = reinterpret_cast<char*>(values.bytes.data()) + before;
      char* end = to + text.size();
      if (escape != nullptr) {
        are_escapes = WriteJsonString(text, plain, to, &end, &lone);
      } else if (!text.empty()) {
        std::memcpy(to, text.data(), text.size());
      }
      values.bytes.resize(before + (end - to));
      values.sizes.push_back(static_cast<uint32_t>(end - to));
    } else if (escape != nullptr) {
      char* const to = reinterpret_cast<char*>(StayingRoom::AllocateThereOr(arena_, text.size()));
      char* end = to;
      are_escapes = WriteJsonString(text, plain, to, &end, &lone);
      values.view = {reinterpret_cast<const uint8_t*>(to), static_cast<size_t>(end - to)};
    } else {
      values.view = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    }
    ++values.count;
    if (!are_escapes) return Wrong(field, index, token, "expected escapes", "others in: ");
    if (lone == 0 || replaces_) return true;
    return Wrong(field, index, token, "expected characters", "a lone surrogate in: ");
  }

  // --- what is not there ---

  // `token`: the null that stands there; kNotFound: nothing does.
  bool Missing(int index, size_t token) {
    const Node& node = paths_.node(index);
    for (const size_t field : node.below) {
      if (!DefaultsFit(fields_[field], node.level, scratch_.values[field])) {
        status_ = absl::DataLossError(absl::StrCat(
            "feature \"", fields_[field].name, "\" (", paths_.PathTo(index, scratch_.places),
            "): values larger than limit, with its default in the place of null and of what is "
            "missing: ",
            kMaxDefaultBytes, " bytes"));
        return false;
      }
      if (FillJsonValues(fields_[field], node.level, arena_, &scratch_.values[field])) continue;
      const JsonField& wanted = fields_[field];
      const char* const remedy = node.level < wanted.shape.size() && wanted.list_axes > node.level
                                     ? "allow_missing is not set"
                                     : "there is no default_value";
      if (token != kNotFound)
        return Wrong(field, index, token, absl::StrCat(Expected(field, index), " (", remedy, ")"));
      status_ = absl::DataLossError(absl::StrCat("feature \"", wanted.name, "\" (",
                                                 paths_.PathTo(index, scratch_.places),
                                                 "): missing, and ", remedy));
      return false;
    }
    return true;
  }

  // --- axes ---

  bool EndAxis(size_t field, int index, size_t level) {
    const int64_t wanted = fields_[field].shape[level];
    const int64_t found = EndJsonAxis(level, &scratch_.values[field]);
    if (wanted == kUnknownSize || wanted == found) return true;
    status_ = absl::DataLossError(absl::StrCat("feature \"", fields_[field].name, "\" (",
                                               paths_.PathTo(index, scratch_.places),
                                               "): expected ", wanted, " values, found ", found));
    return false;
  }

  // --- errors ---

  // What a field expects at a node: '{', '[', or '\0' for a value of its type.
  char Wanted(size_t field, int index) const {
    const std::vector<JsonStep>& steps = fields_[field].steps;
    const size_t depth = paths_.node(index).depth;
    if (depth == steps.size()) return '\0';
    return steps[depth].kind == JsonStep::Kind::kKey ? '{' : '[';
  }

  std::string Expected(size_t field, int index) const {
    const char wanted = Wanted(field, index);
    if (wanted == '{') return "expected an object";
    if (wanted == '[') return "expected a list";
    return absl::StrCat("expected ", DTypeName(fields_[field].type.dtype));
  }

  // The value is an object, a list, or neither, and some field expects something else: the first of
  // them is told.
  bool WrongKind(int index, size_t token) {
    const char first = tokens_.kind(token);
    const char found = first == '{' || first == '[' ? first : '\0';
    const std::vector<size_t>& below = paths_.node(index).below;
    const size_t field = *std::find_if(below.begin(), below.end(),
                                       [&](size_t one) { return Wanted(one, index) != found; });
    return Wrong(field, index, token, Expected(field, index));
  }

  // `about`: what is wrong with the value that was found.
  bool Wrong(size_t field, int index, size_t token, absl::string_view expected,
             absl::string_view about = "") {
    const absl::string_view text = tokens_.text(token);
    std::string found;
    if (text[0] == '"') {
      found = absl::StrCat("the string \"", Shown(tokens_.string(token)), "\"");
    } else if (text[0] == '{' || text[0] == '[') {
      found = text[0] == '{' ? "an object" : "a list";
    } else {
      found = Shown(text);
    }
    status_ = absl::DataLossError(absl::StrCat("feature \"", fields_[field].name, "\" (",
                                               paths_.PathTo(index, scratch_.places),
                                               "): ", expected, ", found ", about, found, " (byte ",
                                               tokens_.offset(token), " of the document)"));
    return false;
  }

  const std::vector<JsonField>& fields_;
  const JsonPaths& paths_;
  const bool replaces_;
  Arena& arena_;
  JsonScratch& scratch_;
  const JsonTokens& tokens_;
  bool defers_ = false;
  uint64_t items_ = 0;    // of lists, that were gone through
  LargeCharge charge_;    // for the values
  uint64_t charged_ = 0;  // of it
  JsonFault of_earlier_;  // of values whose key came again
  absl::Status status_;
};

// Gives back what a large document took, when it is done or given up.
class JsonDecoder::Leaving {
 public:
  Leaving(size_t document_bytes, JsonScratch& scratch)
      : is_large_(document_bytes > kKeptDocumentBytes), scratch_(scratch) {}
  ~Leaving() {
    if (!is_large_) return;
    scratch_.tokens.Clear();
    std::vector<JsonValues>().swap(scratch_.values);
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  const bool is_large_;
  JsonScratch& scratch_;
};

JsonDecoder::JsonDecoder(std::vector<JsonField> fields, JsonErrors errors)
    : fields_(std::move(fields)), errors_(errors), paths_(fields_) {}

absl::Status JsonDecoder::Decode(absl::string_view document, absl::Span<const Target> targets,
                                 Arena& arena, JsonScratch& scratch) const {
  LargeCharge charge;
  charge.Add(JsonTokens::RoomFor(document.size()));
  const Leaving leaving(document.size(), scratch);
  bool is_utf8 = true;
  JsonFault fault = scratch.tokens.Find(document, &is_utf8);
  if (!is_utf8 && errors_ == JsonErrors::kReplace) {
    const std::string replaced = ReplaceNoUtf8(document);
    charge.Add(replaced.size() + JsonTokens::RoomFor(replaced.size() - document.size()));
    auto* const kept = reinterpret_cast<char*>(arena.Allocate(replaced.size()));
    std::memcpy(kept, replaced.data(), replaced.size());
    fault = scratch.tokens.Find({kept, replaced.size()}, &is_utf8);
  }
  if (fault) return absl::DataLossError(DescribeJsonFault(fault));
  scratch.values.resize(fields_.size());
  scratch.found.resize(paths_.size());
  scratch.places.resize(JsonStep::kStepsMax + 1);
  for (const bool defers : {true, false}) {
    for (size_t i = 0; i < fields_.size(); ++i)
      ClearJsonValues(fields_[i], targets[i].to, &scratch.values[i]);
    absl::Status status = Walk(*this, arena, scratch).Run(defers);
    if (status.ok()) break;
    // What is wrong first is found by going through it once more.
    if (!defers) return status;
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (targets[i].row != nullptr)
      MakeJsonRow(fields_[i], scratch.values[i], arena, targets[i].row, targets[i].dims);
  }
  return absl::OkStatus();
}

}  // namespace penstock
