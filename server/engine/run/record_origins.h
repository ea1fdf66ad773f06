// Where elements came from: which records, or which rows of which batches. A reference tells of one
// record; of what sections have made of several, it is remembered here.
//
// Threads:  one thread.
// Owns:     what it remembers, for each cell that a section has filled last. It is charged to the
//           account of the thread that makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "base/memory_charge.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/record.h"
#include "server/engine/section/section.h"

namespace penstock {

class RecordOrigins {
 public:
  // Where an element came from: one record, or a batch.
  struct Origin {
    RecordRef record;                       // where it is no batch
    std::vector<std::vector<Origin>> rows;  // of a batch: the origins of each row
    size_t length = 0;                      // of a batch: its rows, with those that fill it up
  };
  // Of an element that several sources feed: those of each that reads files.
  using Origins = std::vector<Origin>;

  explicit RecordOrigins(const PlanImpl& plan) : plan_(plan) {}

  // Of the element that `work` makes of these references.
  Origins Of(const WorkNode& work, absl::Span<const RecordRef> references) const;
  // The records of it, those of all rows where it is a batch.
  static void AddRecords(const Origin& origin, std::vector<RecordRef>* records);

  // Of each element of a task's input. To be asked before the task is done, which takes those up.
  std::vector<Origins> OfInput(const SectionTask& task);
  // A task is done, whose input came from these; each of its elements was made of that row of the
  // input (SectionRunner::set_element_rows).
  void Remember(const SectionTask& task, std::vector<Origins> rows,
                absl::Span<const uint32_t> element_rows);

 private:
  // What one reference does not tell of the element that it stands for.
  struct Known {
    uint64_t path = 0;  // of the element
    Origins origins;
    uint64_t epoch = 0;  // of the element, before a later stage repeats it
    uint64_t bytes = 0;  // that are charged for it
  };

  const Known* Find(const RecordRef& reference) const;
  void Forget(const RecordRef& element);
  void RememberElement(const RecordRef& element, Origins origins);

  const PlanImpl& plan_;
  MemoryCharge charge_;                              // of known_
  MemoryCharge input_charge_;                        // of what OfInput() gave last
  std::unordered_map<const uint8_t*, Known> known_;  // by the element's cell
};

}  // namespace penstock
