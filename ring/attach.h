// How a client gets the descriptors of a ring: one request and one reply over a Unix stream socket,
// which then stays open for the consumer's life. Its hang-up is the consumer's leave, or the
// daemon's death.
//
//   client                                   daemon
//   ──────                                   ──────
//   connect(DefaultSocketPath())             accept, ring/liveness.h: CheckPeer
//   AttachRequest               ──────────►  ParseRequest over the bytes that came so far
//                                            Writer::Attach
//   AttachReply + descriptors   ◄──────────  SendReply: segment, control page, bell (SCM_RIGHTS)
//   …                                        poll: hang-up or pidfd → Writer::Detach
//
// The daemon tells this protocol from gRPC by the first bytes: HTTP/2 begins with "PRI ", a request
// with "PNSTKATT".
//
// A request may also be about a spec, so that a client needs neither gRPC nor Protobuf: create,
// validate and delete. Spec and cursor come in a memory file beside the request, and the answer
// goes back in another one:
//
//   AttachRequest + one memory file  ──►  its parts one after another: the spec's text, the name that
//                                         messages call it by, the folder of relative paths, a cursor
//   AttachReply + one memory file    ◄──  JSON of a ValidatePipelineResponse (control.proto); of a
//                                         delete, and with an error, no file
//
// While it waits for that, a client may ask on another connection whether the daemon is still at
// work (a probe). Any answer is a sign of life, a refusal by a daemon that knows no probes too.
//
// Threads:  the functions hold no state and are safe from any thread.
// Owns:     a descriptor passed in stays the caller's; one handed out is the caller's to close.
// Limits:   request and reply have fixed sizes, little-endian; names and messages as in layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ring/consumer_spec.h"
#include "ring/status.h"
#include "ring/writer.h"

