// WavDecoder: damage, and what TensorFlow and libsndfile have no verdict on. Their values are
// compared by tests/client/python_audio_test.py.
#include "server/codec/wav.h"

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

std::string Little(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string Chunk(const std::string& name, const std::string& data) {
  return name + Little(data.size(), 4) + data;
}

std::string Format(int tag, int channels, uint32_t rate, int bits) {
  const int frame = channels * bits / 8;
  return Chunk("fmt ", Little(tag, 2) + Little(channels, 2) + Little(rate, 4) +
                           Little(static_cast<uint64_t>(rate) * frame, 4) + Little(frame, 2) +
                           Little(bits, 2));
}

std::string File(const std::string& chunks) {
  return "RIFF" + Little(chunks.size() + 4, 4) + "WAVE" + chunks;
}

// Where the bytes end a page that may not be read beyond is the sanitizer's affair: they lie in
// memory of their own.
absl::StatusOr<std::vector<float>> Decode(const std::string& file, WavShape* shape = nullptr) {
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  WavDecoder decoder;
  const auto found = decoder.Start(bytes.data(), bytes.size());
  if (!found.ok()) return found.status();
  if (shape != nullptr) *shape = *found;
  std::vector<float> samples(static_cast<size_t>(found->samples * found->channels));
  decoder.Decode(found->samples, found->channels, samples.data());
  return samples;
}

const std::string kTwo = Chunk("data", std::string("\x00\x80\xff\x7f", 4));

TEST_CASE("fault 21a: wav: every cut of a file") {
  const std::string file = File(Chunk("JUNK", "abcdef") + Format(1, 1, 8000, 16) + kTwo);
  REQUIRE(*Decode(file) == std::vector<float>{-1, 32767 / 32768.0F});
  for (size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    const auto samples = Decode(file.substr(0, size));
    REQUIRE_FALSE(samples.ok());
    CHECK(samples.status().code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(
        std::string(samples.status().message()),
        Catch::StartsWith(size < 12 ? "no WAV file by its first bytes" : "WAV data is damaged: "));
  }
}

TEST_CASE("fault 21a: wav: heads that make no sense") {
  const struct {
    std::string chunks;
    const char* message;
  } kCases[] = {
      {Format(1, 0, 8000, 16) + kTwo, "expected 1 to 1024 channels, found 0"},
      {Format(1, 1025, 8000, 16) + kTwo, "expected 1 to 1024 channels, found 1025"},
      {Format(1, 1, 0, 16) + kTwo, "a sample rate of 0 a second"},
      {Format(1, 1, 0x80000000, 16) + kTwo, "a sample rate of 2147483648 a second"},
      {Format(1, 1, 8000, 12) + kTwo, "format 1 of 12 bits"},
      {Format(2, 1, 8000, 4) + kTwo, "another encoding than PCM of 8, 16, 24 or 32 bits"},
      {Format(3, 1, 8000, 16) + kTwo, "format 3 of 16 bits"},
      {Chunk("fmt ", "abc") + kTwo, "a format of 16 bytes at least, found 3"},
      {Chunk("fmt ", Little(1, 2) + Little(2, 2) + Little(8000, 4) + Little(0, 4) + Little(2, 2) +
                         Little(16, 2)) +
           kTwo,
       "expected 4 bytes for a sample of all channels, found 2"},
      {kTwo + Format(1, 1, 8000, 16), "samples before their format"},
      {Format(1, 1, 8000, 16), "no samples"},
      {Format(1, 1, 8000, 16) + "data" + Little(5, 4) + "abcd",
       "a chunk of 5 bytes at offset 44, of which the file has 4"},
      {"JUNK" + Little(0xfffffffe, 4), "a chunk of 4294967294 bytes at offset 20"},
  };
  for (const auto& test : kCases) {
    const auto samples = Decode(File(test.chunks));
    REQUIRE_FALSE(samples.ok());
    CHECK_THAT(std::string(samples.status().message()), Catch::Contains(test.message));
  }
}

TEST_CASE("A file whose length nobody wrote down goes to its end") {
  WavShape shape;
  const auto samples =
      Decode(File(Format(1, 2, 8000, 16) + "data" + Little(0xffffffff, 4) + std::string(11, '\0')),
             &shape);
  REQUIRE(samples.ok());
  // What is left of the last sample counts for nothing.
  CHECK(shape.samples == 2);
  CHECK(shape.channels == 2);
  CHECK(shape.sample_rate == 8000);
}

}  // namespace
}  // namespace penstock::testing
