// Every order in which one writer and two consumers can take their steps, for short streams: the
// rules of SlotTable with the reads and writes of shared memory around them, and the two ways of
// going to sleep. The states are explored once each; what is checked in each of them stands in its
// Check().
#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include "ring/slot_table.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

// Explores all states that can be reached from `first`. A state can Key() itself, list its Next()
// states, and Check() itself against the ways out that it has: "" when it is fine.
template <typename State>
size_t Explore(const State& first, std::string* wrong) {
  std::unordered_set<std::string> seen = {first.Key()};
  std::vector<State> open = {first};
  while (!open.empty()) {
    const State state = std::move(open.back());
    open.pop_back();
    std::vector<State> next = state.Next();
    *wrong = state.Check(next.empty());
    if (!wrong->empty()) return seen.size();
    for (State& candidate : next) {
      if (seen.insert(candidate.Key()).second) open.push_back(std::move(candidate));
    }
  }
  return seen.size();
}

// --- slots ---

constexpr int kReaders = 2;
constexpr uint32_t kSlots = 3;
constexpr uint64_t kRingEntries = 4;
constexpr uint64_t kOverwritten = UINT64_MAX;

struct ReaderState {
  bool attached = false;
  uint32_t visits_left = 1;
  uint64_t start = 0;
  uint64_t position = 0;
  // 0: looks for a step, 1: has seen it published, 2: has found its slot, 3: has written its
  // position, 4: has seen its verdict
  uint32_t at = 0;
  // The daemon's side of a verdict: 1: it is written, 2: the position was looked at.
  uint32_t judged = 0;
  uint64_t kept = 0;
  uint64_t kept_below = 0;
  uint32_t slot = 0;
  std::array<uint64_t, kSlots> released = {};
  std::array<bool, kSlots> holds = {};
};

// The pages through which SlotTable sees the readers of the state at hand.
ControlPage pages[kReaders];

struct SlotState {
  uint64_t steps = 0;  // of the whole stream
  SlotTable table{2};
  std::array<uint64_t, kSlots> content = {};  // the step whose bytes lie there
  std::array<uint64_t, kRingEntries> ring_step = {};
  std::array<uint32_t, kRingEntries> ring_slot = {};
  uint64_t published = 0;
  uint32_t verdicts_left = 0;
  std::vector<uint32_t> claimed;  // in the order of their steps
  uint32_t at = 0;                // of the writer: 0 fills, 1 writes the ring's entry, 2 publishes
  std::array<ReaderState, kReaders> readers;
  std::string wrong;

