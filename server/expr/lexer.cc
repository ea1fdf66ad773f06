#include "server/expr/lexer.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "server/expr/syntax.h"

namespace penstock::expr {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    for (;;) {
      SkipSpace();
      Token token;
      token.column = static_cast<int>(position_) + 1;
      if (position_ == text_.size()) {
        tokens.push_back(token);
        return tokens;
      }
      const char c = text_[position_];
      absl::Status status;
      if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
        status = Number(token);
      } else if (IsNameStart(c)) {
        token.kind = Token::Kind::kName;
        while (IsNameStart(Peek(0)) || IsDigit(Peek(0))) token.text += text_[position_++];
      } else if (c == '"' || c == '\'') {
        status = Quoted(token);
      } else {
        status = Symbol(token);
      }
      if (!status.ok()) return status;
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  void SkipSpace() {
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (c == '#') {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++position_;
      } else {
        return;
      }
    }
  }

  absl::Status Number(Token& token) {
    const size_t start = position_;
    bool floating = false;
    while (IsDigit(Peek(0))) ++position_;
    if (Peek(0) == '.' && Peek(1) != '.') {
      floating = true;
      ++position_;
      while (IsDigit(Peek(0))) ++position_;
    }
    if ((Peek(0) == 'e' || Peek(0) == 'E') &&
        (IsDigit(Peek(1)) || ((Peek(1) == '-' || Peek(1) == '+') && IsDigit(Peek(2))))) {
      floating = true;
      position_ += 2;
      while (IsDigit(Peek(0))) ++position_;
    }
    const char* first = text_.data() + start;
    const char* last = text_.data() + position_;
    if (IsNameStart(Peek(0))) {
      return ErrorAt(token.column, absl::StrCat("expected a number, found \"",
                                                std::string(first, last + 1), "\""));
    }
    token.text.assign(first, last);
    const std::errc error = floating ? std::from_chars(first, last, token.number).ec
                                     : std::from_chars(first, last, token.integer).ec;
    if (error != std::errc()) {
      return ErrorAt(token.column, absl::StrCat("number out of range: ", token.text));
    }
    token.kind = floating ? Token::Kind::kFloat : Token::Kind::kInteger;
    return absl::OkStatus();
  }

  absl::Status Quoted(Token& token) {
    const char quote = text_[position_++];
    while (position_ < text_.size() && text_[position_] != quote) {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
      token.text += text_[position_++];
    }
    if (position_ == text_.size()) return ErrorAt(token.column, "text without its closing quote");
    ++position_;
    token.kind = Token::Kind::kText;
    return absl::OkStatus();
  }

  absl::Status Symbol(Token& token) {
    static constexpr std::string_view kSymbols[] = {
        "...", "**", "//", "==", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%",
        "<",   ">",  "=",  "(",  ")",  "[",  "]",  ",",  ":",  "&", "|", "^", "~"};
    for (const std::string_view symbol : kSymbols) {
      if (text_.substr(position_, symbol.size()) == symbol) {
        token.kind = Token::Kind::kSymbol;
        token.text = symbol;
        position_ += symbol.size();
        return absl::OkStatus();
      }
    }
    return ErrorAt(token.column,
                   absl::StrCat("unexpected character '", std::string(1, text_[position_]), "'"));
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text) { return Lexer(text).Run(); }

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "end of text";
    case Token::Kind::kName:
      return absl::StrCat("name \"", token.text, "\"");
    case Token::Kind::kText:
      return absl::StrCat("text \"", token.text, "\"");
    case Token::Kind::kSymbol:
      return absl::StrCat("'", token.text, "'");
    default:
      return token.text;
  }
}

}  // namespace penstock::expr
