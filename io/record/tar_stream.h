// Finds the samples of a tar file's bytes (tar_format.h).
//
// Threads:  one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/record/record_stream.h"
#include "io/record/tar_head.h"

namespace penstock {

class TarStream final : public RecordStream {
 public:
  explicit TarStream(RecordSource source) : RecordStream(std::move(source)) {}

 protected:
  void NextRecords(RecordChunk* chunk) override;

 private:
  // The sample that is being gathered.
  struct Sample {
    uint64_t begin = 0;
    uint64_t end = 0;  // of its last member
    std::string key;
  };
  // A damaged head, and what is sought behind it.
  struct Damaged {
    uint64_t offset = 0;
    DamageReason reason = DamageReason::kLengthChecksum;
    std::string block;     // of the head
    bool is_over = false;  // a sound head has been found
  };
  // A sample that is left out, whose further members are passed over.
  struct Lost {
    uint64_t begin = 0;
    DamageReason reason = DamageReason::kLengthChecksum;
    std::string key;
  };

  // Each looks at what is at at_, and returns whether the chunk has room for more.
  bool GoOn(RecordChunk* chunk);
  bool SearchHead(RecordChunk* chunk);
  bool TakeMember(RecordChunk* chunk, absl::string_view key);
  bool TakeDamage(RecordChunk* chunk, DamageReason reason, const std::string& what);
  bool TakeEnd(RecordChunk* chunk);

  // Behind damage, in front of a member of that key, or of the end: decides what was lost with it.
  void Judge(RecordChunk* chunk, const std::string* next_key);
  void EndSample(RecordChunk* chunk);
  void EndLost(RecordChunk* chunk);

  // The bytes from at_ on, as far as the window has them.
  absl::Span<const uint8_t> AtHand();
  // Has the window hold `bytes` of them, or all that come before the end. False where it must move,
  // but the chunk has records in it, and where it cannot.
  bool Gather(RecordChunk* chunk, uint64_t bytes);

  uint64_t at_ = 0;  // of the head that is looked at next
  bool begun_ = false;
  std::optional<Sample> sample_;
  std::optional<Damaged> damaged_;
  std::optional<Lost> lost_;
  TarHead head_;
};

}  // namespace penstock
