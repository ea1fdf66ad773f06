#include "server/engine/read/read_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/far_file.h"
#include "base/memory_account.h"
#include "base/pending_call.h"
#include "io/record/near_records.h"
#include "io/record/tfrecord_reader.h"
#include "server/engine/read/far_chunk.h"
#include "server/engine/read/mapped_records.h"
#include "server/engine/read/near_file.h"

namespace penstock {
namespace {

// Of what is brought near at a time: it stays in a core's cache.
constexpr size_t kPulledBytes = 256 << 10;

// How much behind what it reads a disk is to be busy with.
uint64_t ReadAheadOf(const ReadRequest& request) {
  return static_cast<uint64_t>(
      request.files->ReadAhead(static_cast<size_t>(request.format->stage)));
}

// Asks the kernel for what comes behind, so that a disk works while the processor does.
void Announce(RandomAccessFile& file, const ReadRequest& request) {
  if (request.end_of_file || request.next_is_late) return;
  const uint64_t ahead = ReadAheadOf(request);
  // The read before this one asked for all but the last part.
  const uint64_t asked = request.offset == 0 ? request.next_offset : request.offset + ahead;
  const uint64_t wanted = request.next_offset + ahead;
  if (wanted > asked) file.WillNeed(asked, wanted - asked);
}

// Of a file on another machine; null: of this one.
FarFile* FarOf(RandomAccessFile& file) {
  return file.descriptor() >= 0 ? nullptr : dynamic_cast<FarFile*>(&file);
}

// Of a stream on another machine: what is to have arrived before it is read on. Its plain bytes may
// all lie in it, and as many more.
constexpr uint64_t kStreamBytes = 1 << 20;
// Of one that has not begun, as much as the fetcher brings first: the first records come out of it.
constexpr uint64_t kStreamBeginBytes = 256 << 10;

// With the address of a record, but for its ordinal: all headers in front of it would have to be
// fetched.
absl::Status WithFarAddress(const absl::Status& status, const RandomAccessFile& file,
                            uint64_t offset) {
  if (absl::StrContains(status.message(), file.path())) return status;
  return WithMessage(status,
                     absl::StrCat(status.message(), " (", file.path(), ", offset ", offset, ")"));
}

// The request leaves for bytes. Who ends it may do so at once, and another worker take the request.
void Leave(const std::shared_ptr<RandomAccessFile>& file, uint64_t offset, uint64_t bytes,
           ReadRequest* request, const ChunkReader::Parking& parking) {
  request->queue = &parking.queue;
  request->fetches = file;
  Completion arrived = parking.away.Leave(
      request, {CallKind::kRead, "fetching", file->path(), offset, request->format->stage});
  file->Fetch(offset, bytes, std::move(arrived));
}

// The next plain records of a file on another machine, as many as have arrived. `missing`: what the
// first one needs besides.
absl::Status ReadFar(FarFile& file, ReadRequest* request, CellCache& cells, RecordChunk* chunk,
                     FarChunk* missing) {
  *missing =
      ReadFarChunk(file, request->offset, request->expect_late, request->format->stream.on_damage,
                   request->file, cells, chunk, &request->records);
  request->damage = chunk->damage;
  request->lost = {chunk->error_offset, kDamageToTheEnd, chunk->error_reason};
  request->end_of_file = chunk->end_of_file;
  request->next_offset = chunk->next_offset;
  request->next_is_late = chunk->next_is_late;
  if (!request->end_of_file) file.WillNeed(request->next_offset, kChunkBytes);
  if (chunk->error.ok()) return absl::OkStatus();
  return WithFarAddress(chunk->error, file, chunk->error_offset);
}

// Whether a map of the file that they are of is worth its room.
bool MostAreSmall(const std::vector<RecordChunk::Record>& records) {
  const size_t late = std::count_if(records.begin(), records.end(),
                                    [](const RecordChunk::Record& record) { return record.late; });
  return records.size() > 2 * late;
}

// The next records of a file in memory, of a format that cuts them there. False: there was none to
// take.
bool CutNear(const std::shared_ptr<RandomAccessFile>& file, CellCache& cells, RecordChunk* chunk,
             ReadRequest* request) {
  const auto* const records = dynamic_cast<const NearRecords*>(request->format->access());
  if (records == nullptr || request->offset >= file->size()) return false;
  NearFile near(file, *request->files, request->file);
  const PendingCall call("reading", file->path(), request->offset);
  const NearRecords::Cut cut =
      records->CutNear(near, request->offset, request->max_bytes,
                       [&](uint64_t offset, uint32_t length, NearRecords::Parts parts) {
                         uint8_t* const cell = parts.empty() ? nullptr : cells.Take(length);
                         uint8_t* to = cell;
                         for (const absl::Span<const uint8_t> part : parts) {
                           CopyAhead(part.data(), part.size(), to);
                           to += part.size();
                         }
                         if (!parts.empty()) chunk->bytes_read += length;
                         request->records.push_back({cell, offset, length, request->file, 0});
                       });
  if (!near.CheckNear().ok()) {
    // What the file still has is read.
    for (const RecordRef& record : request->records) {
      if (record.data != nullptr) cells.GiveBack(const_cast<uint8_t*>(record.data), record.length);
    }
    request->records.clear();
    chunk->bytes_read = 0;
    return false;
  }
  if (cut.next_offset == request->offset && !cut.is_end) return false;
  request->next_offset = cut.next_offset;
  request->next_is_late = false;
  request->end_of_file = cut.is_end;
  return true;
}

}  // namespace

std::optional<uint64_t> ChunkReader::Run(ReadRequest* request, const Parking* parking) {
  request->records.clear();
  request->damage.clear();
  const bool pulls = request->pull_bytes != 0;
  const bool is_stream = request->format->is_stream();
  RecordChunk& chunk = is_stream ? stream_chunk_ : chunk_;
  chunk.bytes_read = 0;
  uint64_t bytes = 0;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = request->files->Open(request->file);
  if (!file.ok()) {
    request->error = file.status();
  } else if (parking != nullptr && Park(*file, request, *parking)) {
    return std::nullopt;
  } else if (absl::Status fetched = std::exchange(request->fetched, absl::OkStatus());
             !fetched.ok()) {
    // What is only brought near is asked for again by who wants it.
    request->error = FarOf(**file) != nullptr ? WithFarAddress(fetched, **file, request->offset)
                                              : WithAddress(fetched, **file, request->offset);
  } else if (pulls) {
    bytes = BringNear(**file, *request);
  } else {
    FarFile* const far = request->format->is_stream() ? nullptr : FarOf(**file);
    FarChunk missing;
    try {
      request->error =
          far == nullptr ? Read(*file, request) : ReadFar(*far, request, cells_, &chunk, &missing);
    } catch (const MemoryLimitError& error) {
      request->error = MemoryStatus(error);
    }
    bytes = chunk.bytes_read;
    if (missing.missing_bytes > 0 && parking != nullptr) {
      Leave(*file, missing.missing_offset, missing.missing_bytes, request, *parking);
      return std::nullopt;
    }
    if (missing.missing_bytes > 0) {
      // Who may not leave waits for it.
      std::vector<uint8_t> piece(missing.missing_bytes);
      request->error = far->ReadAt(missing.missing_offset, absl::MakeSpan(piece)).status();
      if (request->error.ok()) return Run(request, nullptr);
    }
  }
  // From the store on the request is the front's.
  request->done.store(true, std::memory_order_release);  // SYNC chunk-ready
  return bytes;
}

bool ChunkReader::Park(const std::shared_ptr<RandomAccessFile>& file, ReadRequest* request,
                       const Parking& parking) {
  // Who comes back goes on with what has arrived, or with the error: no read leaves for ever.
  if (std::exchange(request->fetches, nullptr) != nullptr) return false;
  uint64_t offset = request->offset;
  uint64_t bytes = request->pull_bytes != 0 ? request->pull_bytes : kChunkBytes;
  if (request->format->is_stream()) {
    FarFile* const far = FarOf(*file);
    if (far == nullptr) return false;
    if (*request->stream != nullptr) {
      offset = far->read_to();
      bytes = kStreamBytes + 2 * (*request->stream)->window_bytes();
    } else {
      // What lies in front of it in a plain file is passed over unread; compressed bytes are
      // inflated from the beginning on.
      if (request->format->compression != Compression::kNone) offset = 0;
      bytes = kStreamBeginBytes;
    }
  }
  if (file->HasFetched(offset, bytes)) return false;
  Leave(file, offset, bytes, request, parking);
  return true;
}

uint64_t ChunkReader::BringNear(RandomAccessFile& file, const ReadRequest& request) {
  if (pulled_ == nullptr) pulled_ = AllocateMemoryBlock(kPulledBytes);
  file.WillNeed(request.offset, request.pull_bytes);
  uint64_t read = 0;
  while (read < request.pull_bytes) {
    const size_t wanted = std::min<uint64_t>(kPulledBytes, request.pull_bytes - read);
    const absl::StatusOr<size_t> got = file.ReadAt(request.offset + read, {pulled_.get(), wanted});
    if (!got.ok() || *got == 0) break;
    read += *got;
  }
  return read;
}

bool ChunkReader::ReadMapped(RandomAccessFile& file, ReadRequest* request) {
  if (request->offset >= file.size()) return false;
  NearMap* const map = request->files->MapOf(request->file);
  if (map == nullptr || map->file().torn()) return false;
  const size_t bytes = std::min<uint64_t>(request->max_bytes, file.size() - request->offset);
  const NearMap::Nearness near = map->Look(file, request->offset, bytes, ReadAheadOf(*request));
  // What waits for a disk is read.
  if (!near.range) return false;
  const PendingCall call("reading", file.path(), request->offset);
  const absl::Span<const uint8_t> there(map->file().bytes() + request->offset, bytes);
  const bool locates = request->format->stream.format->are_located();
  const MappedFrames taken =
      locates ? LocateMappedFrames(there, request->offset, request->file, &request->records)
              : CopyMappedFrames(there, request->offset, request->file, cells_, &request->records);
  if (request->records.empty()) return false;
  chunk_.bytes_read = locates ? request->records.size() * kRecordHeaderBytes : taken.bytes;
  request->next_offset = request->offset + taken.bytes;
  request->next_is_late = taken.next_is_late;
  request->end_of_file = request->next_offset == file.size();
  if (!near.ahead) Announce(file, *request);
  return true;
}

absl::Status ChunkReader::Read(const std::shared_ptr<RandomAccessFile>& file,
                               ReadRequest* request) {
  const ReadFormat& format = *request->format;
  RecordChunk& chunk = format.is_stream() ? stream_chunk_ : chunk_;
  if (format.is_stream()) {
    if (*request->stream == nullptr && CutNear(file, cells_, &chunk, request)) {
      if (request->end_of_file) request->files->LookForGrowth(request->file, *file);
      return absl::OkStatus();
    }
    if (*request->stream == nullptr) {
      RecordStreamOptions options = format.stream;
      options.start_offset = request->offset;
      options.start_ordinal = request->ordinal;
      absl::StatusOr<std::unique_ptr<RecordStream>> stream =
          RecordStream::Open(std::make_shared<NearFile>(file, *request->files, request->file),
                             format.compression, options);
      if (!stream.ok()) return stream.status();
      *request->stream = *std::move(stream);
    }
    const PendingCall call("reading", file->path(), request->offset);
    (*request->stream)->Next(&chunk);
    if (FarFile* const far = FarOf(*file); far != nullptr && !chunk.end_of_file)
      far->WillNeed(far->read_to() + kStreamBytes, kStreamBytes);
  } else if (ReadMapped(*file, request)) {
    if (request->end_of_file) request->files->LookForGrowth(request->file, *file);
    return absl::OkStatus();
  } else {
    ReadChunk(*file, request->offset, request->expect_late, &chunk, format.stream.on_damage,
              request->format->stream.format->are_located() ? DamagedData::kIsLeft
                                                            : DamagedData::kEndsChunk);
    if (MostAreSmall(chunk.records)) request->files->KeepMap(request->file, *file);
  }
  request->records.reserve(chunk.records.size());
  for (const RecordChunk::Record& record : chunk.records) {
    const uint8_t* data = record.late ? nullptr : cells_.Keep(chunk.data(record), record.length);
    request->records.push_back({data, record.offset, record.length, request->file, 0});
  }
  request->damage = chunk.damage;
  request->lost = {chunk.error_offset, kDamageToTheEnd, chunk.error_reason};
  request->end_of_file = chunk.end_of_file;
  request->next_offset = chunk.next_offset;
  request->next_is_late = chunk.next_is_late;
  if (request->end_of_file) request->files->LookForGrowth(request->file, *file);
  if (format.is_stream()) return chunk.error;
  Announce(*file, *request);
  return chunk.error.ok() ? absl::OkStatus() : WithAddress(chunk.error, *file, chunk.error_offset);
}

}  // namespace penstock
