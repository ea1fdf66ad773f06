#include "server/engine/keep/elements_ahead.h"

#include <algorithm>
#include <utility>

#include "base/far_file.h"
#include "server/engine/tasks/errands.h"
#include "server/engine/tasks/together.h"

namespace penstock {
namespace {

// Bytes between two elements that are fetched rather than asked for apart.
constexpr uint64_t kGapBytes = uint64_t{256} << 10;

struct Bytes {
  uint64_t begin = 0;
  uint64_t end = 0;
};

}  // namespace

class ElementsAhead::Window final : public Errand {
 public:
  Window(FileTable& files, uint32_t file, std::vector<Bytes> bytes, uint64_t end, int stage)
      : Errand(CallKind::kRead, stage),
        files_(files),
        file_(file),
        bytes_(std::move(bytes)),
        end_(end) {}

  // Behind its last place.
  uint64_t end() const { return end_; }

  void Begin(Completion end) override {
    // Who cannot open it says so where it is read.
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(file_);
    auto* const far = file.ok() ? dynamic_cast<FarFile*>(file->get()) : nullptr;
    if (far == nullptr) return end.End();
    open_ = *std::move(file);
    auto* const together = new Together(std::move(end));
    for (const Bytes& one : bytes_)
      far->FetchAlone(one.begin, one.end - one.begin, together->One());
    // From here on it may be over, and gone.
    together->End(absl::OkStatus());
  }

 private:
  FileTable& files_;
  const uint32_t file_;
  const std::vector<Bytes> bytes_;
  const uint64_t end_;
  std::shared_ptr<RandomAccessFile> open_;  // what was fetched stays as long
};

ElementsAhead::ElementsAhead(FrontContext& context, const ElementFile& elements, uint32_t file,
                             int stage)
    : context_(context), elements_(elements), file_(file), stage_(stage) {}

ElementsAhead::~ElementsAhead() = default;

bool ElementsAhead::IsNear(uint64_t place, uint64_t size,
                           absl::FunctionRef<uint64_t(uint64_t)> element_at) {
  // A front that only looks for a place reads nothing.
  if (place < near_to_ || context_.errands == nullptr) return true;
  std::erase_if(passed_, [](const std::unique_ptr<Window>& window) { return window->done(); });
  while (!windows_.empty() && windows_.front()->end() <= place) {
    if (!windows_.front()->done()) passed_.push_back(std::move(windows_.front()));
    windows_.pop_front();
  }
  asked_to_ = std::max(asked_to_, place);
  Ask(size, element_at);
  if (!windows_.front()->done()) return false;
  near_to_ = windows_.front()->end();
  return true;
}

void ElementsAhead::Ask(uint64_t size, absl::FunctionRef<uint64_t(uint64_t)> element_at) {
  while (windows_.size() < kWindows && asked_to_ < size) {
    std::vector<Bytes> wanted;
    uint64_t bytes = 0;
    for (; asked_to_ < size && wanted.size() < kWindowElements && bytes < kWindowBytes;
         ++asked_to_) {
      const ElementFile::Element element = elements_.element(element_at(asked_to_));
      wanted.push_back({element.at - kElementFrameBytes, element.at + element.length});
      bytes += kElementFrameBytes + element.length;
    }
    std::sort(wanted.begin(), wanted.end(),
              [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
    std::vector<Bytes> joined;
    for (const Bytes& one : wanted) {
      if (!joined.empty() && one.begin <= joined.back().end + kGapBytes) {
        joined.back().end = std::max(joined.back().end, one.end);
      } else {
        joined.push_back(one);
      }
    }
    windows_.push_back(
        std::make_unique<Window>(context_.files, file_, std::move(joined), asked_to_, stage_));
    context_.errands->Push(windows_.back().get());
  }
}

void ElementsAhead::Restart() {
  for (std::unique_ptr<Window>& window : windows_)
    if (!window->done()) passed_.push_back(std::move(window));
  windows_.clear();
  asked_to_ = near_to_ = 0;
}

}  // namespace penstock
