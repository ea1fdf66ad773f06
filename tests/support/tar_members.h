// Tar files in memory, a member at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "io/record/tar_head.h"

namespace penstock::test {

// A member whose header holds: its path has less than 100 bytes.
inline std::string TarMember(const std::string& path, const std::string& data, char type = '0') {
  std::string head(kTarBlockBytes, '\0');
  head.replace(0, path.size(), path);
  char size[12];
  std::snprintf(size, sizeof(size), "%011llo", static_cast<unsigned long long>(data.size()));
  head.replace(124, 11, size, 11);
  head[156] = type;
  head.replace(257, 8, std::string("ustar\00000", 8));
  head.replace(148, 8, 8, ' ');
  uint32_t sum = 0;
  for (const char c : head) sum += static_cast<uint8_t>(c);
  char text[16];
  std::snprintf(text, sizeof(text), "%06o", sum);
  head.replace(148, 8, std::string(text, 6) + std::string(1, '\0') + " ");
  return head + data + std::string(TarPadded(data.size()) - data.size(), '\0');
}

// Of paths and data.
inline std::string TarArchive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  for (const auto& [path, data] : members) bytes += TarMember(path, data);
  return bytes + std::string(2 * kTarBlockBytes, '\0');
}

}  // namespace penstock::test
