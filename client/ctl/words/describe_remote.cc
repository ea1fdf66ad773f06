#include "client/ctl/words/describe_remote.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {

std::string DescribeRemote(const v1::PipelineStats& stats) {
  const v1::RemoteStats& remote = stats.remote();
  const double reads = static_cast<double>(remote.hits() + remote.misses());
  std::string text = absl::StrFormat(
      "%s by %u requests (%u sent again, %u second ones), %.0f %% of reads found in memory",
      ByteCount(remote.bytes()), remote.requests(), remote.retries(), remote.hedges(),
      reads > 0 ? 100 * static_cast<double>(remote.hits()) / reads : 0);
  if (remote.cached_bytes() > 0)
    absl::StrAppend(&text, ", ", ByteCount(remote.cached_bytes()), " out of the cache folder");
  if (remote.waiting() > 0)
    absl::StrAppend(&text, "; fetching for ", remote.waiting(),
                    remote.waiting() == 1 ? " read" : " reads");
  absl::StrAppend(&text, "; the daemon has ", remote.under_way(), " of at most ",
                  remote.request_limit(), " requests under way");
  if (remote.first_byte_ms() > 0)
    absl::StrAppendFormat(&text, ", a first byte takes %.0f ms", remote.first_byte_ms());
  return text;
}

}  // namespace penstock::ctl
