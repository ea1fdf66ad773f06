#include "server/helpers/step_bytes.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kParts = std::size(TensorExtent{}.parts);

}  // namespace

std::vector<uint64_t> FixedBytes(const std::vector<BatchTensor>& tensors, uint32_t shape_rows) {
  std::vector<uint64_t> bytes;
  for (const BatchTensor& tensor : tensors) {
    uint64_t of_tensor = tensor.fixed() ? static_cast<uint64_t>(*NumBytes(tensor.type)) : 0;
    if (of_tensor > 0 && tensor.batched)
      of_tensor = of_tensor / static_cast<uint64_t>(tensor.type.shape[0]) * shape_rows;
    bytes.push_back(of_tensor);
  }
  return bytes;
}

uint64_t VariableBytes(const std::vector<TensorExtent>& extents) {
  uint64_t end = 0;
  for (const TensorExtent& extent : extents) {
    for (const TensorExtent::Part& part : extent.parts)
      if (part.bytes > 0) end = std::max(end, part.offset + part.bytes);
  }
  return end;
}

v1::HelperStep DescribeStep(const StepInfo& info) {
  v1::HelperStep step;
  step.set_epoch(info.epoch);
  step.set_rows(info.rows);
  step.set_shape_rows(info.shape_rows);
  step.set_cursor(info.cursor);
  step.set_variable_bytes(VariableBytes(info.extents));
  for (const TensorExtent& extent : info.extents) {
    for (const TensorExtent::Part& part : extent.parts) {
      step.add_extents(part.offset);
      step.add_extents(part.bytes);
    }
  }
  return step;
}

absl::Status CheckStep(const v1::HelperStep& told, const StepInfo& own,
                       const std::vector<BatchTensor>& tensors, uint64_t variable_room,
                       uint64_t data_bytes, std::vector<TensorExtent>* extents) {
  if (told.cursor() != own.cursor) {
    return absl::FailedPreconditionError(
        absl::StrCat("its step ", own.step, " has another cursor: its files or its order differ"));
  }
  if (told.rows() != own.rows || told.shape_rows() != own.shape_rows || told.epoch() != own.epoch) {
    return absl::FailedPreconditionError(absl::StrCat("its step ", own.step, " has ", told.rows(),
                                                      " rows of epoch ", told.epoch(), ", not ",
                                                      own.rows, " of epoch ", own.epoch));
  }
  const auto variable =
      std::count_if(tensors.begin(), tensors.end(), [](const auto& one) { return !one.fixed(); });
  const std::vector<uint64_t> fixed = FixedBytes(tensors, own.shape_rows);
  const uint64_t fixed_bytes = std::accumulate(fixed.begin(), fixed.end(), uint64_t{0});
  const uint64_t room = variable == 0 ? 0 : variable_room;
  if (told.extents_size() != static_cast<int>(variable * 2 * kParts) ||
      told.variable_bytes() > room || data_bytes != fixed_bytes + told.variable_bytes()) {
    return absl::DataLossError(absl::StrCat("its step ", own.step, " has ", data_bytes, " bytes, ",
                                            told.variable_bytes(), " of them variable"));
  }
  extents->assign(variable, {});
  for (int i = 0; i < told.extents_size(); i += 2) {
    const uint64_t offset = told.extents(i), bytes = told.extents(i + 1);
    if (offset % 64 != 0 || offset > room || (bytes > 0 && offset > told.variable_bytes()) ||
        bytes > told.variable_bytes() || (bytes > 0 && offset + bytes > told.variable_bytes())) {
      return absl::DataLossError(
          absl::StrCat("its step ", own.step, " has a part outside of the slot"));
    }
    (*extents)[i / (2 * kParts)].parts[i / 2 % kParts] = {offset, bytes};
  }
  return absl::OkStatus();
}

}  // namespace penstock
