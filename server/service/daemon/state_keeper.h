// Keeps the daemon's memory within reach: once a second it looks whether the folder of its state
// still stands, and puts back what somebody has removed, such as a cleaner of temporary folders. As
// SocketKeeper does for the socket.
//
// Threads:  the event loop's, which waits for the folder's file system.
// Owns:     its timer.
// Limits:   where another daemon has taken the folder's place it is left alone, and that is said
//           once. Which steps of a split group were in whose hands is not put back.
#pragma once

#include <string>

#include "server/service/socket/event_loop.h"
#include "server/service/state/state_folder.h"

namespace penstock {

class StateKeeper {
 public:
  // Both must outlive it.
  StateKeeper(EventLoop& loop, const StateFolder& folder);
  ~StateKeeper();

 private:
  void Look();

  EventLoop& loop_;
  const StateFolder& folder_;
  EventLoop::Id timer_ = 0;
  std::string told_;  // why it could not be put back
};

}  // namespace penstock
