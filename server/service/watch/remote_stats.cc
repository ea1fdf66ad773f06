#include "server/service/watch/remote_stats.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/far_file.h"

namespace penstock {

void AddRemote(const FileSystem& files, v1::PipelineStats* stats) {
  const auto* const joined = dynamic_cast<const JoinedFileSystem*>(&files);
  const std::optional<FetchNumbers> numbers = joined == nullptr ? std::nullopt : joined->numbers();
  if (!numbers) return;
  v1::RemoteStats* const out = stats->mutable_remote();
  out->set_bytes(numbers->bytes);
  out->set_requests(numbers->requests);
  out->set_retries(numbers->retries);
  out->set_hedges(numbers->hedges);
  out->set_hits(numbers->hits);
  out->set_misses(numbers->misses);
  out->set_cached_bytes(numbers->cached_bytes);
  out->set_waiting(static_cast<uint32_t>(numbers->waiting));
  out->set_under_way(static_cast<uint32_t>(numbers->under_way));
  out->set_request_limit(static_cast<uint32_t>(numbers->request_limit));
  out->set_queued(static_cast<uint32_t>(numbers->queued));
  out->set_memory_bytes(numbers->memory_bytes);
  out->set_max_memory_bytes(numbers->memory_bytes_max);
  out->set_first_byte_ms(1e-6 * static_cast<double>(numbers->first_byte_ns));
}

void ExplainRemote(const v1::PipelineStats& stats, std::vector<std::string>* out) {
  if (!stats.has_remote() || stats.remote().waiting() == 0) return;
  const v1::RemoteStats& remote = stats.remote();
  std::string text =
      absl::StrCat(remote.waiting(), remote.waiting() == 1 ? " read waits" : " reads wait",
                   " for bytes of files at addresses: ", remote.under_way(),
                   " requests are under way of at most ", remote.request_limit(), ", and ",
                   remote.queued(), " ranges wait for one");
  if (remote.first_byte_ms() > 0)
    absl::StrAppend(&text, "; a first byte takes ", std::lround(remote.first_byte_ms()), " ms");
  if (remote.retries() > 0)
    absl::StrAppend(&text, "; ", remote.retries(), " of ", remote.requests(),
                    " requests were sent again");
  out->push_back(std::move(text));
}

}  // namespace penstock
