#include "io/record/text_line_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/record/line_access.h"
#include "io/record/record_stream.h"

namespace penstock {
namespace {

class TextLineStream final : public RecordStream {
 public:
  explicit TextLineStream(RecordSource source) : RecordStream(std::move(source)) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    size_t searched = 0;  // behind taken(), bytes known to hold no line end
    while (taken() < ByteWindow::kPieceBytes) {
      const uint8_t* const begin = window().data() + taken();
      const uint8_t* const end = window().data() + window().size();
      const auto* line_end = static_cast<const uint8_t*>(
          begin + searched == end ? nullptr
                                  : std::memchr(begin + searched, '\n', end - begin - searched));
      if (line_end != nullptr) {
        searched = 0;
        if (!TakeLine(chunk, begin, line_end)) return;
        continue;
      }
      // More bytes move the window, which the lines before must not see.
      if (taken() > 0) return;
      searched = end - begin;
      if (searched > kMaxRecordBytes) return DropLongLine(chunk);
      const absl::Status status = window().Ensure(searched + 1);
      if (!status.ok()) return EndOfStream(chunk, window().offset(), status);
      if (window().size() > searched) continue;
      // The last line, without an end of its own.
      const uint8_t* const last = window().data() + searched;
      if (std::any_of(window().data(), last, [](uint8_t byte) { return byte != '\r'; }))
        (void)TakeLine(chunk, window().data(), last);
      Take(window().size() - taken());
      if (!failed()) End(chunk);
      return;
    }
  }

 private:
  // The line of [begin, end) is the next one. False when it is too long, and the chunk ends.
  bool TakeLine(RecordChunk* chunk, const uint8_t* begin, const uint8_t* end) {
    uint64_t length = end - begin;
    if (length > kMaxRecordBytes) {
      if (taken() == 0) DropLongLine(chunk);
      return false;
    }
    if (end > begin && end[-1] == '\r') --length;
    if (std::memchr(begin, '\r', length) != nullptr) {
      // They may be anywhere: what is left moves together, in the window's own memory.
      uint8_t* const line = const_cast<uint8_t*>(begin);
      length = std::remove(line, line + length, uint8_t{'\r'}) - line;
    }
    chunk->records.push_back({window().offset() + taken(), static_cast<uint32_t>(length), false});
    Take(std::min<size_t>(end - window().data() + 1, window().size()) - taken());
    return true;
  }

  void DropLongLine(RecordChunk* chunk) {
    const uint64_t offset = window().offset();
    if (!skips_damage()) {
      return Fail(chunk, offset, DamageReason::kTooLong, absl::DataLossError(LongLineMessage()));
    }
    while (true) {
      const void* line_end =
          window().size() == 0 ? nullptr : std::memchr(window().data(), '\n', window().size());
      if (line_end != nullptr) {
        window().Drop(static_cast<const uint8_t*>(line_end) - window().data() + 1);
        break;
      }
      window().Drop(window().size());
      const absl::Status status = window().Ensure(1);
      if (!status.ok()) return EndOfStream(chunk, offset, status);
      if (window().size() == 0) break;
    }
    chunk->damage.push_back({offset, window().offset() - offset, DamageReason::kTooLong});
  }
};

class TextLines final : public RecordFormat {
 public:
  std::string ContentKey() const override { return "text_line"; }
  const RecordAccess* access() const override { return &LineAccess(); }
  std::unique_ptr<RecordStream> NewStream(RecordSource source) const override {
    return std::make_unique<TextLineStream>(std::move(source));
  }
};

}  // namespace

std::string LongLineMessage() {
  return absl::StrCat("line longer than limit: more than ", kMaxRecordBytes, " bytes");
}

std::shared_ptr<const RecordFormat> TextLineFormat() { return std::make_shared<TextLines>(); }

}  // namespace penstock
