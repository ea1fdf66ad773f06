// The requests that write an object, and what is answered: in the XML of S3, which Google Cloud Storage takes as well.
//
//     PUT object                             all of it at once
//     POST object?uploads=                   begins one in parts: its answer names the upload
//     PUT object?partNumber=N&uploadId=U     a part; the answer's ETag goes into the list of parts
//     POST object?uploadId=U                 the list of parts: now there is an object
//     DELETE object?uploadId=U               there will be none
//
// Threads:  any; no state.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/http/http_message.h"

namespace penstock {

// `object`: its request (ObjectStore::Object).
HttpRequest PutWhole(HttpRequest object, std::string bytes);
HttpRequest BeginParts(HttpRequest object);
// `number`: from 1 on.
HttpRequest PutPart(HttpRequest object, const std::string& upload, int number, std::string bytes);
HttpRequest EndParts(HttpRequest object, const std::string& upload,
                     const std::vector<std::string>& tags);
HttpRequest AbortParts(HttpRequest object, const std::string& upload);

// What BeginParts() was answered.
absl::StatusOr<std::string> UploadIn(const std::string& body, const std::string& shown);
// What EndParts() was answered: with 200, before the server knows how it ends, and then an error all the same. Unavailable: ask again.
absl::Status EndOfParts(const std::string& body, const std::string& shown);

// The tag that S3 gives to an object of these parts: MD5 of their MD5s. "": of other tags than those.
std::string TagOfParts(const std::vector<std::string>& tags);

}  // namespace penstock