  std::string Key() const {
    std::string key;
    const auto add = [&key](uint64_t value) { key.push_back(static_cast<char>(value)); };
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      add(static_cast<uint64_t>(table.state(slot)));
      add(table.step(slot));
      add(content[slot]);
    }
    for (uint64_t i = 0; i < kRingEntries; ++i) add(ring_step[i]), add(ring_slot[i]);
    add(published), add(table.floor()), add(at), add(table.slots()), add(verdicts_left);
    for (uint32_t slot : claimed) add(slot + 100);
    for (const ReaderState& reader : readers) {
      add(reader.attached), add(reader.visits_left), add(reader.start), add(reader.position);
      add(reader.at), add(reader.slot), add(reader.judged), add(reader.kept);
      add(reader.kept_below);
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        add(reader.released[slot]), add(reader.holds[slot]);
      }
    }
    return key + wrong;
  }

  std::vector<Member> Members() const {
    std::vector<Member> members;
    for (uint32_t i = 0; i < kReaders; ++i) {
      if (!readers[i].attached) continue;
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        pages[i].released[slot] = readers[i].released[slot];
      }
      pages[i].position = readers[i].position;
      members.push_back({&pages[i], uint64_t{1} << i,
                         readers[i].judged == 2 ? kNoStep : readers[i].start, kNeverStops,
                         readers[i].kept, readers[i].kept_below});
    }
    return members;
  }

  // The daemon goes on without a consumer, as ConsumerTable::Judge does.
  void Judge(size_t i, std::vector<SlotState>* next) const {
    const ReaderState& reader = readers[i];
    if (!reader.attached || reader.judged == 2 || (reader.judged == 0 && verdicts_left == 0))
      return;
    SlotState state = *this;
    ReaderState& self = state.readers[i];
    if (self.judged++ == 0) {
      --state.verdicts_left;
    } else {
      const std::vector<Member> members = Members();
      size_t member = 0;
      for (size_t other = 0; other < i; ++other) member += readers[other].attached;
      self.kept_below = std::min(reader.position, published);
      self.kept = table.Held(members[member], self.kept_below);
    }
    next->push_back(std::move(state));
  }

  std::vector<SlotState> Next() const {
    std::vector<SlotState> next;
    Write(&next);
    for (size_t i = 0; i < kReaders; ++i) Judge(i, &next);
    for (int i = 0; i < kReaders; ++i) Read(i, &next);
    return next;
  }

  void Write(std::vector<SlotState>* next) const {
    if (published + claimed.size() < steps) {
      SlotState claims = *this;
      claims.table.Sweep(Members());
      const int slot = claims.table.Claim();
      if (slot >= 0) {
        claims.claimed.push_back(static_cast<uint32_t>(slot));
        claims.content[static_cast<size_t>(slot)] = kOverwritten;
        next->push_back(claims);
      }
    }
    if (claimed.empty()) return;
    SlotState goes_on = *this;
    const uint32_t slot = claimed.front();
    if (at == 0) {
      goes_on.content[slot] = published;
      goes_on.at = 1;
    } else if (at == 1) {
      goes_on.ring_step[published % kRingEntries] = published;
      goes_on.ring_slot[published % kRingEntries] = slot;
      goes_on.at = 2;
    } else {
      goes_on.table.Publish(slot);
      ++goes_on.published;
      goes_on.claimed.erase(goes_on.claimed.begin());
      goes_on.at = 0;
    }
    next->push_back(goes_on);
  }

  void Read(int i, std::vector<SlotState>* next) const {
    const ReaderState& reader = readers[static_cast<size_t>(i)];
    const auto change = [&](auto&& what) {
      SlotState state = *this;
      what(&state, &state.readers[static_cast<size_t>(i)]);
      next->push_back(std::move(state));
    };
    if (!reader.attached) {
      if (reader.visits_left == 0) return;
      change([](SlotState* state, ReaderState* self) {
        state->table.Sweep(state->Members());
        state->table.Grow(state->Members().empty() ? 2 : 3);
        const uint32_t visits_left = self->visits_left - 1;
        *self = {};
        self->attached = true;
        self->visits_left = visits_left;
        self->start = self->position = state->table.floor();
      });
      return;
    }
    change([](SlotState* state, ReaderState* self) {  // dies
      state->table.Sweep(state->Members());
      const uint32_t visits_left = self->visits_left;
      *self = {};
      self->visits_left = visits_left;
    });
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (!reader.holds[slot]) continue;
      change([slot](SlotState* state, ReaderState* self) {
        self->released[slot] = state->content[slot] + 1;
        self->holds[slot] = false;
      });
    }
    if (reader.at == 0 && published > reader.position) {
      change([](SlotState*, ReaderState* self) { self->at = 1; });
    } else if (reader.at == 1) {
      change([](SlotState* state, ReaderState* self) {
        const uint64_t entry = self->position % kRingEntries;
        // One with a verdict may look at what is gone: it sees the verdict before it takes
        // anything.
        if (state->ring_step[entry] != self->position && self->judged == 0) {
          state->wrong = "the ring's entry is gone";
        }
        self->slot = state->ring_slot[entry];
        self->at = 2;
      });
    } else if (reader.at == 2) {
      change([](SlotState*, ReaderState* self) {
        ++self->position;
        self->at = 3;
      });
    } else if (reader.at == 3) {
      change([](SlotState* state, ReaderState* self) {
        if (self->judged > 0) {
          self->at = 4;
          return;
        }
        if (state->content[self->slot] != self->position - 1) {
          state->wrong = "the slot was used again";
        }
        self->holds[self->slot] = true;
        self->at = 0;
      });
    }
  }

  // Whether the bytes under every lease are those of its step, every step from the floor on is
  // there, and the writer can go on when everything has been read.
  std::string Check(bool) const {
    if (!wrong.empty()) return wrong;
    for (const ReaderState& reader : readers) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        if (reader.holds[slot] &&
            (content[slot] == kOverwritten || table.state(slot) != SlotTable::State::kReady ||
             content[slot] != table.step(slot))) {
          return "a slot was used again under a lease";
        }
      }
    }
    for (uint64_t step = table.floor(); step < published; ++step) {
      bool there = false;
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        there |= table.state(slot) == SlotTable::State::kReady && content[slot] == step;
      }
      if (!there) return "a newcomer would miss a step";
    }
    bool all_read = claimed.empty() && published < steps;
    for (const ReaderState& reader : readers) {
      all_read &= reader.attached && reader.judged == 0 && reader.at == 0 &&
                  reader.position == published && reader.holds == std::array<bool, kSlots>{};
    }
    if (all_read) {
      SlotTable swept = table;
      if (!swept.Sweep(Members())) return "everything was read and no slot is free";
    }
    return "";
  }
};

