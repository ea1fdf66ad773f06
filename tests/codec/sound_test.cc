// SoundDecoder beside libsndfile's values (tests/golden/make_sound_goldens.py), and files that are
// cut or damaged, of which libsndfile gives what it can. Needs libsndfile.
#include "server/codec/sound.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::testing {
namespace {

struct Sound {
  std::string name;
  std::string file;
  SoundShape shape;
  std::vector<float> values;
  float tolerance = 0;
  // The golden has the length that libsndfile guessed, and the sound goes on.
  bool guessed = false;
};

std::vector<Sound> ReadGoldens() {
  std::ifstream file(InTree("tests/golden/sounds.json"));
  std::vector<Sound> sounds;
  const auto goldens = nlohmann::json::parse(file);
  for (const auto& read : goldens["cases"]) {
    Sound sound;
    sound.name = read["name"];
    sound.shape = {.samples = read["shape"][0],
                   .channels = read["shape"][1],
                   .sample_rate = read["sample_rate"]};
    sound.tolerance = read["tolerance"];
    sound.guessed = read["guessed"];
    REQUIRE(absl::Base64Unescape(read["file"].get<std::string>(), &sound.file));
    std::string values;
    REQUIRE(absl::Base64Unescape(read["audio"].get<std::string>(), &values));
    sound.values.resize(values.size() / sizeof(float));
    std::memcpy(sound.values.data(), values.data(), values.size());
    sounds.push_back(std::move(sound));
  }
  REQUIRE(sounds.size() > 10);
  return sounds;
}

const std::vector<Sound>& Goldens() {
  static const auto* const sounds = new std::vector<Sound>(ReadGoldens());
  return *sounds;
}

const Sound& Golden(const std::string& name) {
  for (const Sound& sound : Goldens()) {
    if (sound.name == name) return sound;
  }
  FAIL("no golden " << name);
  return Goldens().front();
}

// In memory of exactly that size, so that a sanitizer sees what is read beyond it.
absl::StatusOr<std::vector<float>> Decode(const std::string& file, SoundShape* shape = nullptr) {
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  SoundDecoder decoder;
  const auto found = decoder.Start(bytes);
  if (!found.ok()) return found.status();
  if (shape != nullptr) *shape = *found;
  std::vector<float> values(static_cast<size_t>(found->samples * found->channels));
  if (absl::Status status = decoder.Decode(found->samples, found->channels, values.data());
      !status.ok())
    return status;
  return values;
}

std::string ErrorOf(const std::string& file) {
  const auto values = Decode(file);
  REQUIRE_FALSE(values.ok());
  CHECK(values.status().code() == absl::StatusCode::kDataLoss);
  return std::string(values.status().message());
}

TEST_CASE("sound: the values of libsndfile") {
  for (const Sound& sound : Goldens()) {
    INFO(sound.name);
    SoundShape shape;
    const auto values = Decode(sound.file, &shape);
    INFO(values.status().message());
    REQUIRE(values.ok());
    CHECK(shape.channels == sound.shape.channels);
    CHECK(shape.sample_rate == sound.shape.sample_rate);
    // The decoder's own delay, which is left out where a count stands in front.
    const int64_t delay = sound.guessed ? 529 : 0;
    if (sound.guessed) CHECK((shape.samples + delay) % 1152 == 0);
    if (sound.guessed) CHECK(shape.samples >= sound.shape.samples - delay);
    if (!sound.guessed) CHECK(shape.samples == sound.shape.samples);
    const auto skipped = static_cast<size_t>(delay * shape.channels);
    REQUIRE(values->size() + skipped >= sound.values.size());
    float farthest = 0;
    for (size_t i = skipped; i < sound.values.size(); ++i)
      farthest = std::max(farthest, std::abs((*values)[i - skipped] - sound.values[i]));
    CHECK(farthest <= sound.tolerance);
    CHECK(*SoundSampleRate({reinterpret_cast<const uint8_t*>(sound.file.data()),
                            sound.file.size()}) == sound.shape.sample_rate);
  }
}

TEST_CASE("sound: fewer and more channels and samples") {
  for (const char* name : {"flac 16", "flac of unknown length"}) {
    const Sound& sound = Golden(name);
    const std::vector<uint8_t> bytes(sound.file.begin(), sound.file.end());
    for (const int64_t samples : {int64_t{1}, int64_t{999}, int64_t{1200}}) {
      for (const int64_t channels : {1, 2, 3}) {
        CAPTURE(name, samples, channels);
        SoundDecoder decoder;
        REQUIRE(decoder.Start(bytes).ok());
        std::vector<float> values(static_cast<size_t>(samples * channels), 7);
        REQUIRE(decoder.Decode(samples, channels, values.data()).ok());
        bool equal = true;
        for (int64_t i = 0; i < samples; ++i) {
          for (int64_t c = 0; c < channels; ++c) {
            const float wanted =
                i < sound.shape.samples ? sound.values[i * 2 + std::min<int64_t>(c, 1)] : 0;
            equal = equal && values[i * channels + c] == wanted;
          }
        }
        CHECK(equal);
      }
    }
  }
}

// A file whose length stands nowhere is whole where a frame ends. What follows the frames of an MP3
// file is a tag, or zeros.
TEST_CASE("fault 21a: sound: every cut of a file") {
  for (const char* name : {"flac 8 mono", "flac one sample", "vorbis mono", "opus mono",
                           "mp3 of MPEG 2", "mp3 varying"}) {
    const std::string& file = Golden(name).file;
    for (size_t size = 0; size < file.size(); ++size) {
      CAPTURE(name, size);
      const std::string error = ErrorOf(file.substr(0, size));
      if (size < 2) CHECK_THAT(error, Catch::Contains(" by its first bytes: "));
    }
  }
}

TEST_CASE("fault 21a: sound: every other bit of an OGG file, and of FLAC's frames") {
  for (const char* name : {"opus mono", "flac 8 mono"}) {
    const Sound& sound = Golden(name);
    for (size_t at = 0; at < sound.file.size(); ++at) {
      CAPTURE(name, at);
      std::string file = sound.file;
      file[at] = static_cast<char>(file[at] ^ 1 << at % 8);
      const auto values = Decode(file);
      // What is in FLAC's head beside sizes is nobody's affair: frames have their own.
      if (name[0] == 'f' && values.ok()) {
        CHECK(at < 8192);
        CHECK((*values == sound.values || at < 42));
      } else {
        CHECK(values.status().code() == absl::StatusCode::kDataLoss);
      }
    }
  }
}

TEST_CASE("fault 21a: sound: any byte of an MP3 file another one") {
  const Sound& sound = Golden("mp3 varying");
  size_t refused = 0;
  for (size_t at = 0; at < sound.file.size(); ++at) {
    CAPTURE(at);
    std::string file = sound.file;
    file[at] = static_cast<char>(~file[at]);
    const auto values = Decode(file);
    refused += !values.ok();
    if (values.ok()) CHECK(values->size() / 2 <= 6912);
  }
  CHECK(refused > 0);
}

TEST_CASE("fault 21a: sound: heads that make no sense") {
  const std::string& flac = Golden("flac 16").file;
  const std::string& ogg = Golden("vorbis").file;
  const std::string& mp3 = Golden("mp3 constant").file;
  const auto with = [](std::string file, size_t at, const std::string& bytes) {
    return file.replace(at, bytes.size(), bytes);
  };
  const struct {
    std::string file;
    const char* message;
  } kCases[] = {
      {"", "no WAV, FLAC, OGG or MP3 file by its first bytes: 0 bytes"},
      {"FORM....AIFF", "no WAV, FLAC, OGG or MP3 file by its first bytes: 12 bytes"},
      {std::string("ID3\4\0\0\0\0\0\x7f", 10), "by its first bytes: 10 bytes"},
      {"RIFF....WAVE", "WAV data is damaged: no samples"},
      {with(flac, 4, std::string("\4", 1)), "a block of type 4 at offset 8"},
      {with(flac, 5, std::string("\xff", 1)), "of which the file has"},
      {with(flac, 7, "\x21"), "expected a first block of 34 bytes, found 33"},
      {with(flac, 18, std::string("\0\0\x02", 3)), "a sample rate of 0 a second"},
      {with(flac, 21, std::string("\xff\xff\xff\xff\xff", 5)),
       "expected 68719476735 samples, more than its"},
      {with(flac, 25, "\xff"), "FLAC data is damaged: expected "},
      {ogg + "x", "expected its end, found 1 bytes"},
      {ogg + ogg, "expected its end, found"},
      {with(ogg, 5, std::string("\0", 1)), "a wrong checksum of the page at offset 0"},
      {mp3 + "x", "no frame of layer III at offset"},
      {mp3 + mp3, "frames, found"},
      {"\xff\xfb", "no frame of layer III at offset 0"},
      {mp3 + Golden("mp3 mono").file, "channels and 48000 samples a second, behind others of"},
  };
  for (const auto& test : kCases) {
    CAPTURE(test.message);
    CHECK_THAT(ErrorOf(test.file), Catch::Contains(test.message));
  }
}

// The checksum of an Ogg page, a bit at a time (RFC 3533).
uint32_t OggChecksum(const std::string& page) {
  uint32_t sum = 0;
  for (const char byte : page) {
    sum ^= static_cast<uint32_t>(static_cast<uint8_t>(byte)) << 24;
    for (int bit = 0; bit < 8; ++bit) sum = sum << 1 ^ ((sum >> 31) != 0 ? 0x04c11db7 : 0);
  }
  return sum;
}

// The file, whose last page says that so many samples end there.
std::string OggOfLength(std::string file, uint64_t samples) {
  const size_t at = file.rfind("OggS");
  std::memcpy(&file[at + 6], &samples, sizeof(samples));
  std::memset(&file[at + 22], 0, 4);
  const uint32_t sum = OggChecksum(file.substr(at));
  std::memcpy(&file[at + 22], &sum, sizeof(sum));
  return file;
}

TEST_CASE("fault 21a: sound: a forged number of samples is an error, and takes no memory") {
  for (const char* name : {"vorbis", "vorbis mono", "opus", "opus mono"}) {
    const std::string& file = Golden(name).file;
    uint64_t own = 0;
    std::memcpy(&own, &file[file.rfind("OggS") + 6], sizeof(own));
    CHECK(OggOfLength(file, own) == file);
    for (const uint64_t samples :
         {uint64_t{1} << 31, uint64_t{1} << 62, UINT64_MAX >> 1, UINT64_MAX - 1}) {
      CAPTURE(name, samples);
      CHECK_THAT(
          ErrorOf(OggOfLength(file, samples)),
          Catch::Contains("OGG data is damaged: ") &&
              Catch::Contains(absl::StrCat(" ends at sample ", static_cast<int64_t>(samples))));
    }
  }
  // MP3's number of frames has 32 bits, and FLAC's of samples 36 (above).
  std::string mp3 = Golden("mp3 constant").file;
  const size_t name_at = std::min(mp3.find("Xing"), mp3.find("Info"));
  REQUIRE(name_at < mp3.size());
  mp3.replace(name_at + 8, 4, 4, '\xff');
  CHECK_THAT(ErrorOf(mp3), Catch::Contains("expected 4294967295 frames, found"));
}

TEST_CASE("sound: tags behind an MP3 file") {
  const Sound& sound = Golden("mp3 constant");
  for (const std::string& tag : {"TAG" + std::string(125, 'x'), std::string("APETAGEXetc"),
                                 std::string("LYRICSBEGIN"), std::string(100, '\0')}) {
    CAPTURE(tag);
    const auto values = Decode(sound.file + tag);
    REQUIRE(values.ok());
    CHECK(*values == *Decode(sound.file));
  }
}

}  // namespace
}  // namespace penstock::testing
