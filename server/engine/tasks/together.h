// Several things that are waited for as one: what others fetch, each with a completion of its own.
//
//     auto* const together = new Together(std::move(whole));
//     for (…) Begin(…, together->One());
//     together->End(absl::OkStatus());   // no further one comes
//
// Threads:  One() and the last End() by who made it; the others' ends from any thread.
// Owns:     the completion of all; itself: it goes when the last one has ended. How they end is no
//           matter: who looks at what came sees it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/completion.h"

namespace penstock {

class Together final : public Completion::Sink {
 public:
  explicit Together(Completion whole) : whole_(std::move(whole)) {
    whole_.OnCancel([cancels = cancels_] { cancels->Run(); });
  }

  Completion One() {
    left_.fetch_add(1);
    return Completion(this);
  }
  void End(absl::Status) override {
    if (left_.fetch_sub(1) != 1) return;
    Completion whole = std::move(whole_);
    delete this;
    whole.End();
  }
  void OnCancel(std::function<void()> cancel) override { cancels_->Add(std::move(cancel)); }

 private:
  struct Cancels {
    void Add(std::function<void()> cancel) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (!is_cancelled) {
          all.push_back(std::move(cancel));
          return;
        }
      }
      cancel();
    }
    void Run() {
      std::vector<std::function<void()>> taken;
      {
        std::lock_guard<std::mutex> lock(mutex);
        is_cancelled = true;
        taken.swap(all);
      }
      for (const auto& cancel : taken) cancel();
    }

    std::mutex mutex;
    bool is_cancelled = false;               // under mutex
    std::vector<std::function<void()>> all;  // under mutex
  };

  std::atomic<int> left_{1};
  const std::shared_ptr<Cancels> cancels_ = std::make_shared<Cancels>();
  Completion whole_;
};

}  // namespace penstock
