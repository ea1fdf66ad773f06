#include "server/engine/run/record_origins.h"

#include <utility>

#include "server/engine/read/element_cells.h"
#include "server/engine/read/row_block.h"

namespace penstock {
namespace {

using Origin = RecordOrigins::Origin;
using Origins = RecordOrigins::Origins;

void AddEpochs(uint64_t epochs, Origin* origin) {
  origin->record.epoch += epochs;
  for (Origins& row : origin->rows) {
    for (Origin& of_row : row) AddEpochs(epochs, &of_row);
  }
}

// What they take, wherever they lie.
uint64_t BytesOf(const Origins& origins) {
  uint64_t bytes = origins.capacity() * sizeof(Origin);
  for (const Origin& origin : origins) {
    bytes += origin.rows.capacity() * sizeof(Origins);
    for (const Origins& row : origin.rows) bytes += BytesOf(row);
  }
  return bytes;
}

// The origins of an element's row `row` of `rows`. Where its batches have others, any record of
// theirs may be in it.
Origins RowOf(const Origins& element, size_t row, size_t rows) {
  Origins origins;
  std::vector<RecordRef> records;
  for (const Origin& origin : element) {
    if (!origin.rows.empty() && origin.length == rows) {
      if (row >= origin.rows.size()) continue;
      origins.insert(origins.end(), origin.rows[row].begin(), origin.rows[row].end());
    } else {
      RecordOrigins::AddRecords(origin, &records);
    }
  }
  for (const RecordRef& record : records) origins.emplace_back().record = record;
  return origins;
}

}  // namespace

void RecordOrigins::AddRecords(const Origin& origin, std::vector<RecordRef>* records) {
  if (origin.rows.empty()) records->push_back(origin.record);
  for (const Origins& row : origin.rows) {
    for (const Origin& of_row : row) AddRecords(of_row, records);
  }
}

Origins RecordOrigins::Of(const WorkNode& work, absl::Span<const RecordRef> references) const {
  Origins origins;
  for (const RecordRef& reference : references) {
    if (const Known* const known = Find(reference)) {
      for (Origin origin : known->origins) {
        if (reference.epoch != known->epoch) AddEpochs(reference.epoch - known->epoch, &origin);
        origins.push_back(std::move(origin));
      }
      continue;
    }
    if (reference.file >= plan_.manifest().size() || plan_.manifest()[reference.file].path.empty())
      continue;
    Origin& origin = origins.emplace_back();
    origin.record = work.SourceOf(reference.file)->loader->Locate(reference);
    origin.record.epoch = reference.epoch;
  }
  return origins;
}

const RecordOrigins::Known* RecordOrigins::Find(const RecordRef& reference) const {
  if (!reference.in_cell()) return nullptr;
  const auto found = known_.find(RowBlock::KeyOf(reference));
  // Cells are used again, by others than sections too.
  if (found == known_.end() || found->second.path != ElementCells::PackedPath(reference))
    return nullptr;
  return &found->second;
}

void RecordOrigins::RememberElement(const RecordRef& element, Origins origins) {
  const bool is_told_by_reference =
      origins.empty() ||
      (origins.size() == 1 && origins[0].rows.empty() && origins[0].record.file == element.file &&
       origins[0].record.offset == element.offset);
  if (is_told_by_reference) return;
  const uint64_t bytes = sizeof(Known) + BytesOf(origins);
  charge_.Add(bytes);
  known_[RowBlock::KeyOf(element)] = {ElementCells::PackedPath(element), std::move(origins),
                                      element.epoch, bytes};
}

void RecordOrigins::Forget(const RecordRef& element) {
  const auto found = known_.find(RowBlock::KeyOf(element));
  if (found == known_.end()) return;
  charge_.Remove(found->second.bytes);
  known_.erase(found);
}

std::vector<Origins> RecordOrigins::OfInput(const SectionTask& task) {
  const Section& section = *task.section;
  std::vector<Origins> rows;
  input_charge_.Clear();
  input_charge_.MakeRoom(rows, task.records.size() / section.width);
  for (size_t first = 0; first < task.records.size(); first += section.width) {
    rows.push_back(
        Of(*section.work, absl::MakeConstSpan(task.records).subspan(first, section.width)));
    input_charge_.Add(BytesOf(rows.back()));
  }
  return rows;
}

void RecordOrigins::Remember(const SectionTask& task, std::vector<Origins> rows,
                             absl::Span<const uint32_t> element_rows) {
  const Section& section = *task.section;
  const RecordList& elements = task.elements;
  // Where an older element was, there is none any more.
  for (const RecordRef& element : elements) Forget(element);
  if (section.batch != nullptr) {
    if (elements.empty()) return;
    Origin batch;
    batch.length = section.batch->form().remainder == Remainder::kPad ? section.batch->batch_rows()
                                                                      : rows.size();
    batch.rows = std::move(rows);
    return RememberElement(elements.front(), {std::move(batch)});
  }
  size_t end = 0;
  for (size_t first = 0; first < elements.size(); first = end) {
    const uint32_t row = element_rows[first];
    while (end < elements.size() && element_rows[end] == row) ++end;
    for (size_t i = first; i < end; ++i) {
      RememberElement(elements[i], section.split->makes_rows()
                                       ? RowOf(rows[row], i - first, end - first)
                                       : rows[row]);
    }
  }
}

}  // namespace penstock
