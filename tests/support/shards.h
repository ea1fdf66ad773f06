// Small TFRecord files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::test {

// One record: an Example with `n` (int64) and `d` (bytes made from n, of the given length).
std::string MakeRecord(int64_t n, size_t bytes);

// Writes records n = first … first + count - 1.
void WriteShard(const std::string& path, int64_t first, int64_t count, size_t bytes = 8);

// Records n = first … first + count - 1: `n` and lists of it: `ints` of n % 7, `floats` of n % 3
// and `words` of n % 4 values, where an empty list is missing.
void WriteLists(const std::string& path, int64_t first, int64_t count);

void WriteRecords(const std::string& path, const std::vector<std::string>& records);

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// Flips one bit of the file's byte at `offset`.
void FlipBit(const std::string& path, size_t offset);

}  // namespace penstock::test