namespace penstock::ring {

inline constexpr uint64_t kRequestMagic = 0x5454414b54534e50;  // "PNSTKATT"
inline constexpr uint64_t kReplyMagic = 0x5045524b54534e50;    // "PNSTKREP"
inline constexpr uint32_t kMaxGroupBytes = 64;
inline constexpr uint32_t kMaxReplyMessageBytes = 960;
// Segment, control page, bell; and for who has asked for them the table of device_layout.h and,
// where it says so, the memory's.
inline constexpr uint32_t kAttachDescriptors = 3;
inline constexpr uint32_t kMaxAttachDescriptors = 5;

enum class Operation : uint32_t {
  kAttach = 1,
  kCreate = 2,    // the pipeline's name goes over that of the spec, if it is given
  kValidate = 3,  // starts nothing
  kDelete = 4,
  // Answered at once and without a file: the daemon is at work, however long another request takes
  // it
  kProbe = 5,
  kSkipped = 6,  // of a pipeline: what it has left out, as JSON of a ListSkippedResponse
  kStats = 7,    // of a pipeline: what it does, as JSON of a PipelineStats
  // Of a spec: how many steps it has, as JSON {"steps": "12"}, or {"why_not": "…"}; starts nothing
  kCount = 8,
  // Of a pipeline: from the step that the spec's part has in decimals on, its batches are divided
  // among these hosts; JSON of an UpdatePipelineResponse
  kRedivide = 9,
  // With a socket of packets in the place of the memory file: the caller offers to start worker
  // processes for its user's functions (server/python/offers.h). FailedPrecondition where the
  // daemon is of that user, and starts them itself.
  kOffer = 10,
};

// Flags. Of a create: the pipeline is deleted when this connection, or the process that made it,
// ends.
inline constexpr uint32_t kRequestTemporary = 1;
// Of an attach: ConsumerSpec::take_over, at_most_once and on_device.
inline constexpr uint32_t kRequestTakeOver = 2;
inline constexpr uint32_t kRequestAtMostOnce = 4;
inline constexpr uint32_t kRequestOnDevice = 8;
// Of all parts of a request.
inline constexpr uint32_t kMaxPartsBytes = 64 << 20;

// The first 16 bytes mean the same in every version, so that a daemon can answer a client of
// another one. What stands from 256 on belongs to an attach, and is zero in other requests.
//
//   0     magic │ abi_version, request_bytes
//   16    operation, flags │ pipeline_bytes, group_bytes
//   32    part_bytes[4] of the memory file │ world_hosts, world_host │ fewest_hosts, zeros
//   64    pipeline[128]
//   192   group[64]
//   256   mode, rank │ world_size, replica │ replicas, slow │ lag_ms, name_bytes
//   288   identity │ step │ cursor_bytes, num_held │ num_returned, zeros
//   320   name[64]
//   384   held[64]
//   896   returned[64]
//   1408  cursor[1024]
//   2432  zeros
struct AttachRequest {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t request_bytes;
  uint32_t operation;  // Operation
  uint32_t flags;      // those of its operation
  uint32_t pipeline_bytes;
  uint32_t group_bytes;
  uint32_t part_bytes[4];
  // Of a create, a validate and a redivide: World of steering.proto; 0 hosts: none was given.
  uint32_t world_hosts;
  uint32_t world_host;
  uint32_t fewest_hosts;
  uint32_t reserved;
  char pipeline[128];
  char group[kMaxGroupBytes];
  // ConsumerSpec
  uint32_t mode;
  uint32_t rank;
  uint32_t world_size;
  uint32_t replica;
  uint32_t replicas;
  uint32_t slow;
  uint32_t lag_ms;
  uint32_t name_bytes;
  uint64_t identity;
  // ConsumerPosition
  uint64_t step;
  uint32_t cursor_bytes;
  uint32_t num_held;
  uint32_t num_returned;
  uint32_t reserved_1;
  char name[kMaxGroupBytes];
  uint64_t held[kMaxReportedLeases];
  uint64_t returned[kMaxReportedLeases];
  uint8_t cursor[kMaxCursorBytes];
  uint8_t reserved_2[128];
};
static_assert(sizeof(AttachRequest) == 2560);
static_assert(offsetof(AttachRequest, part_bytes) == 32 &&
              offsetof(AttachRequest, pipeline) == 64 && offsetof(AttachRequest, group) == 192);
static_assert(offsetof(AttachRequest, mode) == 256 && offsetof(AttachRequest, identity) == 288 &&
              offsetof(AttachRequest, cursor_bytes) == 304 &&
              offsetof(AttachRequest, name) == 320 && offsetof(AttachRequest, held) == 384 &&
              offsetof(AttachRequest, returned) == 896 && offsetof(AttachRequest, cursor) == 1408);

// All fields mean the same in every version, so that a client of another one can show the message.
//
//   0   magic │ abi_version, reply_bytes │ code, consumer │ start_step │ message_bytes, descriptors
//   │ zeros 64  message[960]
struct AttachReply {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t reply_bytes;
  int32_t code;  // ring/status.h
  uint32_t consumer;
  uint64_t start_step;
  uint32_t message_bytes;
  // 3 of an attach (4 or 5 with a device's), 1 of an answer in a memory file, 0 with an error
  uint32_t descriptors;
  uint64_t reserved[3];
  char message[kMaxReplyMessageBytes];
};
static_assert(sizeof(AttachReply) == 1024);
static_assert(offsetof(AttachReply, message) == 64);

// $PENSTOCK_SOCKET, else $XDG_RUNTIME_DIR/penstock.sock, else /run/penstock/penstock.sock: the one
// rule for daemon, command line and clients.
std::string DefaultSocketPath();

// --- the daemon's side ---

struct ParsedRequest {
  Operation operation = Operation::kAttach;
  bool temporary = false;
  std::string pipeline;
  ConsumerSpec consumer;  // its group is "default" where the client gave none
  ConsumerPosition position;
  uint32_t part_bytes[4] = {};  // at most kMaxPartsBytes in all
  uint32_t world_hosts = 0;     // 0: none was given
  uint32_t world_host = 0;
  uint32_t fewest_hosts = 0;
};

enum class ParseState {
  kNeedMore,  // a prefix of a request: call again with more bytes
  kRequest,   // complete; sizeof(AttachRequest) bytes are used up
  kRefused,   // answer with `error` and close
};

// Looks at the first `size` bytes of a connection.
ParseState ParseRequest(const uint8_t* bytes, size_t size, ParsedRequest* request, Status* error);

// Sends the reply, with the descriptors of `handle` when `status` is kOk (else `handle` may be
// null). Never blocks: the reply fits an empty socket's buffer, and a peer that makes it not fit
// loses its connection (kUnavailable).
Status SendReply(int socket, const Status& status, const ConsumerHandle* handle);

// The same of a request about a spec: with the memory file `answer_fd`, if it is not negative and
// `status` is kOk.
Status SendAnswer(int socket, const Status& status, int answer_fd);

// --- the client's side ---

AttachRequest EncodeRequest(std::string_view pipeline, std::string_view group);
// What does not fit is left out; the daemon refuses what is not good.
AttachRequest EncodeRequest(std::string_view pipeline, const ConsumerSpec& consumer,
                            const ConsumerPosition& position);

// Connects to the daemon at `socket_path`; `socket` receives a descriptor that is the caller's to
// close and does not block. The error says the cause and the next command to type.
// While the daemon's queue of connections is full it asks `is_cancelled`, if there is one, every
// kCancelNs: Cancelled once that is true.
inline constexpr uint64_t kCancelNs = 100'000'000;
Status ConnectToDaemon(const std::string& socket_path, uint64_t timeout_ns, int* socket,
                       const std::function<bool()>& is_cancelled = nullptr);

// What a client holds after attaching; every descriptor is the caller's to close.
struct Attachment {
  int socket = -1;
  int segment_fd = -1;
  int control_fd = -1;
  int bell_fd = -1;
  int device_fd = -1;         // where it has asked for the device's memory: its table
  int device_memory_fd = -1;  // where the table says so
  uint32_t consumer = 0;
  uint64_t start_step = 0;
};

// Connects to the daemon at `socket_path` and attaches. The error says the cause and the next
// command to type. While it waits it asks `is_cancelled` as ConnectToDaemon does.
Status Attach(const std::string& socket_path, std::string_view pipeline, std::string_view group,
              uint64_t timeout_ns, Attachment* out);
Status Attach(const std::string& socket_path, const AttachRequest& request, uint64_t timeout_ns,
              Attachment* out, const std::function<bool()>& is_cancelled = nullptr);

// The same in two halves, for a client that does other things while the daemon takes its time:
// `socket` is the caller's to close until FinishAttach() has succeeded, which puts it into `out`.
Status StartAttach(const std::string& socket_path, const AttachRequest& request,
                   uint64_t timeout_ns, int* socket,
                   const std::function<bool()>& is_cancelled = nullptr);
// `done` is false, and the status fine, when no answer has come in time: call again.
Status FinishAttach(const std::string& socket_path, int socket, uint64_t timeout_ns,
                    Attachment* out, bool* done);

}  // namespace penstock::ring
