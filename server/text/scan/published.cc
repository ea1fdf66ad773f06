#include "server/text/scan/published.h"

#include "base/stop_flag.h"
#include "server/text/scan/scanners.h"

namespace penstock::text {
namespace {

template <typename Scanner>
const uint8_t* Next(const uint8_t* at, const uint8_t* end) {
  return Scanner::Next(Runs(end), at);
}

template <typename Scanner>
void Encode(const ByteBpe& bpe, std::string_view text, WordCache& cache, IdBuffer& out) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  const Runs runs(end);
  constexpr ptrdiff_t kStretch = 1 << 16;
  while (at < end) {
    CheckStop();
    const uint8_t* const stretch = end - at > kStretch ? at + kStretch : end;
    while (at < stretch) {
      const uint8_t* const next = Scanner::Next(runs, at);
      bpe.Encode(at, static_cast<size_t>(next - at), end, cache, out);
      at = next;
    }
  }
}

template <typename Scanner>
constexpr PublishedPattern Of(std::string_view name) {
  return {name, Next<Scanner>, Encode<Scanner>};
}

constexpr PublishedPattern kGpt2 = Of<Gpt2Scanner>("gpt2");
constexpr PublishedPattern kCl100k = Of<Cl100kScanner>("cl100k_base");
constexpr PublishedPattern kLlama3 = Of<Llama3Scanner>("llama3");
constexpr PublishedPattern kQwen2 = Of<Qwen2Scanner>("qwen2");
constexpr PublishedPattern kO200k = Of<O200kScanner>("o200k_base");

struct Form {
  std::string_view text;
  const PublishedPattern* pattern;
};

constexpr Form kForms[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", &kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", &kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", &kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     &kLlama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     &kLlama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     &kLlama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     &kCl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     &kQwen2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     &kO200k},
};

constexpr Form kNames[] = {
    {"gpt2", &kGpt2},           {"r50k_base", &kGpt2},     {"p50k_base", &kGpt2},
    {"p50k_edit", &kGpt2},      {"cl100k_base", &kCl100k}, {"o200k_base", &kO200k},
    {"o200k_harmony", &kO200k}, {"llama3", &kLlama3},      {"qwen2", &kQwen2},
    {"qwen", &kQwen2},
};

const PublishedPattern* FindIn(const Form* forms, size_t count, std::string_view text) {
  for (size_t i = 0; i < count; ++i)
    if (forms[i].text == text) return forms[i].pattern;
  return nullptr;
}

}  // namespace

const PublishedPattern* FindPublishedPattern(std::string_view regex) {
  return FindIn(kForms, std::size(kForms), regex);
}

const PublishedPattern* FindPatternByName(std::string_view name) {
  return FindIn(kNames, std::size(kNames), name);
}

}  // namespace penstock::text
