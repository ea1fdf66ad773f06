// What is wrong with a text of protobuf's: the first of the parser's errors.
#pragma once

#include <google/protobuf/io/tokenizer.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::ctl {

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text.empty()) text = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }

  std::string text;
};

}  // namespace penstock::ctl
