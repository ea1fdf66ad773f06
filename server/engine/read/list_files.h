// The files that a source's paths and globs stand for.
//
// Threads: any; no state.
// Cost:    each file is looked at, for its size and identity; in a file system that is not the machine's own it is opened.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/engine/read/file_table.h"

namespace penstock {

// In the byte order of their paths; a file that several patterns match comes as often. An error when there is no pattern, or one
// matches nothing.
absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   FileSystem& files);

// The entry of an open file.
FileEntry EntryOf(const RandomAccessFile& file);

}  // namespace penstock
