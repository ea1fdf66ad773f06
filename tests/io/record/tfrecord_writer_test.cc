#include "io/record/tfrecord_writer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "io/file/crc32c.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

std::string TemporaryFolder() {
  std::string path = std::filesystem::temp_directory_path() / "penstock-writer-XXXXXX";
  REQUIRE(mkdtemp(path.data()) != nullptr);
  return path;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("The checksum is CRC-32C") {
  // The check value of the Rocksoft catalogue, and one of RFC 3720 (B.4): 32 bytes of zeros.
  CHECK(Crc32c(reinterpret_cast<const uint8_t*>("123456789"), 9) == 0xe3069283);
  const uint8_t zeros[32] = {};
  CHECK(Crc32c(zeros, sizeof zeros) == 0x8a9136aa);
}

TEST_CASE("A file equals TensorFlow's, byte for byte") {
  const std::string folder = TemporaryFolder();
  const std::string path = folder + "/a.tfrecord";
  auto writer = TfrecordWriter::Create(path);
  REQUIRE(writer.ok());
  REQUIRE((*writer)->Write("").ok());
  REQUIRE((*writer)->Write("penstock").ok());
  CHECK_FALSE(std::filesystem::exists(path));
  REQUIRE((*writer)->Close().ok());
  CHECK((*writer)->num_records() == 2);
  // with tf.io.TFRecordWriter(path) as w: w.write(b""); w.write(b"penstock")
  const std::string golden(
      "\x00\x00\x00\x00\x00\x00\x00\x00\x29\x03\x98\x07"
      "\xd8\xea\x82\xa2"
      "\x08\x00\x00\x00\x00\x00\x00\x00\xff\x86\x24\x0f"
      "penstock"
      "\x67\x53\x3d\x79",
      40);
  CHECK(Contents(path) == golden);
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("Records larger than the buffer are kept whole") {
  const std::string folder = TemporaryFolder();
  auto writer = TfrecordWriter::Create(folder + "/a");
  REQUIRE(writer.ok());
  for (size_t size : {size_t{5} << 20, size_t{1}, (size_t{1} << 20) - 16}) {
    REQUIRE((*writer)->Write(std::string(size, 'x')).ok());
  }
  REQUIRE((*writer)->Close().ok());
  CHECK(std::filesystem::file_size(folder + "/a") ==
        (size_t{5} << 20) + 1 + (size_t{1} << 20) - 16 + 3 * 16);
  std::filesystem::remove_all(folder);
}

TEST_CASE("A writer that is given up leaves no file") {
  const std::string folder = TemporaryFolder();
  {
    auto writer = TfrecordWriter::Create(folder + "/a");
    REQUIRE(writer.ok());
    REQUIRE((*writer)->Write("x").ok());
  }
  CHECK(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_CASE("A folder that is not there is named") {
  auto writer = TfrecordWriter::Create("/nowhere/at/all/a.tfrecord");
  REQUIRE_FALSE(writer.ok());
  CHECK(writer.status().code() == absl::StatusCode::kNotFound);
  CHECK(std::string(writer.status().message()).find("/nowhere/at/all/a.tfrecord") !=
        std::string::npos);
}

}  // namespace
}  // namespace penstock
