// How a spec says what the rows of a batch are padded to, and with what.
//
// Threads: any; no state.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/signature.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/tensor/batch_form.h"

namespace penstock {

// What to say of a feature that is a list for `batch` to join: behind "found ...", or "".
absl::string_view HowToBeDense(const TensorType& type);

// Makes `form` one that pads elements of that signature: its kind, shapes and values.
absl::Status ReadPadding(const google::protobuf::RepeatedPtrField<v1::PaddedShape>& padded_shapes,
                         const google::protobuf::RepeatedPtrField<v1::PaddingValue>& padding_values,
                         const Signature& signature, BatchForm* form);

}  // namespace penstock
