// Gives the ids of many documents: tokenize_documents TOKENIZER PATTERN DOCUMENTS IDS ROUNDS
// ADD_SPECIAL_TOKENS.
//
// DOCUMENTS holds, for each document, its length (uint32) and its bytes; IDS gets, for each, the
// number of its ids (uint32) and the ids (uint32). With ROUNDS above 0 the documents are gone
// through so often once more, and a line of JSON says what that cost: {"tokens", "bytes", "cpu_s":
// of each round}.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "server/text/shared.h"
#include "server/text/unicode/utf8.h"

namespace {

using namespace penstock;  // NOLINT: a program

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "tokenize_documents: %s\n", status.ToString().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(
        stderr,
        "usage: tokenize_documents TOKENIZER PATTERN DOCUMENTS IDS ROUNDS ADD_SPECIAL_TOKENS\n");
    return 2;
  }
  FileSystem& files = LocalFileSystem();
  const auto content = text::ContentOf(argv[1], files);
  if (!content.ok()) Fail(content.status());
  const auto tokenizer = text::OpenTokenizer(argv[1], *content, argv[2], files);
  if (!tokenizer.ok()) Fail(tokenizer.status());
  std::ifstream in(argv[3], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::string_view> documents;
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size();) {
    uint32_t length;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    at += sizeof(length);
    documents.push_back(std::string_view(bytes).substr(at, length));
    at += length;
  }
  text::EncodeOptions options;
  options.add_special_tokens = std::atoi(argv[6]) != 0;
  std::FILE* const out = std::fopen(argv[4], "wb");
  if (out == nullptr) return 2;
  const int rounds = std::atoi(argv[5]);
  size_t tokens = 0;
  std::string seconds;
  for (int round = 0; round <= rounds; ++round) {
    const double before = CpuSeconds();
    tokens = 0;
    for (const std::string_view document : documents) {
      // As the function does for each row.
      if (text::FindInvalidUtf8(document) != std::string_view::npos)
        Fail(absl::DataLossError("expected UTF-8"));
      const auto scratch = (*tokenizer)->Borrow();
      if (absl::Status status = (*tokenizer)->Encode(document, options, *scratch); !status.ok())
        Fail(status);
      const auto ids = (*scratch).ids.span();
      tokens += ids.size();
      if (round > 0) continue;
      const auto count = static_cast<uint32_t>(ids.size());
      std::fwrite(&count, sizeof(count), 1, out);
      std::fwrite(ids.data(), sizeof(uint32_t), ids.size(), out);
    }
    if (round > 0) seconds += (seconds.empty() ? "" : ", ") + std::to_string(CpuSeconds() - before);
  }
  std::fclose(out);
  std::printf("{\"tokens\": %zu, \"bytes\": %zu, \"cpu_s\": [%s]}\n", tokens,
              bytes.size() - 4 * documents.size(), seconds.c_str());
  return 0;
}
