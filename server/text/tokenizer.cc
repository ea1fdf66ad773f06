#include "server/text/tokenizer.h"

namespace penstock::text {
namespace {

constexpr size_t kKeptTextBytesMax = size_t{4} << 20;

}  // namespace

Tokenizer::Borrowed Tokenizer::Borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(idle_.back());
      idle_.pop_back();
      return {*this, std::move(scratch)};
    }
  }
  return {*this, std::make_unique<Scratch>()};
}

Tokenizer::Borrowed::~Borrowed() {
  // What a long text took goes.
  scratch_->ids.Shrink();
  if (scratch_->text.capacity() > kKeptTextBytesMax) std::string().swap(scratch_->text);
  const std::lock_guard lock(from_.mutex_);
  from_.idle_.push_back(std::move(scratch_));
}

}  // namespace penstock::text
