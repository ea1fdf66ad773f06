// DLPack's structure of a tensor, as its version 0.8 draws it (dmlc/dlpack,
// include/dlpack/dlpack.h), in a Python capsule.
//
// Threads:  under the GIL.
// Owns:     a capsule holds the object whose memory it shows until whoever took it has let go.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace penstock_python {

inline constexpr int32_t kDlpackCuda = 2;

// `dtype`: a code of penstock.h. TypeError for one that DLPack has not.
nanobind::object MakeDlpackCapsule(nanobind::handle owner, uint64_t address, int32_t device,
                                   const std::vector<int64_t>& shape, uint32_t dtype);

}  // namespace penstock_python