TEST_CASE("fault 39: no order of steps uses a slot again under a lease, or leaves a gap") {
  SlotState first;
  first.ring_step.fill(kOverwritten);
  first.content.fill(kOverwritten);
  SECTION("two consumers, five steps") { first.steps = 5; }
  SECTION("one of them comes back twice, four steps") {
    first.steps = 4;
    first.readers[0].visits_left = 3;
    first.readers[1].visits_left = 1;
  }
  SECTION("the daemon goes on without each of them at any moment, three steps") {
    first.steps = 3;
    first.verdicts_left = 2;
  }
  SECTION("it goes on without one that comes back, three steps") {
    first.steps = 3;
    first.verdicts_left = 1;
    first.readers[0].visits_left = 2;
  }
  std::string wrong;
  const size_t states = Explore(first, &wrong);
  INFO(states << " states");
  CHECK(wrong == "");
  CHECK(states > 10000);
}

// --- a consumer that sleeps: Reader::Sleep against RingWriter::Publish, TryClaim and Finish ---

struct SleepState {
  std::string script;  // of the writer: P publishes, S finds no free slot, F finishes
  uint64_t patience = 1;
  // Shared.
  uint64_t published = 0, wake_at = kAwake;
  uint32_t word = 0;
  bool ended = false;
  // The writer: where it is in its script, and in one of its letters.
  size_t line = 0;
  int at = 0;
  bool everybody = false, starved = false;
  uint64_t wanted = 0;
  bool left = false;  // to another thread of the daemon's: a wake-up that is to come (LeftWakes)
  // The consumer.
  int reader_at = 0;
  uint64_t position = 0;
  uint32_t read_word = 0;
  bool asleep = false, done = false;

  std::string Key() const {
    std::string key;
    for (uint64_t value : {published, wake_at, uint64_t{word}, uint64_t{ended}, uint64_t{line},
                           static_cast<uint64_t>(at), uint64_t{everybody}, uint64_t{starved},
                           wanted, uint64_t{left}, static_cast<uint64_t>(reader_at), position,
                           uint64_t{read_word}, uint64_t{asleep}, uint64_t{done}}) {
      key += std::to_string(value) + " ";
    }
    return key;
  }

  std::vector<SleepState> Next() const {
    std::vector<SleepState> next;
    if (line < script.size()) {
      next.push_back(*this);
      next.back().Write();
      if (at == 4) {
        next.push_back(*this);
        next.back().left = true;
        next.back().EndLetter();
      }
    }
    if (left) {
      next.push_back(*this);
      next.back().left = next.back().asleep = false;
    }
    if (!asleep && !done) {
      next.push_back(*this);
      next.back().Read();
    }
    return next;
  }

  void Write() {
    const char letter = script[line];
    switch (at++) {
      case 0:
        if (letter == 'P') ++published, everybody = starved;
        if (letter == 'S') starved = everybody = true;
        if (letter == 'F') ended = everybody = true;
        break;
      case 1:
        // The consumer's position is not written while it sleeps.
        wanted = wake_at;
        if (wanted == kAwake) {
          EndLetter();
        } else if (letter != 'F' && published < (everybody ? position + 1 : wanted)) {
          EndLetter();
        }
        break;
      case 2:
        if (wake_at == wanted) {
          wake_at = kAwake;
        } else {
          EndLetter();
        }
        break;
      case 3:
        ++word;
        break;
      case 4:
        asleep = false;
        EndLetter();
    }
  }
  void EndLetter() {
    // A claim succeeds when the consumer has let go of something: so some time after a failed one.
    at = 0;
    ++line;
  }

  void Read() {
    switch (reader_at) {
      case 0:
        if (published > position) {
          ++position;
        } else if (ended) {
          done = published == position;
        } else {
          reader_at = 1;
        }
        return;
      case 1:
        read_word = word;
        break;
      case 2:
        wake_at = position + patience;
        break;
      case 3:
        if (published > position) reader_at = 5;
        break;
      case 4:
        if (ended) reader_at = 5;
        break;
      case 5:
        if (read_word == word) asleep = true;
        break;
      case 6:
        wake_at = kAwake;
        reader_at = 0;
        return;
    }
    ++reader_at;
  }

  // Asleep for ever is right only where the stream has no end, and then behind its last step; or
  // one step before that where two are waited for and the writer has never found the ring full.
  std::string Check(bool no_way_out) const {
    if (!no_way_out || done) return "";
    const bool starves = script.find('S') != std::string::npos;
    const uint64_t may_wait = patience == 2 && !starves ? 1 : 0;
    if (!ended && published - position <= may_wait) return "";
    return "the consumer sleeps for ever at step " + std::to_string(position) + " of " +
           std::to_string(published) + " with script " + script;
  }
};

TEST_CASE("no order of steps loses a consumer's wake-up") {
  for (const char* script : {"F", "P", "PP", "PPP", "PS", "SP", "PPS", "SPP", "PSP", "SPSPS", "PF",
                             "PPF", "PPPF", "PSPF", "SPPF", "PSF"}) {
    for (uint64_t patience : {1, 2}) {
      SleepState first;
      first.script = script;
      first.patience = patience;
      std::string wrong;
      const size_t states = Explore(first, &wrong);
      CHECK(wrong == "");
      CHECK(states > 10);
    }
  }
}

