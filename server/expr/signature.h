// The parameters of a function as its signature gives them: "decode_jpeg(contents, channels=0,
// dct_method=\"\")".
//
// Threads: any; a pure function.
#pragma once

#include <string_view>
#include <vector>

namespace penstock::expr {

struct SignatureParameter {
  std::string_view name;
  bool required = true;
  // What stands behind the equals sign, as Python writes it: a number, True, False, None, a text in
  // quotes or a list of these. Empty of one that is required.
  std::string_view default_text;
};

// In order; views of the signature. One that is malformed is a bug and ends the process.
std::vector<SignatureParameter> ParametersOf(std::string_view signature);

}  // namespace penstock::expr
