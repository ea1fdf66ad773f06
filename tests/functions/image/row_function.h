// Calls a row function as the expression compiler would: bind by position, run one row, collect the
// tiles.
//
// Threads:  one.
// Owns:     the results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "server/expr/function.h"
#include "tests/support/catch.h"

namespace penstock::testing {

// Collects tiles; each is given on its own heap block with only the promised slack, so that a
// sanitizer sees more.
class CollectedOutput final : public expr::RowOutput {
 public:
  void SetShape(const Shape& shape) override {
    CHECK(++times_shaped_ == 1);
    CHECK(tile_bytes_max_ == 0);
    shape_ = shape;
  }

  uint8_t* Reserve(size_t bytes) override {
    reserved_ = bytes;
    tile_bytes_max_ = std::max(tile_bytes_max_, bytes);
    tile_ = std::make_unique<uint8_t[]>(bytes + 64);
    return tile_.get();
  }

  void Commit() override {
    bytes_.insert(bytes_.end(), tile_.get(), tile_.get() + reserved_);
    tile_.reset();
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  const Shape& shape() const { return shape_; }
  int times_shaped() const { return times_shaped_; }
  size_t tile_bytes_max() const { return tile_bytes_max_; }

 private:
  std::vector<uint8_t> bytes_;
  Shape shape_;
  int times_shaped_ = 0;
  size_t tile_bytes_max_ = 0;
  size_t reserved_ = 0;
  std::unique_ptr<uint8_t[]> tile_;
};

// An argument that has a literal value, or none: not given.
struct LiteralArgument {
  LiteralArgument() : given(false) {}
  template <typename T>
  LiteralArgument(T v) : given(true), value(std::move(v)) {}  // NOLINT: to write them as a list

  bool given;
  expr::Literal value;
};

inline absl::StatusOr<expr::BoundRowFunction> Bind(const std::string& name, const TensorType& first,
                                                   const std::vector<LiteralArgument>& rest) {
  const expr::FunctionEntry* const entry = expr::FindFunction(name);
  REQUIRE(entry != nullptr);
  const auto* const function = std::get_if<expr::RowFunction>(&entry->function);
  REQUIRE(function != nullptr);
  REQUIRE(entry->parameters.size() == rest.size() + 1);
  std::vector<expr::Argument> arguments(1);
  arguments[0].type = first;
  for (const LiteralArgument& literal : rest) {
    expr::Argument argument;
    argument.given = literal.given;
    argument.literal = literal.given ? &literal.value : nullptr;
    arguments.push_back(argument);
  }
  return function->bind(arguments);
}

}  // namespace penstock::testing
