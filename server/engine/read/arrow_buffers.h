// The bytes of the buffers of record batches: in maps of their files or, where those cannot be
// mapped or the buffers are compressed, in memory, where those that were asked for last stay.
//
// Threads:  safe from any thread; an ArrowView belongs to one.
// Owns:     the maps, and up to kKeptBytes of plain buffers besides those that somebody looks at.
// Limits:   kMaxArrowBufferBytes a buffer that is held in memory.
// Cost:     in a map an addition. Else a lock, and for a buffer that is not there a read and its
//           decompression; who comes meanwhile waits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/patient_once.h"
#include "io/arrow/arrow_codec.h"
#include "io/file/mapped_file.h"
#include "server/engine/read/arrow_batches.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/kept_once.h"

namespace penstock {

class ArrowBuffers {
 public:
  static constexpr uint64_t kKeptBytes = uint64_t{256} << 20;

  // `first_file`: the number of the source's first file in the manifest.
  ArrowBuffers(const ArrowBatches& batches, uint32_t first_file)
      : batches_(batches), first_file_(first_file), maps_(batches.num_files()), kept_(kKeptBytes) {}

 private:
  friend class ArrowView;

  struct Mapping {
    PatientOnce once;
    std::unique_ptr<MappedFile> map;  // constant behind once; null: there is none
  };
  // One buffer in memory.
  using Held = KeptOnce<ArrowMemory>::Held;

  const MappedFile* MapOf(uint32_t file, FileTable& files) const;
  absl::Status Read(const ArrowBatches::Batch& batch, const ArrowExtent& extent, FileTable& files,
                    ArrowMemory* memory) const;

  const ArrowBatches& batches_;
  const uint32_t first_file_;
  mutable std::vector<Mapping> maps_;  // one a file
  mutable KeptOnce<ArrowMemory> kept_;
};

// Looks at buffers for a block of rows, and keeps them where they are until LetGo().
class ArrowView {
 public:
  ArrowView(const ArrowBuffers& buffers, FileTable& files) : buffers_(buffers), files_(files) {}

  // The bytes of a part, `least` of them at least; `*bytes`, if given, is how many there are. They
  // may change at any time in a map: a value that decides where something is has to be read once.
  // DataLoss, without its address, where they are too few.
  absl::StatusOr<const uint8_t*> Get(const ArrowBatches::Batch& batch, uint64_t place,
                                     ArrowPart part, uint64_t least, uint64_t* bytes = nullptr);

  // Where the file of a batch of plain buffers lies in memory; null where it is not mapped, or they
  // are compressed.
  const uint8_t* MapOf(const ArrowBatches::Batch& batch) {
    if (batch.codec != ArrowCodec::kNone) return nullptr;
    if (batch.file != map_file_ || map_ == nullptr) {
      const MappedFile* const map = buffers_.MapOf(batch.file, files_);
      if (map == nullptr) return nullptr;
      map_file_ = batch.file;
      map_ = map->bytes();
    }
    return map_;
  }

  // Whether what it keeps is more than rows of one batch need: then LetGo() once nothing of it is
  // looked at any more.
  bool HoldsMuch() const { return held_bytes_ > kHeldBytes; }
  void LetGo() {
    held_.clear();
    held_bytes_ = 0;
  }

  // Whether all that was looked at in maps was there: of the files of these batches.
  absl::Status CheckMap(uint32_t file) const;

 private:
  static constexpr uint64_t kHeldBytes = uint64_t{64} << 20;

  const ArrowBuffers& buffers_;
  FileTable& files_;
  uint32_t map_file_ = 0;
  const uint8_t* map_ = nullptr;
  std::vector<std::shared_ptr<const ArrowBuffers::Held>> held_;
  uint64_t held_bytes_ = 0;
};

}  // namespace penstock
