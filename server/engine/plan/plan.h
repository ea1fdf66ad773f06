// A checked spec: every stage's types known, functions bound to kernels, memory sized.
//
// Threads:  constant after MakePlan(); shared by all executors of a pipeline.
// Cost:     MakePlan() lists and opens files, reads no record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "io/file/damage.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/world.h"

namespace penstock {

class FileSystem;

class Plan {
 public:
  virtual ~Plan() = default;

  // The spec with every default that was drawn or derived filled in: stage names, seeds.
  virtual const v1::PipelineSpec& spec() const = 0;

  // One element as a consumer sees it: with the batch axis (kUnknownSize when the last batch may be
  // shorter).
  virtual const Signature& element() const = 0;

  // The tensors of a full batch.
  virtual const std::vector<BatchTensor>& tensors() const = 0;

  // Rows of a full batch, those of other hosts too; 1 without `batch`.
  virtual uint32_t batch_rows() const = 0;

  // For which of how many hosts it makes the rows of each batch.
  virtual World world() const = 0;

  // The structure of an element, as ring/layout.h writes it.
  virtual const std::string& structure() const = 0;

  // Bytes of one slot's tensors, without alignment: of those of fixed size, and at most of the
  // others.
  virtual uint64_t slot_bytes() const = 0;
  virtual uint64_t variable_bytes() const = 0;
  // Whether nobody named that size, so that it is a bound and not an amount.
  virtual bool variable_grows() const = 0;

  // The path of file number `file` of a SkippedPlace.
  virtual const std::string& FilePath(uint32_t file) const = 0;

  // The files that a global shuffle needs an index of.
  struct NeededIndex {
    std::string path;
    OnDamage on_damage = OnDamage::kFail;
    std::string format;  // RecordAccess::IndexKey()
  };
  virtual std::vector<NeededIndex> NeededIndices() const = 0;

  // While what it returns lives, each index that is loaded for the plan is loaded once.
  virtual std::shared_ptr<void> KeepIndices() const = 0;

  // Whether the stream has no end (`repeat` without count).
  virtual bool endless() const = 0;

  // What going on from one of its cursors takes, in words: "seek: …".
  virtual std::string DescribeCursor() const = 0;

  // The stages, the fused programs and the memory in words, for `validate`.
  virtual std::string Explain() const = 0;
};

// `files` must outlive the plan. Errors name the stage, what was expected, what was found, and the
// nearest known name. Codes: InvalidArgument for the spec, NotFound for files, PermissionDenied,
// ResourceExhausted; InvalidArgument, too, for a world whose hosts would have nothing of a full
// batch, or where a step is no batch.
absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const v1::PipelineSpec& spec,
                                                     FileSystem& files, World world = {});

}  // namespace penstock
