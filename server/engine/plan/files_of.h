// What a plan's files are read from, for who tells of it.
//
// Threads:  any. It lives as long as that which the plan was made with.
#pragma once

#include "base/file.h"
#include "server/engine/plan/plan.h"

namespace penstock {

FileSystem& FilesOf(const Plan& plan);

}  // namespace penstock
