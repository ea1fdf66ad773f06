// A tensor of a spec, as it is found when the plan is made: its values, or the file that has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/signature.h"
#include "io/array/npy_header.h"
#include "io/array/zip_directory.h"

namespace penstock {

struct TensorSource {
  std::string name;  // "": a lone tensor
  TensorType type;

  // Its values in C order: numbers as their bytes, or strings.
  std::string numbers;
  std::vector<std::string> strings;

  // Or where they are: in a file of the manifest that comes with it.
  bool in_file = false;
  uint32_t file = 0;
  NpyHeader header;
  std::optional<ZipMember> member;  // of an .npz file
};

}  // namespace penstock
