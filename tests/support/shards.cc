#include "tests/support/shards.h"

#include <fstream>
#include <iterator>

#include "server/io/example_builder.h"
#include "server/io/tfrecord_writer.h"
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
