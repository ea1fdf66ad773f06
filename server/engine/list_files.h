// The files that a source's paths and globs stand for.
//
// Threads: any; no state.
// Cost:    that of the file system's listing.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/base/file.h"
#include "server/engine/file_table.h"

namespace penstock {

// In the byte order of their paths; a file that several patterns match comes as often. An error when there is no pattern, or one
// matches nothing.
absl::StatusOr<Manifest> ListFiles(const google::protobuf::RepeatedPtrField<std::string>& patterns,
                                   FileSystem& files);

// The entry of an open file.
FileEntry EntryOf(const RandomAccessFile& file);

}  // namespace penstock
