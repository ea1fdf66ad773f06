// How users share a limited number of places, so that none keeps others out. Where all are taken,
// whoever has most gives up the one that has been quiet for longest, for somebody who has fewer
// (FairPlaces); or, of places that nobody is turned out of, some are kept (MayTakePlace).
//
// Threads:  not safe from several at a time.
// Limits:   as many places as its owner lets it have.
// Cost:     ToGiveUp() looks at every user; the rest is a look-up.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "ring/may_take_place.h"

namespace penstock {

using ring::MayTakePlace;

class FairPlaces {
 public:
  using Place = uint64_t;

  // REQUIRES: nobody has this place.
  void Take(Place place, uid_t user);
  // A place that nobody has is fine, here and in Touch().
  void Leave(Place place);
  // Its holder has just done something there.
  void Touch(Place place);

  size_t size() const { return places_.size(); }
  size_t HeldBy(uid_t user) const;
  // The place that another user is to give up for a further one of `user`; none where nobody has
  // two more than `user`, so that nobody is turned out in turns.
  std::optional<Place> ToGiveUp(uid_t user) const;
  // The place of `user` himself that has been quiet for longest.
  std::optional<Place> QuietestOf(uid_t user) const;

 private:
  using Moment = uint64_t;  // counts what was done
  struct Held {
    uid_t user = 0;
    Moment moment = 0;
  };

  Moment now_ = 0;
  std::map<Place, Held> places_;
  std::map<uid_t, std::map<Moment, Place>> by_user_;  // the quietest first; nobody without a place
};

}  // namespace penstock
