// Tokenizers of files, one for all calls that name the same content.
//
// Threads:  safe from any thread.
// Owns:     a tokenizer lives as long as somebody has it.
// Limits:   files of up to kTokenizerFileBytesMax.
// Cost:     making one reads its file, builds its tables and holds no lock; one that is there
//           already costs reading its file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "server/text/tokenizer.h"

namespace penstock::text {

// How a plan knows a file: its length and a checksum, and for a file of ranks the published pattern
// that its name says. Errors name the file.
absl::StatusOr<std::string> ContentOf(const std::string& path, FileSystem& files);

// By the beginning of the file: a tokenizer.json, a file of ranks or a model of SentencePiece.
// `content`: what ContentOf() has to say; another one is FailedPrecondition. `pattern`: of a file
// of ranks; "": the name of the file without its ending.
absl::StatusOr<std::shared_ptr<const Tokenizer>> OpenTokenizer(const std::string& path,
                                                               const std::string& content,
                                                               const std::string& pattern,
                                                               FileSystem& files);

}  // namespace penstock::text
