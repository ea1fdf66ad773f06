#include "io/array/npy_header.h"

#include <string>

#include "tests/support/arrays.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::NpyHeaderText;
using test::NpyWithText;

absl::StatusOr<NpyHeader> Parse(const std::string& bytes) {
  // A copy of just that size, so that a sanitizer sees a read behind it.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  return ParseNpyHeader(exact);
}

TEST_CASE("npy: types, shapes and where the values begin") {
  const struct {
    std::string bytes;
    DType dtype;
    Shape shape;
    NpyElement element;
    uint64_t data_bytes;
  } cases[] = {
      {NpyHeaderText("|b1", "(3,)"), DType::kBool, {3}, NpyElement::kNumber, 3},
      {NpyHeaderText("|i1", "()"), DType::kInt8, {}, NpyElement::kNumber, 1},
      {NpyHeaderText("<u2", "(2, 0, 5)"), DType::kUint16, {2, 0, 5}, NpyElement::kNumber, 0},
      {NpyHeaderText("<i8", "(7, 2)"), DType::kInt64, {7, 2}, NpyElement::kNumber, 112},
      {NpyHeaderText("<f2", "(4,)"), DType::kFloat16, {4}, NpyElement::kNumber, 8},
      {NpyHeaderText("=f8", "(4,)"), DType::kFloat64, {4}, NpyElement::kNumber, 32},
      {NpyHeaderText("<f4", "(4L, 1L)"), DType::kFloat32, {4, 1}, NpyElement::kNumber, 16},
      {NpyHeaderText("<f4", "(4,)", "True"), DType::kFloat32, {4}, NpyElement::kNumber, 16},
      {NpyHeaderText("|S5", "(4,)"), DType::kString, {4}, NpyElement::kBytes, 20},
      {NpyHeaderText("<U5", "(4,)"), DType::kString, {4}, NpyElement::kUnicode, 80},
      {NpyHeaderText("|V2", "(4,)"), DType::kInvalid, {4}, NpyElement::kUntyped, 8},
      {NpyHeaderText(">i1", "(4,)"), DType::kInt8, {4}, NpyElement::kNumber, 4},
      {NpyWithText("{\"shape\":(2,),\"fortran_order\" : False , 'descr':'<i4'}", 2),
       DType::kInt32,
       {2},
       NpyElement::kNumber,
       8},
      {NpyWithText("  {'shape': (2,), 'fortran_order': False, 'descr': '<i4', }   \n", 3),
       DType::kInt32,
       {2},
       NpyElement::kNumber,
       8},
  };
  for (const auto& c : cases) {
    INFO(c.bytes);
    const auto header = Parse(c.bytes + "values");
    INFO(header.status().ToString());
    REQUIRE(header.ok());
    CHECK(header->type.dtype == c.dtype);
    CHECK(header->type.shape == c.shape);
    CHECK(header->element == c.element);
    CHECK(header->data_offset == c.bytes.size());
    CHECK(header->data_bytes == c.data_bytes);
  }
}

TEST_CASE("fault 20a: npy: what cannot be read is refused with the reason") {
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {"", "does not begin as one"},
      {"\x93NUMPX\1\0  {}", "does not begin as one"},
      {NpyWithText("{}", 4), "unknown version: expected 1.0 to 3.0, found 4.0"},
      {NpyWithText("{}"), "descr, fortran_order and shape, and no more"},
      {NpyWithText("{'descr': '<i4', 'fortran_order': False}"), "and no more"},
      {NpyWithText("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)} x"), "and no more"},
      {NpyWithText("{'descr': '<i4', 'descr': '<i4'}"), "each once"},
      {NpyWithText("{'other': 1}"), "each once"},
      {NpyWithText("{'descr': '<i4' 'shape': (1,)}"), "\",\" or \"}\""},
      {NpyWithText("{'descr: 1}"), "a key in quotes"},
      {NpyWithText("{'desc\\x72': 1}"), "a key in quotes"},
      {NpyWithText("{'descr' '<i4'}"), "\":\""},
      {NpyWithText("['descr']"), "\"{\""},
      {NpyWithText("{'descr': [('a', '<i4')]}"), "structures"},
      {NpyWithText("{'fortran_order': 0}"), "True or False"},
      {NpyWithText("{'shape': 3}"), "\"(\""},
      {NpyWithText("{'shape': (-1,)}"), "a size of 63 bits"},
      {NpyWithText("{'shape': (3 4)}"), "\",\" or \")\""},
      {NpyWithText("{'shape': (9223372036854775808,)}"), "a size of 63 bits"},
      {NpyWithText("{'shape': ("), "a size of 63 bits"},
      {NpyHeaderText("<i4", "(4294967296, 4294967296)"), "impossible size"},
      {NpyHeaderText("<i4", "(2305843009213693952,)"), "impossible size"},
      {NpyHeaderText("|S0", "(4294967296,)"), "impossible size"},
      {NpyHeaderText("<i4", "(2, 3)", "True"), "Fortran order"},
      {NpyHeaderText(">i4", "(2,)"), "big-endian"},
      {NpyHeaderText(">U4", "(2,)"), "big-endian"},
      {NpyHeaderText("|O", "(2,)"), "Python objects"},
      {NpyHeaderText("<c8", "(2,)"), "of type \"<c8\""},
      {NpyHeaderText("<M8[s]", "(2,)"), "of type \"<M8[s]\""},
      {NpyHeaderText("<i3", "(2,)"), "of type \"<i3\""},
      {NpyHeaderText("|V8", "(2,)"), "of type \"|V8\""},
      {NpyHeaderText("<", "(2,)"), "of type \"<\""},
      {NpyHeaderText("<f99999999999", "(2,)"), "of type"},
      {NpyWithText(std::string(70000, ' '), 2), "longer than one may be: 70000"},
  };
  for (const auto& c : cases) {
    INFO(c.bytes.substr(0, 200));
    const auto header = Parse(c.bytes);
    CHECK(header.status().code() == absl::StatusCode::kInvalidArgument);
    INFO(header.status().message());
    CHECK(std::string(header.status().message()).find(c.message) != std::string::npos);
  }
  std::string axes = "(";
  for (int i = 0; i < 65; ++i) axes += "1,";
  CHECK(std::string(Parse(NpyHeaderText("<i4", axes + ")")).status().message()).find("64 axes") !=
        std::string::npos);
}

TEST_CASE("fault 20a: npy: a header that is cut anywhere is refused") {
  for (const int version : {1, 2}) {
    const std::string whole =
        NpyWithText("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2)}", version);
    REQUIRE(Parse(whole).ok());
    for (size_t size = 0; size < whole.size(); ++size)
      CHECK_FALSE(Parse(whole.substr(0, size)).ok());
  }
}

}  // namespace
}  // namespace penstock
