#include "io/remote/object_upload.h"

#include <openssl/evp.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

HttpRequest Made(HttpRequest object, const char* method, const std::string& query,
                 std::string body) {
  object.method = method;
  object.url += query;
  object.body = std::move(body);
  // libcurl would say that it is a form.
  object.headers.push_back("Content-Type: application/octet-stream");
  // Only stalls end it: how long it takes depends on the network.
  object.timeout_ms = 0;
  return object;
}

std::string Query(const std::string& upload) {
  return absl::StrCat("uploadId=", EncodeQuery(upload));
}

}  // namespace

HttpRequest PutWhole(HttpRequest object, std::string bytes) {
  return Made(std::move(object), "PUT", "", std::move(bytes));
}

HttpRequest BeginParts(HttpRequest object) {
  return Made(std::move(object), "POST", "?uploads=", "");
}

HttpRequest PutPart(HttpRequest object, const std::string& upload, int number, std::string bytes) {
  return Made(std::move(object), "PUT", absl::StrCat("?partNumber=", number, "&", Query(upload)),
              std::move(bytes));
}

HttpRequest EndParts(HttpRequest object, const std::string& upload,
                     const std::vector<std::string>& tags) {
  pugi::xml_document document;
  pugi::xml_node list = document.append_child("CompleteMultipartUpload");
  list.append_attribute("xmlns") = "http://s3.amazonaws.com/doc/2006-03-01/";
  for (size_t i = 0; i < tags.size(); ++i) {
    pugi::xml_node part = list.append_child("Part");
    part.append_child("PartNumber").text() = static_cast<unsigned int>(i + 1);
    part.append_child("ETag").text() = tags[i].c_str();
  }
  std::ostringstream text;
  document.save(text, "", pugi::format_raw);
  return Made(std::move(object), "POST", absl::StrCat("?", Query(upload)), text.str());
}

HttpRequest AbortParts(HttpRequest object, const std::string& upload) {
  return Made(std::move(object), "DELETE", absl::StrCat("?", Query(upload)), "");
}

absl::StatusOr<std::string> UploadIn(const std::string& body, const std::string& shown) {
  pugi::xml_document document;
  const bool is_parsed = bool{document.load_buffer(body.data(), body.size())};
  const std::string upload =
      document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (is_parsed && !upload.empty()) return upload;
  return absl::DataLossError(absl::StrCat("expected the XML of an upload's beginning, found ",
                                          body.size(), " bytes of something else (", shown, ")"));
}

absl::Status EndOfParts(const std::string& body, const std::string& shown) {
  pugi::xml_document document;
  // Servers send white space in front of it, so that the connection does not look dead.
  const bool is_parsed = bool{document.load_buffer(body.data(), body.size())};
  if (is_parsed && document.child("CompleteMultipartUploadResult")) return absl::OkStatus();
  std::string code = document.child("Error").child_value("Code");
  if (!std::all_of(code.begin(), code.end(), absl::ascii_isalnum)) code.clear();
  return absl::UnavailableError(absl::StrCat(
      "the server did not make one object of its parts: ",
      code.empty() ? absl::StrCat(body.size(), " bytes of no answer") : code, " (", shown, ")"));
}

std::string TagOfParts(const std::vector<std::string>& tags) {
  std::string sums;
  for (const std::string& tag : tags) {
    absl::string_view text = tag;
    absl::ConsumePrefix(&text, "\"");
    absl::ConsumeSuffix(&text, "\"");
    if (text.size() != 32 || !std::all_of(text.begin(), text.end(), absl::ascii_isxdigit))
      return "";
    sums += absl::HexStringToBytes(text);
  }
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  // A system may have no MD5.
  if (EVP_Digest(sums.data(), sums.size(), sum, &bytes, EVP_md5(), nullptr) != 1) return "";
  return absl::StrCat("\"", absl::BytesToHexString({reinterpret_cast<const char*>(sum), bytes}),
                      "-", tags.size(), "\"");
}

}  // namespace penstock
