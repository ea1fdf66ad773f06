#include "server/engine/read/array_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/shown_url.h"
#include "server/codec/wire.h"
#include "server/engine/read/file_array.h"

namespace penstock {
namespace {

// numpy.savez adds it to each array's name.
constexpr std::string_view kSuffix = ".npy";

}  // namespace

absl::StatusOr<uint32_t> ArrayFiles::Add(const std::string& path) {
  for (uint32_t i = 0; i < manifest_.size(); ++i) {
    if (manifest_[i].path == path) return i;
  }
  if (IsAddress(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected arrays in a file of this machine, found an address: copy it (",
                     ShownUrl(path), ")"));
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(path);
  if (!file.ok()) return file.status();
  manifest_.push_back(EntryOf(**file));
  open_.push_back(*std::move(file));
  members_.emplace_back();
  return static_cast<uint32_t>(manifest_.size() - 1);
}

absl::StatusOr<const std::vector<ZipMember>*> ArrayFiles::Members(uint32_t file) {
  if (!members_[file]) {
    absl::StatusOr<std::vector<ZipMember>> members = ReadZipDirectory(*open_[file]);
    if (!members.ok()) return members.status();
    members_[file].emplace(*std::move(members));
  }
  return &*members_[file];
}

absl::StatusOr<TensorSource> ArrayFiles::ReadNpy(const std::string& path) {
  absl::StatusOr<uint32_t> file = Add(path);
  if (!file.ok()) return file.status();
  const uint64_t bytes = manifest_[*file].size_bytes;
  std::vector<uint8_t> beginning(std::min<uint64_t>(bytes, kMaxNpyHeaderBytes));
  absl::StatusOr<size_t> read = open_[*file]->ReadAt(0, absl::MakeSpan(beginning));
  if (!read.ok()) return read.status();
  return Read(*file, absl::MakeConstSpan(beginning).first(*read), bytes, std::nullopt);
}

absl::StatusOr<std::vector<std::string>> ArrayFiles::List(const std::string& path) {
  absl::StatusOr<uint32_t> file = Add(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<const std::vector<ZipMember>*> members = Members(*file);
  if (!members.ok()) return members.status();
  std::vector<std::string> names;
  for (const ZipMember& member : **members) {
    if (!member.name.ends_with(kSuffix)) continue;
    const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    if (name.empty() || !wire::IsUtf8(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("array ", names.size(), " of the file has no name of UTF-8 (", path, ")"));
    }
    names.push_back(name);
  }
  return names;
}

absl::StatusOr<TensorSource> ArrayFiles::ReadNpz(const std::string& path,
                                                 const std::string& array) {
  absl::StatusOr<std::vector<std::string>> known = List(path);
  if (!known.ok()) return known.status();
  absl::StatusOr<uint32_t> file = Add(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<const std::vector<ZipMember>*> members = Members(*file);
  if (!members.ok()) return members.status();
  for (const ZipMember& member : **members) {
    if (member.name == absl::StrCat(array, kSuffix.data())) return ReadMember(*file, member);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no array \"", array, "\"", DidYouMean(array, *known), " (", path, ")"));
}

absl::StatusOr<TensorSource> ArrayFiles::ReadMember(uint32_t file, const ZipMember& member) {
  if (member.deflated && member.plain_bytes > kMaxInflatedBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a deflated array longer than one may be: ", member.plain_bytes, " > ", kMaxInflatedBytes,
        " bytes; numpy.savez stores it (", manifest_[file].path, ", \"", member.name, "\")"));
  }
  std::vector<uint8_t> beginning(std::min<uint64_t>(member.plain_bytes, kMaxNpyHeaderBytes));
  absl::StatusOr<size_t> read =
      member.deflated ? InflateBeginning(*open_[file], member, absl::MakeSpan(beginning))
                      : open_[file]->ReadAt(member.data_offset, absl::MakeSpan(beginning));
  if (!read.ok()) return read.status();
  return Read(file, absl::MakeConstSpan(beginning).first(*read), member.plain_bytes, member);
}

absl::StatusOr<TensorSource> ArrayFiles::Read(uint32_t file, absl::Span<const uint8_t> beginning,
                                              uint64_t bytes,
                                              std::optional<ZipMember> member) const {
  const std::string place = absl::StrCat(
      " (", manifest_[file].path, member ? absl::StrCat(", \"", member->name, "\"") : "", ")");
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(beginning);
  if (!header.ok())
    return absl::Status(header.status().code(), absl::StrCat(header.status().message(), place));
  if (header->data_bytes > bytes - header->data_offset) {
    return absl::DataLossError(
        absl::StrCat("the file ends inside of the array: ", header->data_bytes,
                     " bytes from offset ", header->data_offset, " on, of ", bytes, place));
  }
  TensorSource source;
  source.type = header->type;
  source.in_file = true;
  source.file = file;
  source.header = *std::move(header);
  source.member = std::move(member);
  return source;
}

}  // namespace penstock
