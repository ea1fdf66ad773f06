#include "server/service/watch/hidden_names.h"

namespace penstock {

void HideOthers(const std::function<bool(const std::string& name)>& visible,
                v1::PipelineStats* stats) {
  if (visible == nullptr) return;
  for (v1::SharedPrefixStats& prefix : *stats->mutable_shared_prefix()) {
    const auto with = prefix.with();
    prefix.clear_with();
    for (const std::string& name : with) prefix.add_with(visible(name) ? name : "(another)");
  }
}

}  // namespace penstock