// --- a writer that sleeps: RingWriter::WaitForRelease against Publish and Reader::Release ---

struct WaitState {
  SlotTable table{2};
  uint32_t published = 0;  // slots, in their order; the others are still being filled
  std::array<std::array<uint64_t, 2>, kReaders> released = {};
  uint64_t waits_for = 0;
  int bells = 0;  // rung and not yet heard
  // The thread of the writer that waits.
  int at = 0;
  uint64_t announced = 0, blockers = 0;
  bool asleep = false, has_slot = false;
  // Each consumer releases slot 0 and slot 1 in its own order; a release takes three steps.
  std::array<std::array<uint32_t, 2>, kReaders> order = {};
  std::array<int, kReaders> reader_at = {};
  std::array<bool, kReaders> rings = {};

  std::string Key() const {
    std::string key;
    for (int i = 0; i < kReaders; ++i) {
      const size_t r = static_cast<size_t>(i);
      for (uint64_t word : released[r]) key += static_cast<char>(word);
      key += static_cast<char>(reader_at[r]);
      key += static_cast<char>(rings[r]);
    }
    for (uint64_t value : {waits_for, announced, blockers}) key += static_cast<char>(value);
    for (int value : {bells, at, int{asleep}, int{has_slot}}) key += static_cast<char>(value);
    for (uint32_t slot = 0; slot < 2; ++slot) key += static_cast<char>(table.state(slot));
    key += static_cast<char>(published);
    return key;
  }

  bool IsLocked() const { return !asleep && (at != 0 || announced != 0); }

  std::vector<Member> Members() const {
    std::vector<Member> members;
    for (uint32_t i = 0; i < kReaders; ++i) {
      for (uint32_t slot = 0; slot < 2; ++slot) pages[i].released[slot] = released[i][slot];
      pages[i].position = 2;
      members.push_back({&pages[i], uint64_t{1} << i, 0, kNeverStops});
    }
    return members;
  }

  std::vector<WaitState> Next() const {
    std::vector<WaitState> next;
    if (!has_slot && (!asleep || bells > 0)) {
      next.push_back(*this);
      next.back().Wait();
    }
    if (published < 2 && !has_slot && !IsLocked()) {
      next.push_back(*this);
      next.back().Publish();
    }
    for (size_t i = 0; i < kReaders; ++i) {
      if (reader_at[i] == 6 || order[i][static_cast<size_t>(reader_at[i]) / 3] >= published)
        continue;
      next.push_back(*this);
      next.back().Release(i);
    }
    return next;
  }

  void Publish() {
    table.Publish(published);
    if (asleep) waits_for |= table.Blockers(Members());
    ++published;
    if (asleep && table.Sweep(Members())) ++bells;
  }

  void Wait() {
    if (asleep) {
      asleep = false;
      bells = 0;
      waits_for = announced = 0;
      at = 0;
      return;
    }
    switch (at) {
      case 0:
        if (table.Sweep(Members())) {
          has_slot = true;
        } else {
          at = 1;
        }
        return;
      case 1:
        blockers = table.Blockers(Members());
        at = (blockers & ~announced) == 0 ? 3 : 2;
        return;
      case 2:
        announced |= blockers;
        waits_for = announced;
        at = 0;
        return;
      case 3:
        has_slot = table.Sweep(Members());
        asleep = !has_slot;
        return;
    }
  }

  void Release(size_t i) {
    const int of = reader_at[i] / 3;
    const uint32_t slot = order[i][static_cast<size_t>(of)];
    switch (reader_at[i]++ % 3) {
      case 0:
        released[i][slot] = table.step(slot) + 1;
        return;
      case 1:
        rings[i] = (waits_for >> i & 1) != 0;
        return;
      case 2:
        if (rings[i]) ++bells;
    }
  }

  std::string Check(bool no_way_out) const {
    return no_way_out && !has_slot ? "the writer sleeps for ever" : "";
  }
};

TEST_CASE("no order of steps loses the writer's wake-up") {
  for (uint32_t orders = 0; orders < 4; ++orders) {
    for (uint32_t published = 0; published <= 2; ++published) {
      WaitState first;
      first.table.Claim();
      first.table.Claim();
      while (first.published < published) first.table.Publish(first.published++);
      first.order = {{{orders & 1, 1 - (orders & 1)}, {orders >> 1, 1 - (orders >> 1)}}};
      std::string wrong;
      const size_t states = Explore(first, &wrong);
      CHECK(wrong == "");
      CHECK(states > 100);
    }
  }
}

}  // namespace
}  // namespace penstock::ring
