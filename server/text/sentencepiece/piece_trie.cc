#include "server/text/sentencepiece/piece_trie.h"

#include <algorithm>
#include <deque>

namespace penstock::text {
namespace {

constexpr uint32_t kBlock = 256;  // all children of a node lie in one block
constexpr int kTriesMax = 64;

// The places that no node has, in a ring of links through place 0, which is never free.
class FreePlaces {
 public:
  void AddBlock() {
    const auto first = static_cast<uint32_t>(links_.size());
    links_.resize(first + kBlock);
    for (uint32_t at = std::max(first, 1u); at < first + kBlock; ++at) {
      const uint32_t last = links_[0].before;
      links_[at] = {last, 0};
      links_[last].behind = at;
      links_[0].before = at;
    }
  }
  void Take(uint32_t at) {
    links_[links_[at].before].behind = links_[at].behind;
    links_[links_[at].behind].before = links_[at].before;
    links_[at] = {at, at};
  }
  bool IsFree(uint32_t at) const { return at != 0 && links_[at].before != at; }
  uint32_t first() const { return links_[0].behind; }  // 0: none
  uint32_t last() const { return links_[0].before; }
  uint32_t before(uint32_t at) const { return links_[at].before; }

 private:
  struct Link {
    uint32_t before = 0, behind = 0;
  };
  std::vector<Link> links_;
};

}  // namespace

PieceTrie::PieceTrie(std::vector<Entry> entries) : nodes_(kBlock) {
  std::sort(entries.begin(), entries.end());
  FreePlaces free;
  free.AddBlock();
  nodes_[0].parent = kNothing - 1;
  // Nodes whose children have no place yet, with the entries below them.
  struct Open {
    uint32_t node;
    size_t from, to, depth;
  };
  std::deque<Open> open;
  if (!entries.empty()) open.push_back({0, 0, entries.size(), 0});
  struct Child {
    uint8_t byte;
    size_t from;
  };
  std::vector<Child> children;
  for (; !open.empty(); open.pop_front()) {
    Open at = open.front();
    if (entries[at.from].first.size() == at.depth)
      nodes_[at.node].value = entries[at.from++].second;
    children.clear();
    for (size_t i = at.from; i < at.to; ++i) {
      const auto byte = static_cast<uint8_t>(entries[i].first[at.depth]);
      if (children.empty() || children.back().byte != byte) children.push_back({byte, i});
    }
    if (children.empty()) continue;
    const auto fits = [&](uint32_t base) {
      return std::all_of(children.begin(), children.end(),
                         [&](const Child& child) { return free.IsFree(base ^ child.byte); });
    };
    // One child fits everywhere. Several are tried where there is much room, a limited number of
    // times.
    uint32_t place = children.size() == 1 ? free.first() : free.last();
    for (int tries = 0; place != 0 && !fits(place ^ children[0].byte); place = free.before(place)) {
      if (++tries < kTriesMax) continue;
      place = 0;
      break;
    }
    if (place == 0) {
      // All places of a new block are free.
      place = static_cast<uint32_t>(nodes_.size()) ^ children[0].byte;
      free.AddBlock();
      nodes_.resize(nodes_.size() + kBlock);
    }
    const uint32_t base = place ^ children[0].byte;
    nodes_[at.node].base = base;
    for (size_t i = 0; i < children.size(); ++i) {
      const uint32_t child = base ^ children[i].byte;
      free.Take(child);
      nodes_[child].parent = at.node;
      open.push_back({child, children[i].from,
                      i + 1 < children.size() ? children[i + 1].from : at.to, at.depth + 1});
    }
  }
}

}  // namespace penstock::text
