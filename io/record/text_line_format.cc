#include "io/record/text_line_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/record/line_access.h"
#include "io/record/line_stream.h"

namespace penstock {
namespace {

class TextLineStream final : public LineStream {
 public:
  explicit TextLineStream(RecordSource source) : LineStream(std::move(source)) {}

 protected:
  void NextRecords(RecordChunk* chunk) override {
    NextLines(chunk, [this, chunk](size_t length, size_t bytes) {
      const bool has_end = bytes > length;
      const uint8_t* const begin = window().data() + taken();
      if (length > 0 && begin[length - 1] == '\r') --length;
      if (std::memchr(begin, '\r', length) != nullptr) {
        // They may be anywhere: what is left moves together, in the window's own memory.
        uint8_t* const line = const_cast<uint8_t*>(begin);
        length = std::remove(line, line + length, uint8_t{'\r'}) - line;
      }
      // A rest of carriage returns alone is no line.
      if (has_end || length > 0) {
        chunk->records.push_back(
            {window().offset() + taken(), static_cast<uint32_t>(length), false});
      }
      Take(bytes);
      return true;
    });
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

std::shared_ptr<const RecordFormat> TextLineFormat() { return std::make_shared<TextLines>(); }

}  // namespace penstock
