// An S3 of one bucket within the test, that takes objects whole and in parts, and whose answers a test may change.
//
// Threads:  the store is asked from the server's; its members are read between requests, or with the mutex held.
#pragma once

#include <openssl/evp.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/remote/small_http_server.h"

namespace penstock::test {

inline std::string HexDigest(const std::string& bytes, const EVP_MD* kind) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), sum, &size, kind, nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(sum), size});
}

class SmallObjectStore {
 public:
  // What `change` answers in the place of the store; before or after the store has done what it was asked for.
  using Change = std::function<std::optional<std::string>(const SmallRequest& request, int number)>;

  explicit SmallObjectStore(Change before = {}, Change behind = {})
      : before_(std::move(before)),
        behind_(std::move(behind)),
        server_([this](const SmallRequest& request) { return Serve(request); }) {}

  std::string url() const { return server_.url(); }

  std::mutex mutex;
  std::map<std::string, std::string> objects;                 // by "/bucket/key"
  std::map<std::string, std::string> tags;                    // likewise
  std::map<std::string, std::map<int, std::string>> uploads;  // by id
  std::vector<std::string> asked;                             // methods and targets
  int bad_sums = 0;  // bodies that were not what their hash said

 private:
  static std::string Kind(const SmallRequest& request) {
    if (absl::StrContains(request.target, "partNumber=")) return "part";
    if (absl::StrContains(request.target, "uploads=")) return "begin";
    if (absl::StrContains(request.target, "uploadId="))
      return request.method == "DELETE" ? "abort" : "end";
    return request.method;
  }

  std::string Serve(const SmallRequest& request) {
    const std::string kind = Kind(request);
    int number = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      asked.push_back(kind);
      number = counts_[kind]++;
      const std::string sum = request.Header("x-amz-content-sha256");
      if (sum != "unsigned-payload" && sum != HexDigest(request.body, EVP_sha256())) ++bad_sums;
    }
    if (before_) {
      if (std::optional<std::string> answer = before_(request, number)) return *answer;
    }
    std::string answer = Do(kind, request);
    if (behind_) {
      if (std::optional<std::string> other = behind_(request, number)) return *other;
    }
    return answer;
  }

  std::string Do(const std::string& kind, const SmallRequest& request) {
    std::lock_guard<std::mutex> lock(mutex);
    const std::string path = request.target.substr(0, request.target.find('?'));
    const size_t at = request.target.find("uploadId=");
    const std::string id = at == std::string::npos ? "" : request.target.substr(at + 9);
    if (kind == "PUT") {
      objects[path] = request.body;
      tags[path] = absl::StrCat("\"", HexDigest(request.body, EVP_md5()), "\"");
      return Answer("200 OK", absl::StrCat("ETag: ", tags[path], "\r\n"), "");
    }
    if (kind == "begin") {
      const std::string made = absl::StrCat("upload-", uploads.size());
      uploads[made];
      return Answer("200 OK", "",
                    absl::StrCat("<?xml version=\"1.0\"?><InitiateMultipartUploadResult><UploadId>",
                                 made, "</UploadId></InitiateMultipartUploadResult>"));
    }
    if (kind == "part" || kind == "end" || kind == "abort") {
      if (!uploads.contains(id))
        return Answer("404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>");
      std::map<int, std::string>& parts = uploads[id];
      if (kind == "part") {
        const int part = std::stoi(request.target.substr(request.target.find("partNumber=") + 11));
        parts[part] = request.body;
        return Answer("200 OK",
                      absl::StrCat("ETag: \"", HexDigest(request.body, EVP_md5()), "\"\r\n"), "");
      }
      if (kind == "end") {
        std::string whole, sums;
        for (const auto& [part, bytes] : parts) {
          if (!absl::StrContains(request.body, absl::StrCat("<PartNumber>", part, "</PartNumber>")))
            return Answer("400 Bad Request", "", "<Error><Code>InvalidPart</Code></Error>");
          whole += bytes;
          sums += absl::HexStringToBytes(HexDigest(bytes, EVP_md5()));
        }
        objects[path] = whole;
        tags[path] = absl::StrCat("\"", HexDigest(sums, EVP_md5()), "-", parts.size(), "\"");
      }
      uploads.erase(id);
      return Answer("200 OK", "", kind == "end" ? "\n\n<CompleteMultipartUploadResult/>" : "");
    }
    if (!objects.contains(path)) return Answer("404 Not Found", "", "");
    return AnswerRange(request, objects[path], tags[path]);
  }

  const Change before_;
  const Change behind_;
  std::map<std::string, int> counts_;  // under mutex
  const SmallHttpServer server_;
};

}  // namespace penstock::test
