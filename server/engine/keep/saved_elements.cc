#include "server/engine/keep/saved_elements.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/local_file.h"
#include "base/permutation.h"
#include "base/shown_url.h"
#include "io/element/packed_element.h"
#include "server/engine/keep/elements_ahead.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/tensor/structure.h"

namespace penstock {
namespace {

// Which elements of a file, and in which order.
struct SavedOrder {
  std::shared_ptr<const ElementFile> elements;
  std::shared_ptr<const std::vector<uint64_t>> chosen;  // their numbers in the file; null: all
  uint32_t file = 0;                                    // in the manifest
  std::optional<uint64_t> key = std::nullopt;           // of their permutation; none: in order
  bool reshuffle = true;
  bool is_far = false;  // an object: fetched ahead
  int stage = -1;

  uint64_t size() const { return chosen == nullptr ? elements->size() : chosen->size(); }
};

// Its position: the pass, and how many elements of it have been taken. The references: {data in the
// map, offset = ordinal}.
class SavedOrderOp final : public OrderOp {
 public:
  SavedOrderOp(FrontContext& context, SavedOrder order) : order_(std::move(order)) {
    if (order_.is_far) ahead_.emplace(context, *order_.elements, order_.file, order_.stage);
    Restart(0);
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const ElementFile& elements = *order_.elements;
    const auto element_at = [this](uint64_t at) {
      const uint64_t place = permutation_ ? (*permutation_)(at) : at;
      return order_.chosen == nullptr ? place : (*order_.chosen)[place];
    };
    for (; *pulled < count; ++*pulled, ++next_) {
      if (next_ == order_.size()) return Pulled::kEnd;
      if (ahead_ && !ahead_->IsNear(next_, order_.size(), element_at)) return Pulled::kBlocked;
      const uint64_t ordinal = element_at(next_);
      RecordRef& reference = out.emplace_back();
      reference.offset = ordinal;
      reference.file = order_.file;
      // Without a length, since it does not lie at that offset; who takes it knows its place.
      if (elements.data() == nullptr) continue;
      const ElementFile::Element element = elements.element(ordinal);
      reference.length = element.length;
      reference.data = elements.data() + element.at;
      reference.in_map = 1;
    }
    return Pulled::kSome;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const uint64_t left_out = std::min(count - *skipped, order_.size() - next_);
    next_ += left_out;
    *skipped += left_out;
    return *skipped == count ? Pulled::kSome : Pulled::kEnd;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
    if (order_.key && order_.size() > 0)
      permutation_.emplace(order_.size(), *order_.key, order_.reshuffle ? epoch : 0);
    if (ahead_) ahead_->Restart();
  }

  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(next_);
  }

  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    next_ = std::min(position.Take(), order_.size());
    return absl::OkStatus();
  }

  std::optional<uint64_t> Count() override { return order_.size(); }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  const SavedOrder order_;
  std::optional<ElementsAhead> ahead_;
  std::optional<Permutation> permutation_;  // of this pass
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
};

OrderFactory MakeSavedOrder(SavedOrder order) {
  return [order](FrontContext& context, OrderInputs) {
    return std::make_unique<SavedOrderOp>(context, order);
  };
}

class SavedLoader final : public ColumnLoader {
 public:
  SavedLoader(std::shared_ptr<const ElementFile> elements)
      : elements_(std::move(elements)), cells_(elements_->schema().signature) {}

