// Which objects of a cache folder the pipelines of this process will read again, and how soon.
//
//     a plan is made                Need(): all its objects are ahead of its reader
//     one is read to its end        Passed(): it comes again in the next pass, behind all others
//     one is passed a second time   another pass has begun: the others are ahead again
//     the plan goes                 NoMore()
//
// A reader is a pipeline. Nothing is known of its order but that each pass reads each object once.
// So an object that is ahead is read sooner than one that was passed, and of those that were passed
// the last one comes again last.
//
// Threads:  safe from any thread.
// Owns:     what it knows of the readers that have plans; it does not keep the readers.
// Limits:   a reader that has read nothing for kRestS needs nothing until it reads again.
// Cost:     a lock for each call; some 60 bytes for each object of a plan.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace penstock {

class CacheNeeds {
 public:
  // How long a reader may read nothing.
  static constexpr int64_t kRestS = 3600;
  // How often what a reader needs is marked for other processes.
  static constexpr int64_t kRenewS = 600;

  using Key = uint64_t;        // of an object's name
  using Reader = const void*;  // only compared
  enum class Use : uint8_t {
    kNobody,  // of this process
    kLater,   // all who need it have passed it
    kSoon,    // it is ahead of somebody
  };
  struct Standing {
    Use use = Use::kNobody;
    uint64_t passed_at = 0;  // the larger, the later it comes again; of kLater
  };

  // A plan of the reader needs these from now on.
  void Need(Reader reader, const std::vector<Key>& keys, int64_t now_s);
  // The plan that said so needs them no more. What nobody needs now is returned; nothing where the
  // reader has read nothing, as of a plan that was only looked at.
  std::vector<Key> NoMore(Reader reader, const std::vector<Key>& keys);
  // The reader, if it has a plan, asks for bytes of the object. Returns what is to be marked as
  // needed for other processes: all that the reader needs, each kRenewS.
  std::vector<Key> Used(Reader reader, Key key, int64_t now_s);
  // The reader has read the object from its beginning to its end.
  void Passed(Reader reader, Key key);

  Standing Of(Key key, int64_t now_s) const;
  // Whether it is ahead of anybody but the reader.
  bool IsAheadOfOthers(Reader reader, Key key, int64_t now_s) const;

 private:
  struct Object {
    uint32_t plans = 0;  // 0: the reader has asked for it, and no plan has named it
    uint32_t passes = 0;
    uint64_t passed_at = 0;
  };
  struct State {
    std::unordered_map<Key, Object> objects;
    uint32_t plans = 0;
    uint32_t passes = 1;  // of what was passed most often, at least 1: the pass that is under way
    int64_t used_s = 0;
    int64_t renewed_s = 0;
    bool has_read = false;

    bool rests(int64_t now_s) const { return now_s - used_s >= kRestS; }
  };

  mutable std::mutex mutex_;
  std::unordered_map<Reader, State> readers_;  // under mutex_; of those that have plans
  uint64_t passed_ = 0;                        // under mutex_
};

}  // namespace penstock
