#include <farmhash.h>

#include <cstring>

#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t buckets = 0;
  absl::Status status = ReadConstant(arguments[1], "num_buckets", 1, INT64_MAX, &buckets);
  if (!status.ok()) return status;
  return BindEachText(
      arguments[0], "input", {DType::kInt64, {}},
      [divisor = static_cast<uint64_t>(buckets)](absl::string_view text, RowOutput& out) {
        const uint64_t bucket = util::Fingerprint64(text.data(), text.size()) % divisor;
        std::memcpy(out.Reserve(sizeof(bucket)), &bucket, sizeof(bucket));
        out.Commit();
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kStringToHashBucketFast({
    .name = "string_to_hash_bucket_fast",
    .signature = "string_to_hash_bucket_fast(input, num_buckets)",
    .doc = "Which of some buckets a text falls into, as tf.strings.to_hash_bucket_fast tells it: "
           "FarmHash's Fingerprint64 modulo their number; int64. The same on every machine, so "
           "that data can be divided by it.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "num_buckets: 1 or more, a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
