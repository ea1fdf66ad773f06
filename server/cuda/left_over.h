// What CUDA's driver leaves behind of a daemon that was killed.
//
// Events that other processes may open lie in a file of the driver's, /dev/shm/cuda.shm.U.P.N of 80
// KiB: P is the process's number in hexadecimal digits. A process that ends takes its file along;
// one that was killed does not, and no later one of the driver's does (seen with driver 580). The
// next daemon at the same socket does, in the same PID namespace: elsewhere the number is another
// process's.
//
// Threads:  any.
// Owns:     nothing.
#pragma once

#include <sys/types.h>

#include <string>

namespace penstock {

// Removes those files of process `pid`, if it is gone or going. Only regular files of this user.
// Returns how many.
int RemoveLeftOver(pid_t pid, const std::string& folder = "/dev/shm");

}  // namespace penstock
