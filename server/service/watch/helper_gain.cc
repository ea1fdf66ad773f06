#include "server/service/watch/helper_gain.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/service/watch/percent.h"

namespace penstock {
namespace {

// How it begins.
constexpr char kMark[] = "helpers: ";
// A trainer that waits for less than this has what it wants.
constexpr double kHardlyWaits = 0.01;
// One that waits for more would take nobody knows how many steps.
constexpr double kNearlyAlways = 0.9;
// Helpers that make less than this of the steps bring little.
constexpr double kLittle = 0.02;
// Slots that a ring has for a helper's steps, and for the trainer and this host's own workers.
constexpr uint32_t kSlotsOfHelper = 2;
constexpr uint32_t kOwnSlots = 6;
constexpr uint32_t kMostSlots = 64;

struct Helpers {
  int all = 0;
  int ready = 0;
  int resting = 0;
  int left_out = 0;
  int at_work = 0;   // those that have made a step
  double steps = 0;  // that they have made
  bool has_steps = false;
};

Helpers Count(const Look& from, const Look& to) {
  Helpers found;
  for (const v1::HelperStats& now : to.stats.helpers()) {
    ++found.all;
    found.ready += now.state() == "ready";
    found.resting += now.state() == "resting";
    found.left_out += now.state() == "left out";
    found.has_steps = found.has_steps || now.steps_away() > 0;
    uint64_t before = 0;
    for (const v1::HelperStats& then : from.stats.helpers())
      if (then.address() == now.address()) before = then.steps();
    // A new phase counts anew.
    if (now.steps() < before) before = 0;
    found.at_work += now.steps() > before;
    found.steps += static_cast<double>(now.steps() - before);
  }
  return found;
}

// Why none of them has made a step.
std::string WhyNothing(const Helpers& helpers) {
  if (helpers.resting > 0)
    return "their steps come later than this host's workers would have made them; more slots "
           "(ring { slots } in the spec) give them more time";
  if (helpers.has_steps) return "none of their steps has come in the last seconds";
  if (helpers.ready > 0)
    return "they got no step in the last seconds; more slots (ring { slots } in the spec) leave "
           "some for them";
  if (helpers.left_out > 0)
    return absl::StrCat(helpers.left_out, " of them are left out, and explain says why");
  return "none has been reached yet";
}

}  // namespace

std::string HelperGain(const Look& from, const Look& to, double wait,
                       const v1::Analysis& analysis) {
  const Helpers helpers = Count(from, to);
  const double steps = analysis.steps_per_s() * analysis.seconds();
  if (helpers.all == 0 || to.stats.consumers().empty() || wait < 0 || steps <= 0) return "";
  const bool has_enough = analysis.bottleneck() == "consumer" || wait < kHardlyWaits;
  constexpr char kEnough[] = "the trainer waits for nothing: more would change nothing";
  if (helpers.at_work == 0) {
    if (has_enough)
      return absl::StrCat(kMark, helpers.all, " made no step in the last seconds, and ", kEnough);
    return absl::StrCat(kMark, helpers.all, helpers.all == 1 ? " brings" : " bring",
                        " nothing: ", WhyNothing(helpers));
  }
  const double share = std::min(1.0, helpers.steps / steps);
  const std::string now =
      absl::StrCat(kMark, helpers.at_work, helpers.at_work == 1 ? " makes " : " make ",
                   Percent(share), " of the steps");
  if (has_enough) return absl::StrCat(now, ", and ", kEnough);
  if (share < kLittle) return absl::StrCat(now, ": more like these would change little");
  // A helper more makes as many steps as one of these, until the trainer waits no longer.
  const double growth = share / helpers.at_work;
  const double missing = wait < 1 ? wait / (1 - wait) : 1e9;
  std::string gain = absl::StrCat(now, "; +1 helper ≈ +", Percent(std::min(growth, missing)));
  uint32_t more = 1;
  if (wait < kNearlyAlways) {
    more = std::max<uint32_t>(1, static_cast<uint32_t>(std::ceil(missing / growth)));
    absl::StrAppend(&gain, "; with ", more, " more the trainer would wait for nothing");
  }
  const uint32_t slots = std::min(
      kMostSlots, kSlotsOfHelper * (static_cast<uint32_t>(helpers.all) + more) + kOwnSlots);
  if (to.stats.slots() < slots)
    absl::StrAppend(&gain, ", if the ring has room (ring { slots: ", slots, " } in the spec)");
  return gain;
}

std::string HelperGainIn(const std::string& sentence) {
  const size_t at = sentence.rfind(kMark);
  return at == sentence.npos ? "" : sentence.substr(at);
}

}  // namespace penstock
