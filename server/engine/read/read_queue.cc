#include "server/engine/read/read_queue.h"

#include <algorithm>
#include <utility>

#include "base/memory_account.h"
#include "base/pending_call.h"
#include "io/record/tfrecord_reader.h"
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

// Whether a map of the file that they are of is worth its room.
bool MostAreSmall(const std::vector<RecordChunk::Record>& records) {
  const size_t late = std::count_if(records.begin(), records.end(),
                                    [](const RecordChunk::Record& record) { return record.late; });
  return records.size() > 2 * late;
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
    request->error = WithAddress(fetched, **file, request->offset);
  } else if (pulls) {
    bytes = BringNear(**file, *request);
  } else {
    try {
      request->error = Read(*file, request);
    } catch (const MemoryLimitError& error) {
      request->error = MemoryStatus(error);
    }
    bytes = chunk.bytes_read;
  }
  // From the store on the request is the front's.
  request->done.store(true, std::memory_order_release);  // SYNC chunk-ready
  return bytes;
}

bool ChunkReader::Park(const std::shared_ptr<RandomAccessFile>& file, ReadRequest* request,
                       const Parking& parking) {
  // Who comes back goes on with what has arrived, or with the error: no read leaves for ever.
  if (std::exchange(request->fetches, nullptr) != nullptr) return false;
  const uint64_t bytes = request->pull_bytes != 0 ? request->pull_bytes : kChunkBytes;
  if (request->format->is_stream() || file->HasFetched(request->offset, bytes)) return false;
  request->queue = &parking.queue;
  request->fetches = file;
  // Who ends it may do so at once, and another worker take the request.
  Completion arrived = parking.away.Leave(request, {CallKind::kRead, "fetching", file->path(),
                                                    request->offset, request->format->stage});
  file->Fetch(request->offset, bytes, std::move(arrived));
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
  const MappedFrames taken =
      CopyMappedFrames({map->file().bytes() + request->offset, bytes}, request->offset,
                       request->file, cells_, &request->records);
  if (request->records.empty()) return false;
  chunk_.bytes_read = taken.bytes;
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
  } else if (ReadMapped(*file, request)) {
    if (request->end_of_file) request->files->LookForGrowth(request->file, *file);
    return absl::OkStatus();
  } else {
    ReadChunk(*file, request->offset, request->expect_late, &chunk, format.stream.on_damage);
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
