// Files that a function's argument names and that are read when a plan is made. The plan writes
// into the text what each of them holds, as the argument "content": so cursors know a file by its
// content and not by its place, and a pipeline that goes on refuses a file that holds something
// else.
//
// Threads:  registration before main(); the rest is safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace penstock::expr {

struct FileArgument {
  int place;  // of the path among the parameters; its function has a parameter "content" besides
  // What is written for a path.
  absl::StatusOr<std::string> (*content_of)(const std::string& path, FileSystem& files);
};

// Register by static object beside the function itself.
struct FileArgumentRegistration {
  FileArgumentRegistration(std::string_view function, const FileArgument& argument);
};

// The text of an assignment, or of an expression alone, with `content="..."` in every call of such
// a function that lacks it and has its path as a text. A text that cannot be parsed is left as it
// is: who compiles it says what is wrong. Errors: those of content_of.
absl::StatusOr<std::string> WithContents(std::string_view text, FileSystem& files);

// The text without the paths of calls that have their "content".
std::string WithoutFilePaths(std::string_view text);

}  // namespace penstock::expr
