// Tokenizers: texts to ids and back, as the libraries do whose files they are made of.
//
// Threads:  a Tokenizer is constant and safe from any thread. A Scratch serves one call at a time;
//           Borrow() is safe from any thread.
// Owns:     a tokenizer its tables, and the Scratches that nobody has.
// Limits:   files of up to kTokenizerFileBytesMax; ids below 2^31. Long texts look for a stop.
// Errors:   DataLoss: a text that is no UTF-8, with the place of the first wrong byte, or an id
//           that is none.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/text/bpe/id_buffer.h"
#include "server/text/bpe/word_cache.h"

namespace penstock::text {

inline constexpr uint64_t kTokenizerFileBytesMax = uint64_t{256} << 20;

struct EncodeOptions {
  bool add_special_tokens = true;
  // 0: as many as there are, or as the file says.
  int64_t max_length = 0;
};

// What one call at a time needs.
struct Scratch {
  WordCache cache;
  IdBuffer ids;
  std::string text;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // REQUIRES: valid UTF-8. The ids go to `scratch.ids`, which is emptied before.
  virtual absl::Status Encode(std::string_view text, const EncodeOptions& options,
                              Scratch& scratch) const = 0;

  // How many ids stand around a text's own where add_special_tokens.
  virtual size_t num_added() const { return 0; }

  // `skip_special_tokens`: leaves out what is no text. The bytes need be no UTF-8 where
  // `keep_bytes`, else U+FFFD stands for what is none.
  virtual absl::Status Decode(absl::Span<const uint32_t> ids, bool skip_special_tokens,
                              bool keep_bytes, std::string* text) const = 0;

  // A Scratch that goes back by itself.
  class Borrowed {
   public:
    Borrowed(const Tokenizer& from, std::unique_ptr<Scratch> scratch)
        : from_(from), scratch_(std::move(scratch)) {}
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Scratch& operator*() const { return *scratch_; }

   private:
    const Tokenizer& from_;
    std::unique_ptr<Scratch> scratch_;
  };
  Borrowed Borrow() const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;  // guarded by mutex_
};

// What a file of ranks does not say itself.
struct RankFileOptions {
  std::string pattern;  // a name of scan/published.h or a regular expression
};

// Each of the bytes of a file. InvalidArgument names the place in the file.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeJsonTokenizer(std::string_view file);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeRankTokenizer(std::string_view file,
                                                             const RankFileOptions& options);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(std::string_view file);

}  // namespace penstock::text
