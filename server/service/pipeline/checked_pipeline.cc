#include "server/service/pipeline/checked_pipeline.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/nanoseconds.h"
#include "server/cuda/expansions.h"
#include "server/engine/plan/plan_change.h"
#include "server/service/state/world_message.h"
#include "server/service/stream/read_deadline.h"
#include "server/service/stream/ring_sink.h"

namespace penstock {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr int kMaxWorkers = 1024;
// On a device slots do not grow: two leases for each of two trainers, and one.
constexpr uint32_t kDeviceSlots = 5;

absl::Status CheckNumbers(const v1::PipelineSpec& spec) {
  if (spec.workers() < 0 || spec.workers() > kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("workers out of range: ", spec.workers(),
                                                   " is not in [0, ", kMaxWorkers, "]"));
  }
  if (absl::Status status = CheckSlots(spec.ring().slots()); !status.ok()) return status;
  if (spec.ring().has_device() && spec.ring().device() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ring.device is the number of a CUDA device, from 0 on: ", spec.ring().device()));
  }
  if (!spec.ring().has_device() && spec.ring().expand_size() > 0) {
    return absl::InvalidArgumentError("ring.expand needs ring.device: a device has to do it");
  }
  if (spec.has_numa_node()) {
    absl::Status status = CheckNumaNode("numa_node", spec.numa_node());
    if (!status.ok()) return status;
  }
  if (spec.has_read_deadline_ms()) {
    absl::Status status = CheckReadDeadline("read_deadline_ms", spec.read_deadline_ms());
    if (!status.ok()) return status;
  }
  return CheckReadAhead(spec.read_ahead_bytes());
}

}  // namespace

absl::Status CheckSlots(int64_t slots) {
  if (slots == 0 || (slots >= kMinSlots && slots <= kMaxSlots)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("ring.slots out of range: ", slots,
                                                 " is not 0 (automatic) or in [", kMinSlots, ", ",
                                                 kMaxSlots, "]"));
}

absl::Status CheckReadAhead(int64_t bytes) {
  if (bytes == 0 || (bytes >= kMinReadAhead && bytes <= kMaxReadAhead)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("read_ahead_bytes out of range: ", bytes,
                                                 " is not 0 (automatic) or in [", kMinReadAhead,
                                                 ", ", kMaxReadAhead, "]"));
}

absl::Status CheckPipelineName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "the pipeline has no name: put name: \"…\" into the spec or give --name NAME");
  }
  bool good = name.size() <= kMaxNameBytes && absl::ascii_isalnum(name[0]);
  for (const char c : name) {
    good = good && (absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-');
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a pipeline's name: expected 1 to ", kMaxNameBytes,
                   " of [a-z A-Z 0-9 _ . -], the first a letter or digit, found \"",
                   name.substr(0, 2 * kMaxNameBytes), "\""));
}

absl::StatusOr<CheckedPipeline> CheckPipeline(const v1::PipelineSpec& spec,
                                              const v1::WorkerDefaults& defaults, FileSystem& files,
                                              World world, uint32_t fewest_hosts) {
  absl::Status status = CheckNumbers(spec);
  if (status.ok() && !spec.name().empty()) status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, files, world);
  if (!plan.ok()) return plan.status();
  if (fewest_hosts > world.hosts) {
    return absl::InvalidArgumentError(
        absl::StrCat("world.fewest_hosts: expected at most the number of hosts, ", world.hosts,
                     ", found ", fewest_hosts));
  }
  absl::StatusOr<std::shared_ptr<const Plan>> layout = *plan;
  if (fewest_hosts > 0 && fewest_hosts < world.hosts)
    layout = MakePlan((*plan)->spec(), files, {fewest_hosts, 0});
  if (!layout.ok()) return layout.status();
  if (status = CheckSameElement(**layout, **plan); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(status.message(), "; leave out fewest_hosts"));
  }

  CheckedPipeline checked;
  const int slots = (*plan)->spec().ring().slots();
  if ((*plan)->spec().ring().has_device()) {
    std::vector<std::optional<cuda::Expansion>> expansions;
    const ring::Status readable =
        ReadExpansions((*plan)->spec().ring(), (*plan)->tensors(), &expansions);
    if (!readable.ok()) return FromRing(readable);
  }
  checked.workers = spec.workers() > 0 ? spec.workers() : defaults.workers();
  if (defaults.has_numa_node()) checked.numa_node = defaults.numa_node();
  if (spec.has_numa_node()) checked.numa_node = spec.numa_node();
  checked.read_deadline_ns = ReadDeadlineNs(spec, defaults);
  checked.plan = *std::move(plan);
  checked.layout = *std::move(layout);
  checked.slots = slots > 0 ? static_cast<uint32_t>(slots) : DefaultSlotsOf(checked);
  return checked;
}

uint32_t DefaultSlotsOf(const CheckedPipeline& checked) {
  if (checked.plan->spec().ring().has_device()) return kDeviceSlots;
  return DefaultSlots(checked.layout->slot_bytes());
}

v1::Pipeline Describe(const CheckedPipeline& checked) {
  v1::Pipeline result;
  const Plan& plan = *checked.plan;
  result.set_name(plan.spec().name());
  *result.mutable_spec() = plan.spec();
  result.mutable_spec()->set_workers(checked.workers);
  if (checked.numa_node != kNoNumaNode) result.mutable_spec()->set_numa_node(checked.numa_node);
  if (checked.read_deadline_ns != 0)
    result.mutable_spec()->set_read_deadline_ms(checked.read_deadline_ns / kNsPerMs);
  result.mutable_spec()->mutable_ring()->set_slots(checked.slots);
  for (const Feature& feature : plan.element()) {
    v1::TensorSignature* tensor = result.add_element();
    tensor->set_name(feature.name);
    tensor->set_dtype(static_cast<v1::DataType>(feature.type.dtype));
    for (const int64_t size : feature.type.shape) tensor->add_shape(size);
    const TensorKind kind = plan.tensors()[result.element_size() - 1].kind;
    tensor->set_kind(kind == TensorKind::kString   ? v1::TENSOR_KIND_STRING
                     : kind == TensorKind::kRagged ? v1::TENSOR_KIND_RAGGED
                     : kind == TensorKind::kSparse ? v1::TENSOR_KIND_SPARSE
                                                   : v1::TENSOR_KIND_DENSE);
    const BatchTensor& made = plan.tensors()[result.element_size() - 1];
    tensor->set_int32_row_splits(kind == TensorKind::kRagged && made.type.narrow_splits);
  }
  result.set_batch_rows(plan.batch_rows());
  SetWorld(plan.world(), &result);
  result.set_cursor(plan.DescribeCursor());
  result.set_structure(plan.structure());
  result.set_endless(plan.endless());
  result.set_slot_bytes(checked.layout->slot_bytes());
  result.set_slots(checked.slots);
  return result;
}

}  // namespace penstock
