#include "server/python/function_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace penstock::python {
namespace {

constexpr char kMagic[] = "penstock python\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr uint64_t kMaxHeaderBytes = 1 << 20;
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status OtherUser() {
  return absl::PermissionDeniedError(absl::StrCat(
      "the Python function is another user's than the pipeline, which is that of user ", geteuid(),
      ": code runs for its own user alone. Make the pipeline as the user whose function it is"));
}

// What a daemon says of another user's function, which it does not look at.
absl::StatusOr<FunctionFile> Elsewhere(const std::string& path, const std::string& code,
                                       uid_t user) {
  // Of a certificate, and where nobody knows it.
  if (user >= UINT32_MAX - 1) {
    return absl::PermissionDeniedError(
        "a Python function runs for its own user alone, and the pipeline is that of no user of "
        "this host: make it over the daemon's Unix socket");
  }
  constexpr size_t kMostChars = 256;
  if (path.empty() || path.size() > kMostChars || code.empty() || code.size() > kMostChars) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function: expected a path and a code of 1 to ", kMostChars, " bytes, found ", path.size(),
        " and ", code.size(), ": by both a process of user ", user, " finds its function"));
  }
  FunctionFile function;
  function.path = path;
  function.code = code;
  function.user = user;
  return function;
}

absl::Status NoFunction(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("function: ", what, ": ", path,
                   "; the Python client makes such a file (penstock.Dataset.map, python=True)"));
}

bool ReadExactly(int file, void* to, size_t bytes, uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// False where a part is not what it should be.
bool ReadHeader(const std::string& text, FunctionFile* function) {
  const auto header = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return false;
  const auto text_of = [&](const char* key, std::string* to) {
    const auto found = header.find(key);
    if (found == header.end() || !found->is_string()) return false;
    *to = found->get<std::string>();
    return to->find('\0') == std::string::npos;
  };
  const auto list_of = [&](const char* key, std::vector<std::string>* to) {
    const auto found = header.find(key);
    if (found == header.end() || !found->is_array()) return false;
    for (const auto& item : *found) {
      if (!item.is_string()) return false;
      to->push_back(item.get<std::string>());
      if (to->back().find('\0') != std::string::npos) return false;
    }
    return true;
  };
  return text_of("code", &function->code) && text_of("program", &function->program) &&
         list_of("flags", &function->flags) && text_of("script", &function->script) &&
         text_of("folder", &function->folder) && list_of("environment", &function->environment) &&
         !function->program.empty();
}

// What pipelines have open, by path and code.
class OpenFunctions {
 public:
  // Nothing where nobody has it.
  std::optional<FunctionFile> Find(const std::string& path, const std::string& code) {
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find({path, code});
    if (found == functions_.end()) return std::nullopt;
    FunctionFile function = found->second.said;
    function.file = found->second.file.lock();
    if (function.file == nullptr) return std::nullopt;
    return function;
  }

  void Add(const std::string& path, const FunctionFile& function) {
    const std::lock_guard lock(mutex_);
    std::erase_if(functions_, [](const auto& entry) { return entry.second.file.expired(); });
    Entry& entry = functions_[{path, function.code}];
    entry = {function.file, function};
    entry.said.file = nullptr;
  }

 private:
  struct Entry {
    std::weak_ptr<const ring::Descriptor> file;
    FunctionFile said;  // without the file
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Entry> functions_;  // under mutex_
};

OpenFunctions& TheOpenFunctions() {
  static auto* const functions = new OpenFunctions;
  return *functions;
}

absl::StatusOr<FunctionFile> OpenAt(const std::string& path) {
  FunctionFile function;
  function.path = path;
  function.user = geteuid();
  // A pipe's or a device's end would wait, or do something.
  function.file = std::make_shared<const ring::Descriptor>(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const int file = function.file->get();
  if (file < 0) {
    if (errno == EACCES || errno == EPERM) return OtherUser();
    return absl::FailedPreconditionError(
        absl::StrCat("the Python function has gone with the process that made it (", path, ": ",
                     std::strerror(errno), "), and a daemon keeps it for a pipeline as long as it ",
                     "runs itself, not beyond a restart; make the pipeline again from Python"));
  }
  struct stat found = {};
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode))
    return NoFunction(path, "no memory file");
  if (found.st_uid != geteuid()) return OtherUser();
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return NoFunction(path, "no sealed memory file");
  char magic[kMagicBytes];
  uint64_t bytes = 0;
  if (!ReadExactly(file, magic, kMagicBytes, 0) || std::memcmp(magic, kMagic, kMagicBytes) != 0 ||
      !ReadExactly(file, &bytes, sizeof(bytes), kMagicBytes) || bytes > kMaxHeaderBytes)
    return NoFunction(path, "holds no Python function");
  std::string text(bytes, '\0');
  if (!ReadExactly(file, text.data(), bytes, kMagicBytes + sizeof(bytes)) ||
      !ReadHeader(text, &function))
    return NoFunction(path, "holds a Python function of another release");
  return function;
}

}  // namespace

absl::StatusOr<FunctionFile> OpenFunctionFile(const std::string& path, const std::string& code,
                                              std::optional<uid_t> user) {
  if (!user) {
    return absl::PermissionDeniedError(
        "a Python function runs for its own user alone, and nobody has said whose pipeline this "
        "is");
  }
  if (*user != geteuid()) return Elsewhere(path, code, *user);
  absl::StatusOr<FunctionFile> function = OpenAt(path);
  const bool is_it = function.ok() && (code.empty() || function->code == code);
  if (!is_it) {
    if (auto open = TheOpenFunctions().Find(path, code)) return *std::move(open);
    if (!function.ok()) return function;
    return absl::FailedPreconditionError(
        absl::StrCat("the Python function has gone, and another one is in its place (", path,
                     ": expected the code ", code, ", found ", function->code,
                     "); make the pipeline again from Python"));
  }
  TheOpenFunctions().Add(path, *function);
  return function;
}

}  // namespace penstock::python
