// What the benches of the engine alone share: how their spec is read, and a sink whose slots are
// free again at once.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/memory_block.h"
#include "google/protobuf/text_format.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/plan.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock::bench {

[[noreturn]] inline void Die(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(1);
}

// The spec in a file; with `files`, those are what its first stage reads.
inline v1::PipelineSpec ReadSpec(const std::string& path, const std::string& files) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  v1::PipelineSpec spec;
  if (text.empty() || !google::protobuf::TextFormat::ParseFromString(text, &spec))
    Die("--spec: no spec in " + path);
  if (!files.empty()) {
    v1::Tfrecord& source = *spec.mutable_stage(0)->mutable_tfrecord();
    source.clear_files();
    source.add_files(files);
  }
  return spec;
}

// Slots that no consumer looks at, taken by turns.
class FreeSlots final : public BatchSink {
 public:
  FreeSlots(const Plan& plan, int slots) : slots_(slots) {
    constexpr size_t kSpare = 64;
    for (const BatchTensor& tensor : plan.tensors()) {
      offsets_.push_back(tensor.fixed() ? stride_ : kNowhere);
      if (tensor.fixed()) stride_ += (NumBytes(tensor.type).value() + kSpare + 63) / 64 * 64;
      if (!tensor.fixed()) variable_bytes_ = kVariableBytes;
    }
    memory_ = AllocateMemoryBlock((stride_ + variable_bytes_) * slots);
  }

  bool TryClaim(ClaimedSlot* slot) override {
    if (claimed_ - published_.load() == static_cast<uint64_t>(slots_)) return false;
    slot->slot = static_cast<int>(claimed_++ % slots_);
    slot->tensors.clear();
    uint8_t* const begin = memory_.get() + slot->slot * (stride_ + variable_bytes_);
    for (const size_t offset : offsets_)
      slot->tensors.push_back(offset == kNowhere ? nullptr : begin + offset);
    slot->variable = variable_bytes_ > 0 ? begin + stride_ : nullptr;
    slot->variable_bytes = variable_bytes_;
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo& info) override {
    if (info.step + 1 == wanted_) cursor_ = info.cursor;
    rows_.fetch_add(info.rows);
    published_.fetch_add(1);
  }
  void Finish(const absl::Status& status) override {
    if (!status.ok()) Die(status.ToString());
    Die("the stream ended: the spec must repeat without end");
  }
  void WaitForSlot(absl::Duration) override {}
  void Interrupt() override {}

  uint64_t rows() const { return rows_.load(); }
  uint64_t steps() const { return published_.load(); }

  // Keeps the cursor behind the first `steps` steps: cursor() once steps() has reached them. Before
  // the engine starts.
  void KeepCursor(uint64_t steps) { wanted_ = steps; }
  const std::string& cursor() const { return cursor_; }

 private:
  // Of tensors whose size only the data tells, as of a ring by default.
  static constexpr size_t kVariableBytes = size_t{64} << 20;
  static constexpr size_t kNowhere = ~size_t{0};

  const int slots_;
  size_t stride_ = 0;
  size_t variable_bytes_ = 0;
  std::vector<size_t> offsets_;
  MemoryBlock memory_;
  uint64_t claimed_ = 0;
  uint64_t wanted_ = 0;
  std::string cursor_;
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> rows_{0};
};

}  // namespace penstock::bench
