#include "server/service/state/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/pending_call.h"
#include "io/file/crc32c.h"

namespace penstock {
namespace {

constexpr char kMagic[] = "PNSTATE1";
constexpr size_t kMagicBytes = 8;
constexpr char kLockName[] = "lock";
constexpr size_t kHeaderBytes = kMagicBytes + sizeof(uint64_t) + sizeof(uint32_t);

absl::Status ErrorOf(const char* what, const std::string& path) {
  return FileError(errno, absl::StrCat(what, " ", path));
}

std::string Framed(std::string_view text) {
  std::string bytes(kMagic, kMagicBytes);
  const uint64_t size = text.size();
  const uint32_t checksum = Crc32c(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  bytes.append(text);
  return bytes;
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrorOf("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

// Makes the folder if it is missing, and takes its lock.
absl::Status TakeFolder(const std::string& path, ring::Descriptor* folder, ring::Descriptor* lock) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    return ErrorOf("cannot make the folder of the daemon's state", path);
  }
  *folder = ring::Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!*folder) return ErrorOf("cannot open the folder of the daemon's state", path);
  const std::string lock_path = absl::StrCat(path, "/", kLockName);
  *lock =
      ring::Descriptor(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!*lock) return ErrorOf("cannot open the lock", lock_path);
  if (flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("another penstockd keeps its state in ", path,
                                                      "; choose another place: --state-dir PATH"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(const std::string& path) {
  ring::Descriptor folder, lock;
  if (absl::Status status = TakeFolder(path, &folder, &lock); !status.ok()) return status;
  return std::unique_ptr<StateFolder>(new StateFolder(path, std::move(folder), std::move(lock)));
}

bool StateFolder::IsInPlace() const {
  struct stat held, named;
  return fstat(lock_.get(), &held) == 0 && stat(PathOf(kLockName).c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

absl::Status StateFolder::PutBack() const {
  ring::Descriptor folder, lock;
  if (absl::Status status = TakeFolder(path_, &folder, &lock); !status.ok()) return status;
  // Others may be using their numbers.
  if (dup3(folder.get(), folder_.get(), O_CLOEXEC) < 0 ||
      dup3(lock.get(), lock_.get(), O_CLOEXEC) < 0)
    return ErrorOf("cannot take", path_);
  std::map<std::string, std::string> texts;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    texts = texts_;
  }
  for (const auto& [name, text] : texts) {
    if (Has(name)) continue;  // written since
    // Nobody waits for the disk here; it is there if this process dies.
    if (absl::Status status = Write(name, text, Durability::kCrash); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void StateFolder::Remember(const std::string& name, std::string_view text) const {
  std::lock_guard<std::mutex> guard(mutex_);
  texts_[name] = std::string(text);
}

absl::Status StateFolder::Write(const std::string& name, std::string_view text,
                                Durability durability) const {
  const std::string path = PathOf(name);
  if (text.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("longer than a file of the daemon's state may be: ", text.size(), " > ",
                     kMaxBytes, " bytes (", path, ")"));
  }
  const std::string temporary = path + ".new";
  const PendingCall call("writing", path, 0, CallKind::kWrite);
  {
    const ring::Descriptor file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
             0640));
    if (!file) return ErrorOf("cannot make", temporary);
    absl::Status status = WriteAll(file.get(), Framed(text), temporary);
    if (status.ok() && durability == Durability::kPowerLoss && fsync(file.get()) != 0) {
      status = ErrorOf("cannot write to the disk", temporary);
    }
    if (!status.ok()) {
      unlink(temporary.c_str());
      return status;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    absl::Status status = ErrorOf("cannot rename", temporary);
    unlink(temporary.c_str());
    return status;
  }
  Remember(name, text);
  if (durability == Durability::kPowerLoss && fsync(folder_.get()) != 0) {
    return ErrorOf("cannot write to the disk", path_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StateFolder::Read(const std::string& name) const {
  const std::string path = PathOf(name);
  const ring::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return ErrorOf("cannot open", path);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::DataLossError(absl::StrCat("no regular file (", path, ")"));
  }
  std::string bytes;
  char buffer[16384];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrorOf("cannot read", path);
    if (count == 0) break;
    bytes.append(buffer, static_cast<size_t>(count));
    if (bytes.size() > kMaxBytes + kHeaderBytes) break;
  }
  uint64_t size = 0;
  uint32_t checksum = 0;
  if (bytes.size() >= kHeaderBytes) {
    std::memcpy(&size, bytes.data() + kMagicBytes, sizeof size);
    std::memcpy(&checksum, bytes.data() + kMagicBytes + sizeof size, sizeof checksum);
  }
  if (bytes.size() < kHeaderBytes || bytes.compare(0, kMagicBytes, kMagic) != 0 ||
      size != bytes.size() - kHeaderBytes ||
      checksum != Crc32c(reinterpret_cast<const uint8_t*>(bytes.data()) + kHeaderBytes, size)) {
    return absl::DataLossError(
        absl::StrCat("the file is not whole: ", bytes.size(), " bytes (", path, ")"));
  }
  std::string text = bytes.substr(kHeaderBytes);
  Remember(name, text);
  return text;
}

bool StateFolder::Has(const std::string& name) const {
  return access(PathOf(name).c_str(), F_OK) == 0;
}

absl::Status StateFolder::Remove(const std::string& name) const {
  const std::string path = PathOf(name);
  {
    std::lock_guard<std::mutex> guard(mutex_);
    texts_.erase(name);
  }
  if (unlink(path.c_str()) == 0) {
    fsync(folder_.get());
    return absl::OkStatus();
  }
  absl::Status status = ErrorOf("cannot remove", path);
  // Where nothing may be removed that is said of what is not there, too.
  return Has(name) ? status : absl::OkStatus();
}

absl::Status StateFolder::Sync() const {
  return fsync(folder_.get()) == 0 ? absl::OkStatus() : ErrorOf("cannot write to the disk", path_);
}

std::vector<std::string> StateFolder::List(std::string_view suffix) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, {suffix.data(), suffix.size()})) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void StateFolder::SetAside(const std::string& name) const {
  {
    std::lock_guard<std::mutex> guard(mutex_);
    texts_.erase(name);
  }
  rename(PathOf(name).c_str(), PathOf(name + ".damaged").c_str());
}

std::string DefaultStateFolder(const std::string& socket) {
  struct Place {
    const char* variable;
    const char* below;
  };
  // The socket's name as one word: '/' becomes '-', and '-' two of them.
  std::string word;
  for (const char c : std::filesystem::absolute(socket).lexically_normal().string()) {
    if (c == '/') {
      if (!word.empty()) word += '-';
    } else {
      word += c == '-' ? std::string("--") : std::string(1, c);
    }
  }
  for (const Place& place :
       {Place{"PENSTOCK_STATE_DIR", "/"}, Place{"STATE_DIRECTORY", "/"},
        Place{"XDG_STATE_HOME", "/penstock/"}, Place{"HOME", "/.local/state/penstock/"}}) {
    const char* folder = std::getenv(place.variable);
    if (folder != nullptr && folder[0] == '/') return absl::StrCat(folder, place.below, word);
  }
  return "";
}

}  // namespace penstock
