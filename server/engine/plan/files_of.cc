#include "server/engine/plan/files_of.h"

#include "server/engine/plan/plan_impl.h"

namespace penstock {

FileSystem& FilesOf(const Plan& plan) { return static_cast<const PlanImpl&>(plan).files(); }

}  // namespace penstock
