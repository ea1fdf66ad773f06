#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/in_pieces.h"
#include "base/large_charge.h"
#include "server/expr/arguments.h"
#include "server/expr/graph.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

constexpr int64_t kSplitsMax = int64_t{1} << 31;

// Of more parts than a row may have none is looked for: they are refused.
constexpr size_t kPartsMax = kMaxRowElements;

// Of a part beside its bytes, as StopLook counts it.
constexpr uint64_t kPartWork = 16;

// At white space: none of the parts is empty, but for the rest behind `limit` of them.
std::vector<absl::string_view> AtSpace(absl::string_view text, int64_t limit, LargeCharge& charge) {
  const auto is_space = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  const auto strip = [&] {
    text.remove_prefix(FindInPieces(text, 0, [&](char c) { return !is_space(c); }));
  };
  std::vector<absl::string_view> parts;
  StopLook look;
  strip();
  while (!text.empty() && parts.size() <= kPartsMax) {
    const size_t end = FindInPieces(text, 0, is_space);
    look.Did(end + kPartWork);
    charge.MakeRoom(parts, 2);
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    strip();
    if (static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
  }
  return parts;
}

// As text.find(sep).
size_t Find(absl::string_view sep, absl::string_view text) {
  for (size_t at = 0;; at += kPieceValues) {
    const absl::string_view piece = text.substr(at, kPieceValues + sep.size() - 1);
    const size_t found = piece.find(sep);
    if (found != absl::string_view::npos) return at + found;
    if (at + piece.size() == text.size()) return absl::string_view::npos;
    CheckStop();
  }
}

// At each `sep`, up to `limit` of them.
std::vector<absl::string_view> At(absl::string_view sep, absl::string_view text, int64_t limit,
                                  LargeCharge& charge) {
  std::vector<absl::string_view> parts;
  StopLook look;
  while (parts.size() <= kPartsMax && (limit < 0 || static_cast<int64_t>(parts.size()) < limit)) {
    const size_t end = Find(sep, text);
    if (end == absl::string_view::npos) break;
    look.Did(end + kPartWork);
    charge.MakeRoom(parts, 2);
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + sep.size());
  }
  parts.push_back(text);
  return parts;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string sep;
  int64_t limit = -1;
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "sep", &sep),
                  ReadConstant(arguments[2], "maxsplit", -1, kSplitsMax, &limit)});
  if (!status.ok()) return status;
  return BindEachText(arguments[0], "input", {DType::kString, {kUnknownSize}},
                      [sep, limit](absl::string_view text, RowOutput& out) {
                        LargeCharge charge;
                        std::vector<absl::string_view> parts = {text};
                        if (limit != 0) {
                          parts = sep.empty() ? AtSpace(text, limit, charge)
                                              : At(sep, text, limit, charge);
                        }
                        return PutTexts(parts, out);
                      });
}

const RowFunctionRegistration kStringSplit({
    .name = "string_split",
    .signature = "string_split(input, sep=\"\", maxsplit=-1)",
    .doc = "The parts of a text, as tf.strings.split finds them.\n"
           "\n"
           "input: a string, which becomes a tensor of strings, (n,); or a tensor of strings, "
           "all with as many parts, (..., n).\n"
           "sep: what stands between two parts, of any length; \"\": white space of ASCII, "
           "however much, where no part is empty; a constant.\n"
           "maxsplit: after so many parts the rest is one, which may be empty; 0: the text as it "
           "is; -1: all; a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
