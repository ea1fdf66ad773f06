// What code of the user's is said to return: its outputs, as a spec has them, and as those who call
// it read them.
//
// Threads: no state; safe from any thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/signature.h"
#include "nlohmann/json_fwd.hpp"
#include "penstock/v1/ops.pb.h"

namespace penstock {

using DeclaredOutputs = google::protobuf::RepeatedPtrField<v1::PythonOutput>;

// InvalidArgument where no other process takes or gives such a feature; `what` it is.
absl::Status CheckExchanged(const Feature& feature, absl::string_view what);

// InvalidArgument for outputs that are none. `counted`: their first axis, -1, counts what is given
// for one element.
absl::StatusOr<Signature> ReadDeclaredOutputs(const DeclaredOutputs& outputs, bool counted);

// InvalidArgument for a structure, unless it is "", whose paths are not the names of these.
absl::Status CheckDeclaredStructure(const std::string& structure, const Signature& outputs);

// [{"name", "dtype", "shape"}, …], and of outputs that are packed "packed" and "packed_shape".
nlohmann::ordered_json ExchangedJson(const Signature& features);
nlohmann::ordered_json ExchangedJson(const Signature& features, const DeclaredOutputs& outputs);

// What a function is declared to return. InvalidArgument where an option is wrong that ops of
// Python functions have in common.
absl::StatusOr<Signature> ReadDeclaredFunction(const v1::PythonFunction& function, bool counted);
// Of what a worker is told, the part that is in those options.
nlohmann::ordered_json FunctionJson(const v1::PythonFunction& function, const std::string& name);

// InvalidArgument for an option outside of 1 to `most`.
absl::Status CheckFromOne(absl::string_view what, int64_t value, int64_t most);

}  // namespace penstock
