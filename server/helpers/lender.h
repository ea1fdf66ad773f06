// The helpers of one stream: a link to each that is known, and where the next step goes.
//
// Threads:  as StepLender.
// Owns:     the links.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/run/step_lender.h"
#include "server/helpers/helper_link.h"
#include "server/helpers/known_helpers.h"

namespace penstock {

class Lender final : public StepLender {
 public:
  Lender(std::shared_ptr<const KnownHelpers> known, std::shared_ptr<const TlsContext> tls,
         bool plaintext, int steps_at_a_time, const Plan& plan, const LentStream& stream);
  ~Lender() override;

  bool HasRoom() const override;
  std::shared_ptr<Place> Reserve() override;
  void GiveUp(Place& place) override { static_cast<HelperLink&>(place).GiveUp(); }
  void Lend(Place& place, StepInfo* info, const ClaimedSlot& slot, Completion done) override {
    static_cast<HelperLink&>(place).Take(info, slot, std::move(done));
  }
  void TakeBack(uint64_t step) override;
  void Passed(uint64_t step, const std::string& cursor, uint64_t own_ns) override;
  std::vector<HelperStats> Helpers() const override;

 private:
  // Where a helper that comes now is to begin. Links have a reference, and may outlast this by a
  // moment.
  struct Start {
    std::string spec_and_world;  // a HelperHello without the fields of the position
    std::mutex mutex;
    std::string cursor;  // under mutex, as those below
    uint64_t step = 0;
    uint64_t skip_steps = 0;
    std::optional<uint64_t> start_pass;
    std::string MakeHello(uint64_t* first_step);
  };
  // Those that are known now get a link, and others lose theirs. REQUIRES: mutex_
  void MeetThoseKnown();

  const std::shared_ptr<const KnownHelpers> known_;
  const std::shared_ptr<Start> start_;
  const std::shared_ptr<HelperLink::Common> common_;
  // What an address gets that is not this machine's own, where there is no certificate and none is
  // needed.
  const bool plaintext_;

  std::atomic<uint64_t> version_{0};  // of known_, that the links are of
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<HelperLink>> links_;  // under mutex_, as those below
  std::vector<std::shared_ptr<HelperLink>> left_;   // are being stopped
  std::vector<std::string> refused_;                // addresses that need a certificate
  size_t next_ = 0;                                 // whose turn it is
};

}  // namespace penstock