  const Signature& output() const override { return cells_.output(); }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    if (elements_->data() != nullptr && !elements_->schema().compressed)
      return cells_.Load(rows, files, out, arena);
    auto* const own = arena.AllocateArray<RecordRef>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      own[row] = rows[row];
      absl::Status status = Read(files, &own[row], arena);
      if (!status.ok()) return {std::move(status), static_cast<int>(row)};
    }
    return cells_.Load({own, rows.rows, 1}, files, out, arena);
  }

  // Elements are known by their places here, whatever they were made of.
  uint64_t Path(const RecordRef& reference) const override { return ColumnLoader::Path(reference); }
  RecordRef Locate(const RecordRef& reference) const override {
    RecordRef place = reference;
    place.length = elements_->element(reference.offset).length;
    return place;
  }

 private:
  // Of a file that cannot be mapped, or whose elements are packed.
  absl::Status Read(FileTable& files, RecordRef* reference, Arena& arena) const {
    const ElementFile::Element element = elements_->element(reference->offset);
    const uint64_t at = element.at;
    reference->length = element.length;
    // Values begin at multiples of the arena's alignment.
    uint8_t* const cell = arena.Allocate(Arena::kAlignment + reference->length) + Arena::kAlignment;
    uint8_t* const frame = cell - kElementFrameBytes;
    absl::StatusOr<bool> whole = Copy(files, *reference, at, frame);
    if (!whole.ok()) return whole.status();
    const std::string& path = files.manifest()[reference->file].path;
    const auto damaged = [&](absl::string_view what) {
      return absl::DataLossError(
          absl::StrCat(what, " (", path, ", element ", reference->offset, ", offset ", at, ")"));
    };
    absl::Span<const uint8_t> bytes(cell, reference->length);
    if (!*whole || !ElementHolds(frame, cell, reference->length))
      return damaged("the checksum of a saved element does not match");
    if (elements_->schema().compressed) {
      absl::StatusOr<absl::Span<const uint8_t>> unpacked = UnpackElement(bytes, arena);
      if (!unpacked.ok()) return damaged(unpacked.status().message());
      bytes = *unpacked;
    }
    if (!cells_.IsCell(bytes.data(), static_cast<uint32_t>(bytes.size())))
      return damaged("a saved element is none of its file's schema");
    reference->data = bytes.data();
    reference->length = static_cast<uint32_t>(bytes.size());
    reference->in_map = 0;
    reference->resolved = 0;
    return absl::OkStatus();
  }

  // The frame and the bytes of an element; false where the file has become shorter.
  absl::StatusOr<bool> Copy(FileTable& files, const RecordRef& reference, uint64_t at,
                            uint8_t* frame) const {
    const size_t bytes = kElementFrameBytes + reference.length;
    if (elements_->data() != nullptr) {
      std::memcpy(frame, elements_->data() + at - kElementFrameBytes, bytes);
      return true;
    }
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(reference.file);
    if (!file.ok()) return file.status();
    absl::StatusOr<size_t> read =
        (*file)->ReadAt(at - kElementFrameBytes, absl::MakeSpan(frame, bytes));
    if (!read.ok()) return read.status();
    files.CountRead(bytes);
    return *read == bytes;
  }

  const std::shared_ptr<const ElementFile> elements_;
  const ElementCells cells_;
};

}  // namespace

absl::Status LoadSavedElements(const std::string& path, std::optional<int64_t> shard,
                               PlanBuilder& plan) {
  const bool is_far = IsAddress(path);
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = plan.files().Open(path);
  if (!file.ok()) return file.status();
  // Files below data roots are read, not mapped.
  absl::StatusOr<std::shared_ptr<const ElementFile>> elements =
      !is_far && IsLocalFileSystem(plan.files()) ? ElementFile::Map(path)
                                                 : absl::UnavailableError("not the machine's own");
  if (!elements.ok() && !absl::IsDataLoss(elements.status())) elements = ElementFile::Read(**file);
  if (!elements.ok()) return elements.status();
  if (!(*elements)->whole()) {
    return absl::DataLossError(
        absl::StrCat("the file has not all elements of its dataset: ", path));
  }
  const ElementSchema& schema = (*elements)->schema();
  // The client makes the datasets of shards, and looks at the file for their numbers.
  if (is_far && schema.sharded) {
    return absl::UnimplementedError(absl::StrCat(
        "elements that were saved with a shard_func are loaded on this machine alone: copy them (",
        ShownUrl(path), ")"));
  }
  const absl::StatusOr<std::vector<std::string>> places = StructurePaths(schema.structure);
  if (!schema.structure.empty() && (!places.ok() || places->size() != schema.signature.size())) {
    return absl::DataLossError(
        absl::StrCat("the structure of saved elements is none of their features: ", path));
  }
  std::shared_ptr<std::vector<uint64_t>> chosen;
  if (shard) {
    if (!(*elements)->schema().sharded) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard: expected none, since the elements were saved without, found ",
                       *shard, " (", path, ")"));
    }
    chosen = std::make_shared<std::vector<uint64_t>>();
    for (uint64_t i = 0; i < (*elements)->size(); ++i) {
      if ((*elements)->element(i).file == *shard) chosen->push_back(i);
    }
  }
  FileEntry entry;
  entry.path = path;
  entry.size_bytes = (*file)->size();
  entry.version = (*file)->version();
  const FileRange files = plan.AddFiles({entry});
  SavedOrder order{*elements, std::move(chosen), files.first};
  order.is_far = is_far;
  order.stage = plan.stage_index();
  plan.SetSource(std::make_unique<SavedLoader>(*elements), files, MakeSavedOrder(order));
  plan.SetStructure((*elements)->schema().structure);
  plan.SetIndexed({files, nullptr, false, OnDamage::kFail, [order](uint64_t key, bool reshuffle) {
                     SavedOrder permuted = order;
                     permuted.key = key;
                     permuted.reshuffle = reshuffle;
                     return MakeSavedOrder(permuted);
                   }});
  return absl::OkStatus();
}

}  // namespace penstock
