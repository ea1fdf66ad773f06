#include "server/helpers/lendable.h"

#include "server/engine/spec/descriptor_path.h"
#include "server/engine/spec/python_functions.h"
#include "server/engine/spec/spec_paths.h"

namespace penstock {

std::string WhyNotLendable(const v1::PipelineSpec& spec) {
  PythonFunctions functions;
  AddPythonFunctions(spec, &functions);
  if (!functions.empty()) return "a Python function lies in this host's memory";
  std::string why;
  v1::PipelineSpec visited = spec;
  for (v1::Stage& stage : *visited.mutable_stage()) {
    VisitAllPaths(&stage, [&](PathKind kind, std::string* path) {
      if (kind == PathKind::kFolder)
        why = "a stage keeps elements in a folder";
      else if (IsDescriptorPath(*path))
        why = "arrays of it lie in this host's memory";
    });
  }
  return why;
}

}  // namespace penstock
