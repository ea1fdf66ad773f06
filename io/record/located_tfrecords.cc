#include "io/record/located_tfrecords.h"

#include <string>
#include <utility>

#include "io/record/record_stream.h"

namespace penstock {
namespace {

class LocatedTfrecordFormat final : public RecordFormat {
 public:
  std::string ContentKey() const override { return TfrecordFormat()->ContentKey(); }
  const RecordAccess* access() const override { return TfrecordFormat()->access(); }
  bool are_located() const override { return true; }
  bool has_checksums() const override { return TfrecordFormat()->has_checksums(); }
  uint32_t header_bytes() const override { return TfrecordFormat()->header_bytes(); }
  absl::Status Check() const override { return TfrecordFormat()->Check(); }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return TfrecordFormat()->NewStream(std::move(source));
  }
};

}  // namespace

const std::shared_ptr<const RecordFormat>& LocatedTfrecords() {
  static const auto* const kFormat =
      new std::shared_ptr<const RecordFormat>(std::make_shared<LocatedTfrecordFormat>());
  return *kFormat;
}

}  // namespace penstock
