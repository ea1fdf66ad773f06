// Python's grammar of expressions, as far as arrays need it. Precedence, loosest first: comparison,
// |, ^, &, + and -, * / // %, unary - + ~, **.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/lexer.h"
#include "server/expr/syntax.h"

namespace penstock::expr {
namespace {

struct BinaryOperator {
  std::string_view symbol;
  int precedence;
  std::string_view function;
};

constexpr int kComparison = 1;
constexpr BinaryOperator kOperators[] = {
    {"==", kComparison, "equal"},
    {"!=", kComparison, "not_equal"},
    {"<", kComparison, "less"},
    {"<=", kComparison, "less_equal"},
    {">", kComparison, "greater"},
    {">=", kComparison, "greater_equal"},
    {"|", 2, "bitwise_or"},
    {"^", 3, "bitwise_xor"},
    {"&", 4, "bitwise_and"},
    {"<<", 5, "left_shift"},
    {">>", 5, "right_shift"},
    {"+", 6, "add"},
    {"-", 6, "subtract"},
    {"*", 7, "multiply"},
    {"/", 7, "divide"},
    {"//", 7, "floor_divide"},
    {"%", 7, "remainder"},
};

const BinaryOperator* FindOperator(const Token& token) {
  if (token.kind != Token::Kind::kSymbol) return nullptr;
  for (const BinaryOperator& candidate : kOperators) {
    if (candidate.symbol == token.text) return &candidate;
  }
  return nullptr;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<Assignment> ParseAll() {
    Assignment assignment;
    if (auto status = ParseTarget(assignment.name); !status.ok()) return status;
    auto value = ParseBinary(kComparison);
    if (!value.ok()) return value.status();
    if (Now().kind != Token::Kind::kEnd) return Unexpected("an operator or the end of text");
    assignment.value = std::move(*value);
    return assignment;
  }

 private:
  using Result = absl::StatusOr<SyntaxPtr>;

  // Counts nesting for the lifetime of a call.
  struct Nested {
    explicit Nested(int& depth) : depth_(++depth) {}
    ~Nested() { --depth_; }
    int& depth_;
  };

  const Token& Now() const { return tokens_[next_]; }
  Token Take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool Accept(std::string_view symbol) {
    if (!Now().Is(symbol)) return false;
    Take();
    return true;
  }

  absl::Status Unexpected(const std::string& expected) const {
    return ErrorAt(Now().column, absl::StrCat("expected ", expected, ", found ", Describe(Now())));
  }
  absl::Status Expect(std::string_view symbol) {
    if (Accept(symbol)) return absl::OkStatus();
    return Unexpected(absl::StrCat("'", std::string(symbol), "'"));
  }

  // A name in front of '='. Path names such as image/encoded, and any others in quotes, are allowed
  // here.
  absl::Status ParseTarget(std::string& name) {
    if (Now().kind == Token::Kind::kText) {
      name = Take().text;
    } else {
      while (Now().kind == Token::Kind::kName || Now().kind == Token::Kind::kInteger ||
             Now().Is("/") || Now().Is("-")) {
        name += Take().text;
      }
    }
    if (name.empty()) return Unexpected("`name = expression`");
    return Expect("=");
  }

  static SyntaxPtr Make(Syntax::Kind kind, int column) {
    auto node = std::make_unique<Syntax>();
    node->kind = kind;
    node->column = column;
    return node;
  }

  static SyntaxPtr MakeCall(std::string_view function, int column, SyntaxPtr a,
                            SyntaxPtr b = nullptr) {
    SyntaxPtr call = Make(Syntax::Kind::kCall, column);
    call->text = function;
    call->children.push_back(std::move(a));
    if (b != nullptr) call->children.push_back(std::move(b));
    call->keywords.resize(call->children.size());
    return call;
  }

  Result ParseBinary(int precedence) {
    const Nested nested(depth_);
    if (depth_ > kMaxDepth) {
      return ErrorAt(Now().column, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    Result left = ParseUnary();
    if (!left.ok()) return left;
    bool compared = false;
    for (;;) {
      const BinaryOperator* op = FindOperator(Now());
      if (op == nullptr || op->precedence < precedence) break;
      if (op->precedence == kComparison && std::exchange(compared, true)) {
        return ErrorAt(Now().column, "comparisons do not chain: write (a < b) & (b < c)");
      }
      const Token token = Take();
      // A long sum nests to the left without recursion, but its tree is walked recursively.
      if (++operators_ > kMaxDepth * 10) {
        return ErrorAt(token.column, absl::StrCat("more than ", kMaxDepth * 10, " operators"));
      }
      Result right = ParseBinary(op->precedence + 1);
      if (!right.ok()) return right;
      left = MakeCall(op->function, token.column, std::move(*left), std::move(*right));
    }
    if (Now().kind == Token::Kind::kName &&
        (Now().text == "and" || Now().text == "or" || Now().text == "if")) {
      return ErrorAt(Now().column, absl::StrCat("\"", Now().text, "\" works on single values: use ",
                                                Now().text == "and"  ? "&"
                                                : Now().text == "or" ? "|"
                                                                     : "where(condition, a, b)"));
    }
    return left;
  }

  Result ParseUnary() {
    const Nested nested(depth_);
    if (depth_ > kMaxDepth) {
      return ErrorAt(Now().column, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    const int column = Now().column;
    if (Accept("-")) {
      // A number keeps its sign as a literal, so that the least integer can be written.
      Result operand = ParseUnary();
      if (!operand.ok()) return operand;
      Syntax& value = **operand;
      if (value.kind == Syntax::Kind::kInteger) {
        value.negative = !value.negative;
        return operand;
      }
      if (value.kind == Syntax::Kind::kFloat) {
        value.number = -value.number;
        return operand;
      }
      return MakeCall("negative", column, std::move(*operand));
    }
    if (Accept("+")) return ParseUnary();
    if (Accept("~")) {
      Result operand = ParseUnary();
      if (!operand.ok()) return operand;
      return MakeCall("invert", column, std::move(*operand));
    }
    if (Now().kind == Token::Kind::kName && Now().text == "not") {
      return ErrorAt(column, "\"not\" works on single values: use ~");
    }
    Result base = ParsePostfix();
    if (!base.ok()) return base;
    const int power_column = Now().column;
    if (!Accept("**")) return base;
    // ** binds tighter than a sign on its left and looser than one on its right.
    Result exponent = ParseUnary();
    if (!exponent.ok()) return exponent;
    return MakeCall("power", power_column, std::move(*base), std::move(*exponent));
  }

  Result ParsePostfix() {
    Result value = ParsePrimary();
    if (!value.ok()) return value;
    int subscripts = 0;
    while (Now().Is("[")) {
      if (++subscripts > kMaxDepth) return ErrorAt(Now().column, "too many subscripts");
      SyntaxPtr subscript = Make(Syntax::Kind::kSubscript, Now().column);
      Take();
      subscript->children.push_back(std::move(*value));
      do {
        if (Now().Is("]") && subscript->children.size() > 1) break;
        Result item = ParseItem();
        if (!item.ok()) return item;
        subscript->children.push_back(std::move(*item));
      } while (Accept(","));
      if (auto status = Expect("]"); !status.ok()) return status;
      value = std::move(subscript);
    }
    return value;
  }

  // One item of a subscript.
  Result ParseItem() {
    const int column = Now().column;
    if (Accept("...")) return Make(Syntax::Kind::kEllipsis, column);
    if (Now().kind == Token::Kind::kName && Now().text == "None") {
      Take();
      return Make(Syntax::Kind::kNewAxis, column);
    }
    SyntaxPtr slice = Make(Syntax::Kind::kSlice, column);
    slice->children.resize(3);
    for (int part = 0; part < 3; ++part) {
      if (!Now().Is(":") && !Now().Is(",") && !Now().Is("]")) {
        Result bound = ParseBinary(kComparison);
        if (!bound.ok()) return bound;
        if (part == 0 && !Now().Is(":")) return bound;
        slice->children[part] = std::move(*bound);
      } else if (part == 0 && !Now().Is(":")) {
        return Unexpected("an index");
      }
      if (part < 2 && !Accept(":")) break;
    }
    return slice;
  }

  Result ParsePrimary() {
    const Token token = Take();
    switch (token.kind) {
      case Token::Kind::kInteger: {
        SyntaxPtr node = Make(Syntax::Kind::kInteger, token.column);
        node->integer = token.integer;
        return node;
      }
      case Token::Kind::kFloat: {
        SyntaxPtr node = Make(Syntax::Kind::kFloat, token.column);
        node->number = token.number;
        return node;
      }
      case Token::Kind::kText: {
        SyntaxPtr node = Make(Syntax::Kind::kText, token.column);
        node->text = token.text;
        return node;
      }
      case Token::Kind::kName:
        return ParseName(token);
      case Token::Kind::kSymbol:
        if (token.text == "(") {
          Result inner = ParseBinary(kComparison);
          if (!inner.ok()) return inner;
          if (auto status = Expect(")"); !status.ok()) return status;
          return inner;
        }
        if (token.text == "[") return ParseList(token.column);
        break;
      case Token::Kind::kEnd:
        break;
    }
    return ErrorAt(token.column, absl::StrCat("expected a value, found ", Describe(token)));
  }

  Result ParseName(const Token& name) {
    if (name.text == "True" || name.text == "False") {
      SyntaxPtr node = Make(Syntax::Kind::kFlag, name.column);
      node->integer = name.text == "True";
      return node;
    }
    if (!Accept("(")) {
      SyntaxPtr node = Make(Syntax::Kind::kName, name.column);
      node->text = name.text;
      return node;
    }
    SyntaxPtr call = Make(Syntax::Kind::kCall, name.column);
    call->text = name.text;
    while (!Now().Is(")")) {
      std::string keyword;
      if (Now().kind == Token::Kind::kName && tokens_[next_ + 1].Is("=")) {
        keyword = Take().text;
        Take();
      } else if (!call->keywords.empty() && !call->keywords.back().empty()) {
        return ErrorAt(Now().column, "a positional argument after a keyword argument");
      }
      Result argument = ParseBinary(kComparison);
      if (!argument.ok()) return argument;
      call->children.push_back(std::move(*argument));
      call->keywords.push_back(std::move(keyword));
      call->ends_in_comma = Accept(",");
      if (!call->ends_in_comma) break;
    }
    call->end_column = Now().column;
    if (auto status = Expect(")"); !status.ok()) return status;
    return call;
  }

  Result ParseList(int column) {
    SyntaxPtr list = Make(Syntax::Kind::kList, column);
    while (!Now().Is("]")) {
      if (list->children.size() == kMaxListItems) {
        return ErrorAt(Now().column, absl::StrCat("a list of more than ", kMaxListItems, " items"));
      }
      Result item = ParseBinary(kComparison);
      if (!item.ok()) return item;
      list->children.push_back(std::move(*item));
      if (!Accept(",")) break;
    }
    if (auto status = Expect("]"); !status.ok()) return status;
    return list;
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

absl::Status ErrorAt(int column, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", message));
}

absl::StatusOr<Assignment> ParseAssignment(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column 1: text longer than limit: ", text.size(), " > ", kMaxTextBytes, " bytes"));
  }
  auto tokens = Tokenize(text);
  if (!tokens.ok()) return tokens.status();
  return Parser(std::move(*tokens)).ParseAll();
}

}  // namespace penstock::expr
