#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/file_arguments.h"
#include "server/expr/graph.h"
#include "server/expr/texts.h"
#include "server/text/shared.h"
#include "server/text/unicode/utf8.h"

namespace penstock::expr {
namespace {

// Opens the tokenizer that a call names.
absl::StatusOr<std::shared_ptr<const text::Tokenizer>> ReadTokenizer(const Argument& tokenizer,
                                                                     const Argument& pattern,
                                                                     const Argument& content,
                                                                     FileSystem& files) {
  std::string path, by, holds;
  absl::Status status =
      FirstError({ReadConstant(tokenizer, "tokenizer", &path),
                  ReadConstant(pattern, "pattern", &by), ReadConstant(content, "content", &holds)});
  if (!status.ok()) return status;
  if (path.empty() || path.find('\0') != std::string::npos)
    return WrongArgument("tokenizer", "the path of a file");
  if (holds.empty()) {
    // A plan fills it in wherever the path stands in the call.
    return WrongArgument("tokenizer", "the path of a file, as a text in the call itself");
  }
  return text::OpenTokenizer(path, holds, by, files);
}

class Tokenize final : public RowKernel {
 public:
  Tokenize(std::shared_ptr<const text::Tokenizer> tokenizer, const text::EncodeOptions& options,
           bool replaces, bool wide)
      : tokenizer_(std::move(tokenizer)), options_(options), replaces_(replaces), wide_(wide) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    std::string_view text(reinterpret_cast<const char*>(arguments[0].data), arguments[0].bytes);
    std::string mended;
    const size_t wrong = text::FindInvalidUtf8(text);
    if (wrong != std::string_view::npos) {
      if (!replaces_) {
        return absl::DataLossError(absl::StrCat("expected UTF-8, found none at byte ", wrong,
                                                " of ", text.size(),
                                                "; errors=\"replace\" puts U+FFFD there"));
      }
      mended = ReplaceNoUtf8({text.data(), text.size()});
      text = mended;
    }
    const auto scratch = tokenizer_->Borrow();
    absl::Status status = tokenizer_->Encode(text, options_, *scratch);
    if (!status.ok()) return status;
    const absl::Span<const uint32_t> ids = (*scratch).ids.span();
    if (ids.size() > static_cast<size_t>(kMaxRowElements)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "more ids than a row may have elements: ", ids.size(), " > ", kMaxRowElements));
    }
    out.SetShape({static_cast<int64_t>(ids.size())});
    uint8_t* const to = out.Reserve(ids.size() * (wide_ ? sizeof(int64_t) : sizeof(int32_t)));
    if (wide_) {
      auto* const wide = reinterpret_cast<int64_t*>(to);
      for (size_t i = 0; i < ids.size(); ++i) wide[i] = ids[i];
    } else if (!ids.empty()) {
      std::memcpy(to, ids.data(), ids.size() * sizeof(int32_t));
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const text::EncodeOptions options_;
  const bool replaces_, wide_;
};

absl::StatusOr<BoundRowFunction> BindTokenize(absl::Span<const Argument> arguments,
                                              FileSystem& files) {
  text::EncodeOptions options;
  std::string errors = "strict", dtype = "int32";
  absl::Status status = FirstError(
      {ReadStrings(arguments[0], "input"),
       ReadConstant(arguments[2], "add_special_tokens", &options.add_special_tokens),
       ReadConstant(arguments[3], "max_length", 0, kMaxRowElements, &options.max_length),
       ReadConstant(arguments[4], "errors", &errors), ReadConstant(arguments[6], "dtype", &dtype)});
  if (!status.ok()) return status;
  if (errors != "strict" && errors != "replace")
    return WrongArgument("errors", "\"strict\" or \"replace\"");
  if (dtype != "int32" && dtype != "int64") return WrongArgument("dtype", "\"int32\" or \"int64\"");
  auto tokenizer = ReadTokenizer(arguments[1], arguments[5], arguments[7], files);
  if (!tokenizer.ok()) return tokenizer.status();
  if (options.add_special_tokens && options.max_length > 0 &&
      options.max_length < static_cast<int64_t>((*tokenizer)->num_added())) {
    return WrongArgument("max_length",
                         absl::StrCat("0 or at least ", (*tokenizer)->num_added(),
                                      ", as many ids as the tokenizer's file adds to each text"));
  }
  const bool wide = dtype == "int64";
  BoundRowFunction bound;
  bound.type = {wide ? DType::kInt64 : DType::kInt32, {kUnknownSize}};
  bound.kernel =
      std::make_shared<Tokenize>(*std::move(tokenizer), options, errors == "replace", wide);
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kTokenize({
    .name = "tokenize",
    .signature =
        "tokenize(input, tokenizer, add_special_tokens=True, max_length=0, errors=\"strict\", "
        "pattern=\"\", dtype=\"int32\", content=\"\")",
    .doc =
        "The ids of a text's tokens, equal to those of the library that made the tokenizer's "
        "file.\n"
        "\n"
        "input: a string in UTF-8, which becomes (n,); or a tensor of strings, all with as many "
        "ids, (..., n).\n"
        "tokenizer: the path of a tokenizer.json (Hugging Face: BPE, WordPiece, Unigram, "
        "WordLevel), of a file of ranks (tiktoken) or of a model of SentencePiece, a constant in "
        "the call itself. It is read when the plan is made. A part that the file asks for and that "
        "is not supported is "
        "refused by name. A relative path counts from the folder in which the daemon was "
        "started.\n"
        "add_special_tokens: whether the file's post-processor adds its tokens; only a "
        "tokenizer.json has one; a constant.\n"
        "max_length: how many ids there are at most, those that are added included; 0: as the "
        "file says; a constant.\n"
        "errors: what becomes of bytes that are no UTF-8: \"strict\": an error of the record; "
        "\"replace\": U+FFFD for each, as Python's decode has it; a constant.\n"
        "pattern: of a file of ranks, by what a text is cut first: gpt2, r50k_base, p50k_base, "
        "cl100k_base, o200k_base, llama3, qwen2, or a regular expression; \"\": the name of the "
        "file without its ending; a constant.\n"
        "dtype: \"int32\" or \"int64\"; a constant.\n"
        "content: what the file holds, its length and checksum. The plan fills it in: a cursor "
        "knows the file by it, wherever the file lies, and a pipeline that goes on refuses "
        "another file.",
    .bind = nullptr,
    .bind_files = BindTokenize,
});

const FileArgumentRegistration kTokenizeFile("tokenize",
                                             {.place = 1, .content_of = text::ContentOf});

class Detokenize final : public RowKernel {
 public:
  Detokenize(std::shared_ptr<const text::Tokenizer> tokenizer, bool skips, bool keeps, bool wide)
      : tokenizer_(std::move(tokenizer)), skips_(skips), keeps_(keeps), wide_(wide) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const size_t count = arguments[0].bytes / (wide_ ? sizeof(int64_t) : sizeof(int32_t));
    std::vector<uint32_t> ids(count);
    for (size_t i = 0; i < count; ++i) {
      int64_t id = 0;
      if (wide_) {
        std::memcpy(&id, arguments[0].data + i * sizeof(id), sizeof(id));
      } else {
        int32_t narrow;
        std::memcpy(&narrow, arguments[0].data + i * sizeof(narrow), sizeof(narrow));
        id = narrow;
      }
      if (id < 0 || id > INT32_MAX) {
        return absl::DataLossError(
            absl::StrCat("expected ids of the tokenizer, found ", id, " at ", i, " of ", count));
      }
      ids[i] = static_cast<uint32_t>(id);
    }
    std::string text;
    absl::Status status = tokenizer_->Decode(ids, skips_, keeps_, &text);
    if (status.ok()) PutText(text, out);
    return status;
  }

 private:
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const bool skips_, keeps_, wide_;
};

absl::StatusOr<BoundRowFunction> BindDetokenize(absl::Span<const Argument> arguments,
                                                FileSystem& files) {
  const TensorType& ids = arguments[0].type;
  if ((ids.dtype != DType::kInt32 && ids.dtype != DType::kInt64) || ids.shape.size() != 1 ||
      arguments[0].literal != nullptr) {
    return WrongArgument("ids",
                         absl::StrCat("int32 (n,) or int64 (n,), found ", TypeToString(ids)));
  }
  bool skips = true;
  std::string errors = "replace";
  absl::Status status = FirstError({ReadConstant(arguments[2], "skip_special_tokens", &skips),
                                    ReadConstant(arguments[3], "errors", &errors)});
  if (!status.ok()) return status;
  if (errors != "replace" && errors != "keep")
    return WrongArgument("errors", "\"replace\" or \"keep\"");
  auto tokenizer = ReadTokenizer(arguments[1], arguments[4], arguments[5], files);
  if (!tokenizer.ok()) return tokenizer.status();
  BoundRowFunction bound;
  bound.type = {DType::kString, {}};
  bound.kernel = std::make_shared<Detokenize>(*std::move(tokenizer), skips, errors == "keep",
                                              ids.dtype == DType::kInt64);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kDetokenize({
    .name = "detokenize",
    .signature = "detokenize(ids, tokenizer, skip_special_tokens=True, errors=\"replace\", "
                 "pattern=\"\", content=\"\")",
    .doc =
        "The text of ids, equal to that of the library that made the tokenizer's file; a string.\n"
        "\n"
        "ids: int32 or int64, (n,). An id that the tokenizer does not have is an error of its "
        "record.\n"
        "tokenizer: as of tokenize().\n"
        "skip_special_tokens: whether special tokens are left out; a constant.\n"
        "errors: what becomes of bytes that are no UTF-8: \"replace\": U+FFFD, as the libraries "
        "have it; \"keep\": they stay, of a file of ranks or a model of SentencePiece; a "
        "constant.\n"
        "pattern, content: as of tokenize().",
    .bind = nullptr,
    .bind_files = BindDetokenize,
});

const FileArgumentRegistration kDetokenizeFile("detokenize",
                                               {.place = 1, .content_of = text::ContentOf});

}  // namespace
}  // namespace penstock::expr
