#include "server/text/shared.h"

#include <map>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "io/file/crc32c.h"
#include "server/text/scan/published.h"

namespace penstock::text {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path, FileSystem& files) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  const uint64_t size = (*file)->size();
  if (size > kTokenizerFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer file larger than the limit: ", size,
                                                   " > ", kTokenizerFileBytesMax, " bytes (", path,
                                                   ")"));
  }
  std::string bytes(size, '\0');
  const absl::StatusOr<size_t> read =
      (*file)->ReadAt(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), size));
  if (!read.ok()) return read.status();
  if (*read < size) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file became shorter while it was read: ", size, " bytes, then ", *read,
                     " (", path, ")"));
  }
  return bytes;
}

bool IsJson(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{';
}

// SentencePiece's ModelProto: field 1, a piece, which begins with its field 1, a text.
bool IsSentencePiece(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  return bytes.size() > 4 && byte(0) == 0x0a && byte(1) < 0x80 && byte(2) == 0x0a &&
         byte(3) + 2 <= byte(1);
}

// "cl100k_base" of "/models/cl100k_base.tiktoken".
std::string StemOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

// Which published pattern a file of ranks has by its name; "": none, or another file.
std::string PatternOfName(const std::string& path, const std::string& bytes) {
  if (IsJson(bytes) || IsSentencePiece(bytes)) return "";
  const PublishedPattern* const pattern = FindPatternByName(StemOf(path));
  return pattern == nullptr ? "" : std::string(pattern->name);
}

// What a file holds, and what its name adds to that.
std::string ContentOfBytes(const std::string& path, const std::string& bytes) {
  const std::string pattern = PatternOfName(path, bytes);
  return absl::StrCat(
      absl::StrFormat("%d-%08x", bytes.size(),
                      Crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())),
      pattern.empty() ? "" : "-", pattern);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Make(const std::string& bytes, std::string pattern) {
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos)
    return absl::InvalidArgumentError(
        "expected a tokenizer.json, a file of ranks or a model of SentencePiece, found an empty "
        "file");
  if (IsJson(bytes)) {
    if (!pattern.empty())
      return absl::InvalidArgumentError("pattern: expected none, as a tokenizer.json has its own");
    return MakeJsonTokenizer(bytes);
  }
  if (IsSentencePiece(bytes)) {
    if (!pattern.empty())
      return absl::InvalidArgumentError(
          "pattern: expected none, as a model of SentencePiece has its own rules");
    return MakeSentencePieceTokenizer(bytes);
  }
  return MakeRankTokenizer(bytes, {std::move(pattern)});
}

struct Table {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const Tokenizer>> tokenizers;  // guarded by mutex
};

Table& AllTokenizers() {
  static auto& table = *new Table;
  return table;
}

}  // namespace

absl::StatusOr<std::string> ContentOf(const std::string& path, FileSystem& files) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, files);
  if (!bytes.ok()) return bytes.status();
  return ContentOfBytes(path, *bytes);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> OpenTokenizer(const std::string& path,
                                                               const std::string& content,
                                                               const std::string& pattern,
                                                               FileSystem& files) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, files);
  if (!bytes.ok()) return bytes.status();
  const std::string found = ContentOfBytes(path, *bytes);
  if (found != content) {
    return absl::FailedPreconditionError(
        absl::StrCat("the tokenizer's file holds something else than when the pipeline was made: "
                     "expected content \"",
                     content, "\", found \"", found, "\" (", path, ")"));
  }
  const std::string cuts = pattern.empty() ? PatternOfName(path, *bytes) : pattern;
  // The checksum that people see is short.
  const std::string key = absl::StrCat(bytes->size(), " ", MixKey(0, *bytes), " ", cuts);
  Table& table = AllTokenizers();
  {
    const std::lock_guard lock(table.mutex);
    const auto known = table.tokenizers.find(key);
    if (known != table.tokenizers.end())
      if (auto tokenizer = known->second.lock(); tokenizer != nullptr) return tokenizer;
  }
  auto made = Make(*bytes, cuts);
  if (!made.ok()) {
    return absl::Status(made.status().code(),
                        absl::StrCat(made.status().message(), " (", path, ")"));
  }
  std::shared_ptr<const Tokenizer> tokenizer = *std::move(made);
  const std::lock_guard lock(table.mutex);
  for (auto entry = table.tokenizers.begin(); entry != table.tokenizers.end();)
    entry = entry->second.expired() ? table.tokenizers.erase(entry) : std::next(entry);
  // Somebody else may have made the same one meanwhile.
  std::weak_ptr<const Tokenizer>& place = table.tokenizers[key];
  if (auto known = place.lock(); known != nullptr) return known;
  place = tokenizer;
  return tokenizer;
}

}  // namespace penstock::text
