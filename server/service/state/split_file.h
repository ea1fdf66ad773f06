// The memory of split groups in files of the state folder, one for each group: mapped, so that a
// step that is given out is kept by a store and survives kill -9 of the daemon (not a loss of
// power: then the consumers are gone too). Whose a group is stands in its file, so that it stays
// that user's.
//
// Threads:  as SplitLog: under the writer's lock. Load() before the first ring. Retire() from any.
// Owns:     the mappings.
// Limits:   kMaxGroups at a time; a group beyond them is not remembered, and told of in the log. 64
//           steps a group.
// Cost:     a step given out costs a copy of its cursor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ring/split_log.h"
#include "server/service/state/state_folder.h"

namespace penstock {

class SplitFiles : public ring::SplitLog {
 public:
  static constexpr int kMaxGroups = 16;

  // `folder` must outlive it. The files are those of one pipeline.
  SplitFiles(const StateFolder& folder, std::string pipeline)
      : folder_(folder), pipeline_(std::move(pipeline)) {}
  ~SplitFiles() override;

  // The groups that an earlier daemon had. A file that is not whole is removed.
  std::map<std::string, ring::SplitState> Load();
  // Removes what there is of the pipeline.
  static void Remove(const StateFolder& folder, const std::string& pipeline);

  void Begin(std::string_view group, bool at_most_once, const ring::SplitUser& user, uint64_t next,
             std::string_view cursor) override;
  void Set(std::string_view group, const ring::SplitEntry& entry) override;
  void Clear(std::string_view group, uint64_t step) override;
  void SetNext(std::string_view group, uint64_t next, std::string_view cursor) override;
  void End(std::string_view group) override;
  // Under no writer's lock: no ring goes on with any of them.
  void EndAll();

  // While the pipeline is deleted: no file is opened any more, as those of its name may be another
  // one's; or again. Waits for what is being opened.
  void Retire(bool retired);

 private:
  struct Image;
  struct Kept {
    int number = 0;  // of its file
    Image* image = nullptr;
  };

  Image* Find(std::string_view group);
  Image* Map(int number, bool create);

  const StateFolder& folder_;
  const std::string pipeline_;
  // The first number that no group's file has; kMaxGroups: there is none.
  int FreeNumber() const;

  std::map<std::string, Kept, std::less<>> kept_;
  std::mutex retire_mutex_;
  bool retired_ = false;  // under retire_mutex_
};

}  // namespace penstock
