// Which documents make up which sequences: as TRL and Grain have it
// (tests/golden/make_packing_goldens.py), and what holds for any lengths.
#include "server/engine/order/packing.h"

#include <algorithm>
#include <random>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock {
namespace {

using Json = nlohmann::json;
using Sequences = std::vector<std::vector<PackedPiece>>;

Sequences Pack(const PackRules& rules, const std::vector<uint32_t>& lengths) {
  const std::unique_ptr<Packer> packer = Packer::Make(rules);
  // What a window before it has left.
  packer->Add(rules.sequence_length / 2 + 1);
  packer->Clear();
  for (const uint32_t length : lengths) packer->Add(length);
  packer->Finish();
  Sequences sequences;
  for (uint64_t i = 0; i < packer->num_sequences(); ++i) {
    const absl::Span<const PackedPiece> pieces = packer->Sequence(i);
    sequences.emplace_back(pieces.begin(), pieces.end());
  }
  return sequences;
}

PackMethod MethodOf(const std::string& name) {
  if (name == "best_fit") return PackMethod::kBestFit;
  return name == "concat" ? PackMethod::kConcat : PackMethod::kFirstFitDecreasing;
}

TEST_CASE("packing: sequences hold the lengths that TRL and Grain put into them") {
  const Json golden = Json::parse(testing::ReadGolden("packing.json"));
  REQUIRE(golden["cases"].size() >= 60);
  for (const Json& row : golden["cases"]) {
    INFO(row["method"] << " " << row["long_documents"] << " " << row["sequence_length"] << ", "
                       << row["lengths"].size() << " documents");
    PackRules rules;
    rules.method = MethodOf(row["method"]);
    rules.sequence_length = row["sequence_length"];
    rules.truncate = row["long_documents"] == "truncate";
    std::vector<std::vector<uint32_t>> found;
    for (const auto& sequence : Pack(rules, row["lengths"])) {
      found.emplace_back();
      for (const PackedPiece& piece : sequence) found.back().push_back(piece.length);
    }
    CHECK(found == row["sequences"].get<std::vector<std::vector<uint32_t>>>());
  }
}

// Every token that is to be there is there once, and the last piece of each document is marked.
void CheckWhole(const PackRules& rules, const std::vector<uint32_t>& lengths,
                const Sequences& sequences) {
  std::vector<std::vector<PackedPiece>> of_document(lengths.size());
  for (const auto& sequence : sequences) {
    uint64_t tokens = 0;
    for (const PackedPiece& piece : sequence) {
      tokens += piece.length;
      REQUIRE(piece.length > 0);
      of_document[piece.document].push_back(piece);
    }
    CHECK(!sequence.empty());
    CHECK(sequence.size() <= rules.max_documents);
    CHECK(tokens <= rules.sequence_length);
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto& pieces = of_document[i];
    for (size_t k = 0; k < pieces.size(); ++k) CHECK(pieces[k].is_last == (k + 1 == pieces.size()));
    std::sort(pieces.begin(), pieces.end(),
              [](const PackedPiece& a, const PackedPiece& b) { return a.start < b.start; });
    uint32_t end = 0;
    for (const PackedPiece& piece : pieces) {
      CHECK(piece.start == end);
      end += piece.length;
    }
    CHECK(end == (rules.truncate ? std::min(lengths[i], rules.sequence_length) : lengths[i]));
  }
}

TEST_CASE("packing: each token stands in one sequence, whatever the rules") {
  std::mt19937 random(3);
  for (const PackMethod method :
       {PackMethod::kConcat, PackMethod::kBestFit, PackMethod::kFirstFitDecreasing}) {
    for (const uint32_t length : {1u, 7u, 64u}) {
      for (const uint32_t max_documents : {1u, 3u, UINT32_MAX}) {
        for (const bool truncate : {false, true}) {
          for (const bool split : {false, true}) {
            INFO(static_cast<int>(method)
                 << " " << length << " " << max_documents << " " << truncate << " " << split);
            PackRules rules{method, length, split, truncate, max_documents, false};
            std::vector<uint32_t> lengths(200);
            for (uint32_t& tokens : lengths) tokens = random() % (3 * length);
            CheckWhole(rules, lengths, Pack(rules, lengths));
            CHECK(Pack(rules, {}).empty());
            CHECK(Pack(rules, {0, 0}).empty());
          }
        }
      }
    }
  }
}

TEST_CASE("packing: a document that is not to be split begins the next sequence") {
  PackRules rules{.sequence_length = 8, .split_documents = false};
  const Sequences expected = {{{0, 0, 5, true}, {1, 0, 3, true}},
                              {{2, 0, 7, true}},
                              // Longer than a sequence: what is left of it is followed by others.
                              {{3, 0, 8, false}},
                              {{3, 8, 3, true}, {4, 0, 5, true}},
                              {{5, 0, 1, true}}};
  CHECK(Pack(rules, {5, 3, 7, 11, 5, 1}) == expected);
}

TEST_CASE("packing: a last sequence that is not full may be left out") {
  PackRules rules{.sequence_length = 4, .drop_remainder = true};
  CHECK(Pack(rules, {3, 2, 2}) == Sequences{{{0, 0, 3, true}, {1, 0, 1, false}}});
  CHECK(Pack(rules, {3, 1, 4}).size() == 2);
  CHECK(Pack(rules, {3}).empty());
}

TEST_CASE("packing: sequences of a concatenation are complete as soon as they are full") {
  const std::unique_ptr<Packer> packer = Packer::Make({.sequence_length = 4});
  packer->Add(3);
  CHECK(packer->num_sequences() == 0);
  packer->Add(6);
  CHECK(packer->num_sequences() == 2);
  packer->Add(3);
  CHECK(packer->num_sequences() == 3);
  packer->Finish();
  CHECK(packer->num_sequences() == 3);
}

}  // namespace
}  // namespace penstock
