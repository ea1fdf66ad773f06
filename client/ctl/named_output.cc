#include "client/ctl/named_output.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "client/ctl/named_files.h"
#include "io/remote/object_writer.h"

namespace penstock::ctl {
namespace {

// Keeps the client as long as the object is written.
class ObjectSink final : public ByteSink {
 public:
  ObjectSink(std::shared_ptr<RemoteClient> client, std::unique_ptr<ObjectWriter> object)
      : client_(std::move(client)), object_(std::move(object)) {}
  absl::Status Write(absl::string_view bytes) override { return object_->Write(bytes); }
  absl::Status Close() override { return object_->Close(); }

 private:
  const std::shared_ptr<RemoteClient> client_;
  const std::unique_ptr<ObjectWriter> object_;
};

}  // namespace

absl::StatusOr<NamedOutput> NamedOutput::For(const std::string& path) {
  NamedOutput output;
  if (!IsAddress(path)) return output;
  absl::StatusOr<RemoteOptions> options = NamedFiles::Options();
  if (!options.ok()) return options.status();
  output.client_ = std::make_shared<RemoteClient>(*std::move(options), ProcessEnvironment());
  return output;
}

absl::StatusOr<std::unique_ptr<TfrecordWriter>> NamedOutput::Create(const std::string& path) const {
  if (client_ == nullptr) return TfrecordWriter::Create(path);
  absl::StatusOr<std::unique_ptr<ObjectWriter>> object = ObjectWriter::Create(*client_, path);
  if (!object.ok()) return object.status();
  return std::make_unique<TfrecordWriter>(
      path, std::make_unique<ObjectSink>(client_, *std::move(object)));
}

absl::StatusOr<std::vector<std::string>> NamedOutput::NamesIn(const std::string& folder) const {
  std::vector<std::string> names;
  if (client_ == nullptr) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      names.push_back(entry.path().filename().string());
    return names;
  }
  const absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(absl::StrCat(folder, "/*"));
  if (!url.ok()) return url.status();
  const absl::StatusOr<std::vector<FoundObject>> found = client_->List(*url);
  if (!found.ok()) return found.status();
  for (const FoundObject& object : *found)
    names.push_back(object.url.key.substr(object.url.key.rfind('/') + 1));
  return names;
}

}  // namespace penstock::ctl
