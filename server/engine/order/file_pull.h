// Bringing files into the page cache, from their beginnings to their ends, before their records are
// read in an order of their own.
//
// Threads:  one at a time (the front's lock); the reads themselves are done by workers.
// Owns:     its requests. It must live as long as the executor.
// Limits:   files of this machine, from the first on, that fill three quarters of the machine's
//           memory: what comes behind them would drive them out.
#pragma once

#include <array>
#include <cstdint>

#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"
#include "server/engine/read/read_queue.h"

namespace penstock {

class FilePull {
 public:
  FilePull(FrontContext& context, FileRange files, int stage);
  FilePull(const FilePull&) = delete;
  FilePull& operator=(const FilePull&) = delete;

  // Asks for what comes next. False while something is still under way; true, for ever, when
  // everything was read. What cannot be read is passed over: whoever wants its records is told.
  bool IsOver();

 private:
  // As many as a disk likes to have in its queue; more would only wait there.
  static constexpr int kRequests = 4;
  static constexpr uint64_t kRequestBytes = 4 << 20;

  struct Slot {
    ReadRequest request;
    bool under_way = false;
  };

  bool AskNext(ReadRequest* request);

  FrontContext& context_;
  const FileRange files_;
  const ReadFormat format_;
  uint64_t left_;  // bytes of memory that may be filled
  uint32_t file_ = 0;
  uint64_t offset_ = 0;
  std::array<Slot, kRequests> slots_;
};

}  // namespace penstock
