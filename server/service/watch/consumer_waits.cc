#include "server/service/watch/consumer_waits.h"

#include "absl/strings/str_cat.h"

namespace penstock {

void ConsumerWaits::Look(uint64_t stream, const std::vector<ring::ConsumerStats>& consumers,
                         uint64_t now_ns) {
  for (const ring::ConsumerStats& now : consumers) {
    if (now.left || now.detached) continue;
    const Key key = {stream, now.id};
    Consumer& consumer = consumers_[key];
    if (consumer.name.empty()) {
      consumer.name = absl::StrCat("consumer ", now.id, now.name.empty() ? "" : ", ", now.name,
                                   " of group ", now.group, " (process ", now.pid, ")");
    }
    // Who has taken a step since the last look waits for another one.
    if (consumer.waits && (!now.waits || now.position != consumer.position))
      Close(key, &consumer, now_ns);
    if (now.waits && !consumer.waits) {
      consumer.waits = true;
      consumer.since_ns = now_ns;
    }
    consumer.position = now.position;
  }
}

void ConsumerWaits::Close(const Key& key, Consumer* consumer, uint64_t now_ns) {
  consumer->waits = false;
  consumer->has_waited = true;
  if (waits_.size() < kMost) {
    waits_.push_back({key.first, key.second, consumer->name, consumer->since_ns, now_ns});
  } else {
    ++dropped_;
  }
}

std::vector<ConsumerWait> ConsumerWaits::End(uint64_t now_ns) {
  for (auto& [key, consumer] : consumers_) {
    if (consumer.waits) {
      Close(key, &consumer, now_ns);
    } else if (!consumer.has_waited) {
      consumer.since_ns = now_ns;
      Close(key, &consumer, now_ns);
    }
  }
  consumers_.clear();
  return std::move(waits_);
}

}  // namespace penstock
