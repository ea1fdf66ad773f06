#include <bit>
#include <cstring>
#include <vector>

#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

// SipHash-2-4 (Aumasson and Bernstein, 2012).
class SipHash {
 public:
  SipHash(uint64_t key0, uint64_t key1)
      : v0_(key0 ^ 0x736f6d6570736575),
        v1_(key1 ^ 0x646f72616e646f6d),
        v2_(key0 ^ 0x6c7967656e657261),
        v3_(key1 ^ 0x7465646279746573) {}

  // Of one text; `this` is used up.
  uint64_t Of(absl::string_view text) {
    const auto length = static_cast<uint64_t>(text.size());
    StopLook look;
    for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
      look.Did(sizeof(uint64_t));
      Add(Word(text));
    }
    // The length's last byte stands above those that are left.
    Add(Word(text) | length << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  // Up to eight bytes, the first lowest.
  static uint64_t Word(absl::string_view text) {
    uint64_t word = 0;
    for (size_t i = 0; i < text.size() && i < sizeof(word); ++i)
      word |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
    return word;
  }

  void Add(uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  void Round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t buckets = 0;
  absl::Status status = ReadConstant(arguments[1], "num_buckets", 1, INT64_MAX, &buckets);
  if (!status.ok()) return status;
  const auto* const key = arguments[2].literal == nullptr
                              ? nullptr
                              : std::get_if<std::vector<int64_t>>(arguments[2].literal);
  if (key == nullptr || key->size() != 2) return WrongArgument("key", "two constant integers");
  return BindEachText(
      arguments[0], "input", {DType::kInt64, {}},
      [divisor = static_cast<uint64_t>(buckets),
       hash = SipHash(static_cast<uint64_t>((*key)[0]), static_cast<uint64_t>((*key)[1]))](
          absl::string_view text, RowOutput& out) {
        const uint64_t bucket = SipHash(hash).Of(text) % divisor;
        std::memcpy(out.Reserve(sizeof(bucket)), &bucket, sizeof(bucket));
        out.Commit();
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "string_to_hash_bucket_strong",
    .signature = "string_to_hash_bucket_strong(input, num_buckets, key)",
    .doc = "Which of some buckets a text falls into, as tf.strings.to_hash_bucket_strong tells it: "
           "SipHash-2-4 with the key, modulo their number; int64. Who does not know the key cannot "
           "make texts that fall into one.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "num_buckets: 1 or more, a constant.\n"
           "key: two constant integers.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
