#include <cstring>

#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

// MurmurHash64A (Appleby), which is public domain, with the seed that TensorFlow gives it.
uint64_t MurmurHash(absl::string_view text) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995, kSeed = 0xdecafcaffe;
  const auto mix = [](uint64_t value) { return value ^ value >> 47; };
  uint64_t hash = kSeed ^ text.size() * kFactor;
  StopLook look;
  for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    look.Did(sizeof(uint64_t));
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof(word));
    hash = (hash ^ mix(word * kFactor) * kFactor) * kFactor;
  }
  if (!text.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    hash = (hash ^ rest) * kFactor;
  }
  return mix(mix(hash) * kFactor);
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t buckets = 0;
  absl::Status status = ReadConstant(arguments[1], "num_buckets", 1, INT64_MAX, &buckets);
  if (!status.ok()) return status;
  return BindEachText(
      arguments[0], "input", {DType::kInt64, {}},
      [divisor = static_cast<uint64_t>(buckets)](absl::string_view text, RowOutput& out) {
        const uint64_t bucket = MurmurHash(text) % divisor;
        std::memcpy(out.Reserve(sizeof(bucket)), &bucket, sizeof(bucket));
        out.Commit();
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "string_to_hash_bucket",
    .signature = "string_to_hash_bucket(input, num_buckets)",
    .doc = "Which of some buckets a text falls into, as tf.strings.to_hash_bucket of TensorFlow "
           "2.21 tells it: MurmurHash64A modulo their number; int64. TensorFlow may change it, and "
           "says to use to_hash_bucket_fast.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "num_buckets: 1 or more, a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
