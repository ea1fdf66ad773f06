#include "server/text/decode/decoders.h"

#include "base/utf8.h"
#include "server/text/model/byte_tokens.h"
#include "server/text/parts/byte_letters.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/pattern.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {

std::string ReplacedAll(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string result;
  size_t open = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, open)) {
    result.append(text.substr(open, at - open)).append(to);
    open = at + from.size();
  }
  return result.append(text.substr(open));
}

namespace {

std::string Joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

class ByteLevel final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::string bytes;
    for (const std::string& token : *tokens)
      if (!AppendBytesOf(token, &bytes)) bytes += token;
    tokens->assign(1, ReplaceNoUtf8(bytes));
  }
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeByteLevel(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (!status.ok()) return status;
  return std::make_unique<ByteLevel>();
}

class ByteFallback final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto end_bytes = [&] {
      if (bytes.empty()) return;
      if (FindInvalidUtf8(bytes) == std::string_view::npos) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\xef\xbf\xbd");
      }
      bytes.clear();
    };
    for (std::string& token : *tokens) {
      const int byte = ByteOfToken(token);
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      end_bytes();
      result.push_back(std::move(token));
    }
    end_bytes();
    *tokens = std::move(result);
  }
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeByteFallback(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<ByteFallback>();
}

class Fuse final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    tokens->assign(1, Joined(*tokens));
  }
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeFuse(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<Fuse>();
}

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool tidies) : prefix_(std::move(prefix)), tidies_(tidies) {}
  void Apply(std::vector<std::string>* tokens) const override {
    bool is_first = true;
    for (std::string& token : *tokens) {
      if (!std::exchange(is_first, false)) {
        if (token.compare(0, prefix_.size(), prefix_) == 0) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, 1, ' ');
        }
      }
      if (!tidies_) continue;
      static constexpr std::pair<std::string_view, std::string_view> kTidied[] = {
          {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
          {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
          {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
      for (const auto& [from, to] : kTidied) token = ReplacedAll(token, from, to);
    }
  }

 private:
  const std::string prefix_;
  const bool tidies_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeWordPiece(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "prefix", "cleanup"});
  std::string prefix = "##";
  bool tidies = true;
  if (status.ok()) status = json["prefix"].Read(&prefix);
  if (status.ok()) status = json["cleanup"].Read(&tidies);
  if (!status.ok()) return status;
  return std::make_unique<WordPiece>(std::move(prefix), tidies);
}

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string mark, bool prepends) : mark_(std::move(mark)), prepends_(prepends) {}
  void Apply(std::vector<std::string>* tokens) const override {
    bool is_first = true;
    for (std::string& token : *tokens)
      token = ReplacedAll(token, mark_, std::exchange(is_first, false) && prepends_ ? "" : " ");
  }

 private:
  const std::string mark_;
  const bool prepends_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeMetaspace(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  std::string mark = "\u2581", scheme;
  bool adds_space = true;
  if (status.ok()) status = json["replacement"].Read(&mark);
  if (status.ok()) status = json["prepend_scheme"].Read(&scheme);
  if (status.ok()) status = json["add_prefix_space"].Read(&adds_space);
  if (!status.ok()) return status;
  if (mark.empty()) return json["replacement"].Refuse("one character");
  return std::make_unique<Metaspace>(std::move(mark),
                                     scheme.empty() ? adds_space : scheme != "never");
}

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    for (std::string& token : *tokens)
      token = ReplacedAll(token, suffix_, &token == &tokens->back() ? "" : " ");
  }

 private:
  const std::string suffix_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeBpe(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "suffix"});
  std::string suffix = "</w>";
  if (status.ok()) status = json["suffix"].Read(&suffix);
  if (!status.ok()) return status;
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

class Replace final : public Decoder {
 public:
  Replace(Pattern pattern, std::string with)
      : pattern_(std::move(pattern)), with_(std::move(with)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    for (std::string& token : *tokens) token = pattern_.Replaced(token, with_);
  }

 private:
  const Pattern pattern_;
  const std::string with_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeReplace(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "pattern", "content"});
  Pattern pattern;
  std::string with;
  if (status.ok()) status = pattern.Read(json["pattern"]);
  if (status.ok()) status = json["content"].Read(&with);
  if (!status.ok()) return status;
  return std::make_unique<Replace>(std::move(pattern), std::move(with));
}

class Strip final : public Decoder {
 public:
  Strip(std::string content, uint32_t start, uint32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void Apply(std::vector<std::string>* tokens) const override {
    for (std::string& token : *tokens) {
      for (uint32_t i = 0; i < start_ && token.compare(0, content_.size(), content_) == 0; ++i)
        token.erase(0, content_.size());
      for (uint32_t i = 0;
           i < stop_ && token.size() >= content_.size() &&
           token.compare(token.size() - content_.size(), content_.size(), content_) == 0;
           ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  const std::string content_;
  const uint32_t start_, stop_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeStrip(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "content", "start", "stop"});
  std::string content;
  uint32_t start = 0, stop = 0;
  if (status.ok()) status = json["content"].Read(&content);
  if (status.ok()) status = json["start"].ReadId(&start);
  if (status.ok()) status = json["stop"].ReadId(&stop);
  if (!status.ok()) return status;
  uint32_t code_point;
  if (!IsOneCodePoint(content, &code_point)) return json["content"].Refuse("one character");
  return std::make_unique<Strip>(std::move(content), start, stop);
}

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    for (const auto& part : parts_) part->Apply(tokens);
  }

 private:
  const std::vector<std::unique_ptr<Decoder>> parts_;
};
absl::StatusOr<std::unique_ptr<Decoder>> MakeSequence(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "decoders"}); !status.ok()) return status;
  auto parts = MakeParts<Decoder>(json["decoders"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

const PartRegistration<Decoder> kByteLevel("ByteLevel", MakeByteLevel);
const PartRegistration<Decoder> kByteFallback("ByteFallback", MakeByteFallback);
const PartRegistration<Decoder> kFuse("Fuse", MakeFuse);
const PartRegistration<Decoder> kWordPiece("WordPiece", MakeWordPiece);
const PartRegistration<Decoder> kMetaspace("Metaspace", MakeMetaspace);
const PartRegistration<Decoder> kBpe("BPEDecoder", MakeBpe);
const PartRegistration<Decoder> kReplace("Replace", MakeReplace);
const PartRegistration<Decoder> kStrip("Strip", MakeStrip);
const PartRegistration<Decoder> kSequence("Sequence", MakeSequence);

}  // namespace
}  // namespace penstock::text
