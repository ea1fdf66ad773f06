#include "server/engine/stage/predicate.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<Predicate> Predicate::Create(const Signature& signature, expr::MapSource source,
                                            const std::string& condition) {
  if (condition.empty())
    return absl::InvalidArgumentError("predicate: expected an expression, found none");
  source.outs = {absl::StrCat("predicate = ", condition)};
  absl::StatusOr<std::unique_ptr<expr::Program>> program = expr::Compile(signature, {source});
  if (!program.ok()) return program.status();
  const TensorType& type = (*program)->output().front().type;
  if (type != TensorType{DType::kBool, {}}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "predicate: expected bool (), found ", TypeToString(type),
        type.dtype == DType::kBool
            ? "; all or any make one flag of several, and what is to be decided of each "
              "element of a batch stands in front of it"
            : "; a comparison, such as x != 0, makes a flag"));
  }
  return Predicate(*std::move(program));
}

RowStatus Predicate::Run(int rows, absl::Span<const Column> in, const uint8_t** holds,
                         Arena& arena) const {
  uint8_t* const values = arena.Allocate(rows);
  *holds = values;
  uint8_t* const targets[] = {values};
  return program_->Run(rows, in, targets, arena);
}

}  // namespace penstock
