// Looks for bytes of a visitor with which the daemon's reading of requests crashes, reads too far
// or takes what is no request.
//
// The first byte says how the rest is used: as it is; or over the fields of a request that is
// right, so that its checks are passed one after another.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ring/attach.h"

using namespace penstock::ring;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] % 2 == 1) {
    AttachRequest request = EncodeRequest("chess", "eval");
    // Pairs of a place and a byte.
    for (size_t i = 2; i < size; i += 3) {
      const size_t place = (data[i - 1] | size_t{data[i]} << 8) % sizeof request;
      if (i + 1 < size) reinterpret_cast<uint8_t*>(&request)[place] = data[i + 1];
    }
    bytes.resize(sizeof request);
    std::memcpy(bytes.data(), &request, sizeof request);
  }
  // Of exactly as many bytes, so that the sanitizer sees a read behind them.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  ParsedRequest request;
  Status error;
  const ParseState state = ParseRequest(exact.data(), exact.size(), &request, &error);
  if (state == ParseState::kRequest) {
    if (exact.size() < sizeof(AttachRequest) || request.pipeline.empty() ||
        request.pipeline.size() > kMaxNameBytes || request.consumer.group.size() > kMaxGroupBytes ||
        request.consumer.name.size() > kMaxGroupBytes ||
        request.position.cursor.size() > kMaxCursorBytes ||
        request.position.held.size() > kMaxReportedLeases ||
        request.position.returned.size() > kMaxReportedLeases) {
      std::abort();
    }
    if (request.operation == Operation::kAttach && !CheckSpec(request.consumer).ok()) std::abort();
  }
  if (state == ParseState::kRefused && error.ok()) std::abort();
  // A beginning is never more than the whole.
  for (size_t cut = 0; cut < exact.size(); cut += 1 + exact.size() / 16) {
    const std::vector<uint8_t> part(exact.begin(),
                                    exact.begin() + static_cast<std::ptrdiff_t>(cut));
    ParsedRequest ignored;
    Status ignored_error;
    const ParseState early = ParseRequest(part.data(), part.size(), &ignored, &ignored_error);
    if (early == ParseState::kRefused && state == ParseState::kRequest) std::abort();
  }
  return 0;
}
