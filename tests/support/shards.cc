#include "tests/support/shards.h"

#include <fstream>
#include <iterator>

#include "io/record/example_builder.h"
#include "io/record/tfrecord_writer.h"
#include "tests/support/catch.h"

namespace penstock::test {

std::string MakeRecord(int64_t n, size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(n * 31 + i * 7);
  ExampleBuilder example;
  example.AddBytes("d", data);
  example.AddInt64("n", n);
  return std::string(example.Serialize());
}

void WriteRecords(const std::string& path, const std::vector<std::string>& records) {
  auto writer = TfrecordWriter::Create(path);
  REQUIRE(writer.ok());
  for (const std::string& record : records) REQUIRE((*writer)->Write(record).ok());
  REQUIRE((*writer)->Close().ok());
}

void WriteLists(const std::string& path, int64_t first, int64_t count) {
  std::vector<std::string> records;
  for (int64_t n = first; n < first + count; ++n) {
    ExampleBuilder example;
    example.AddInt64("n", n);
    std::vector<int64_t> ints;
    for (int64_t i = 0; i < n % 7; ++i) ints.push_back(n * 1000 - i);
    if (!ints.empty()) example.AddInt64("ints", ints);
    std::vector<float> floats;
    for (int64_t i = 0; i < n % 3; ++i) floats.push_back(static_cast<float>(n) + 0.25f * i);
    if (!floats.empty()) example.AddFloat("floats", floats);
    std::vector<std::string> texts;
    for (int64_t i = 0; i < n % 4; ++i)
      texts.push_back(std::string(n % 5, 'x') + std::to_string(n * 10 + i));
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    if (!words.empty()) example.AddBytesList("words", words);
    records.emplace_back(example.Serialize());
  }
  WriteRecords(path, records);
}

void WriteShard(const std::string& path, int64_t first, int64_t count, size_t bytes) {
  std::vector<std::string> records;
  for (int64_t n = first; n < first + count; ++n) records.push_back(MakeRecord(n, bytes));
  WriteRecords(path, records);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void FlipBit(const std::string& path, size_t offset) {
  std::string bytes = ReadFile(path);
  REQUIRE(offset < bytes.size());
  bytes[offset] ^= 0x10;
  WriteFile(path, bytes);
}

}  // namespace penstock::test
