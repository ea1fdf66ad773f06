// Descriptors of files that are kept open only so that they need not be opened anew: a part of
// those that the process may have, so that sockets, rings and files under way find some.
//
// Threads:  safe from any thread.
// Owns:     a count for the process, as the limit is one of the process.
// Cost:     an atomic step.
#pragma once

#include <cstddef>

namespace penstock {

// As many as may be kept: a quarter of the process' limit (RLIMIT_NOFILE), as it stands when that
// is asked for the first time.
size_t KeptDescriptorsMax();

// False where as many are kept already.
bool KeepDescriptor();
// Of one that was kept.
void LetGoOfDescriptor();

// How many files one thread opens ahead of those that it reads: fewer where the limit is low, 1 to
// 64.
size_t FilesOpenedAhead();

}  // namespace penstock
