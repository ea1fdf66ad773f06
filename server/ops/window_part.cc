#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/tensor/structure.h"

namespace penstock {
namespace {

const OpRegistration<v1::WindowPart> kWindowPart(
    "window_part", {.place = OpPlace::kSource, .is_window_part = true},
    [](const v1::WindowPart& options, PlanBuilder& plan) -> absl::Status {
      const WindowElements* const elements = plan.window_elements();
      if (elements == nullptr) {
        return absl::InvalidArgumentError(
            "expected to stand inside of window or group_by_window, found nothing around it");
      }
      Signature visible;
      size_t first = 0;
      std::string structure = elements->structure;
      if (!options.has_component()) {
        visible = elements->signature;
      } else {
        const std::string name = absl::StrCat(options.component());
        const std::string prefix = name + "/";
        for (size_t i = 0; i < elements->signature.size(); ++i) {
          Feature feature = elements->signature[i];
          const bool lone = feature.name == name;
          if (!lone && !absl::StartsWith(feature.name, prefix)) continue;
          if (visible.empty()) first = i;
          feature.name = lone ? "value" : feature.name.substr(prefix.size());
          visible.push_back(std::move(feature));
        }
        absl::StatusOr<std::string> component =
            StructureComponent(elements->structure, options.component());
        if (!component.ok()) {
          return absl::InvalidArgumentError(absl::StrCat("component: expected one of the element, ",
                                                         SignatureToString(elements->signature),
                                                         ", found ", options.component()));
        }
        structure = *std::move(component);
      }
      plan.SetSource(elements->cells->Showing(first, std::move(visible)),
                     FileRange{elements->first_file, 1},
                     PlanBuilder::WindowOrderFactory(/*width=*/1));
      plan.SetStructure(std::move(structure));
      plan.KeyByElement(/*by_its_file=*/false);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
