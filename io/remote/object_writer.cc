#include "io/remote/object_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "base/shown_url.h"
#include "base/stop_flag.h"
#include "io/remote/object_upload.h"

namespace penstock {
namespace {

// How often a server is asked again to make one object of the parts where it says that it could not.
constexpr int kEndTries = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectWriter>> ObjectWriter::Create(RemoteClient& client,
                                                                   const std::string& address) {
  absl::StatusOr<RemoteUrl> url = ParseRemoteUrl(address);
  if (!url.ok()) return url.status();
  if (url->is_http()) {
    return absl::UnimplementedError(absl::StrCat(
        "nothing is written by HTTP: expected s3:// or gs:// (", ShownUrl(address), ")"));
  }
  if (url->key.empty() || url->key.back() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("expected the name of an object, found a folder (", ShownUrl(address), ")"));
  }
  return std::unique_ptr<ObjectWriter>(new ObjectWriter(client, *std::move(url)));
}

ObjectWriter::ObjectWriter(RemoteClient& client, RemoteUrl url)
    : client_(client),
      url_(std::move(url)),
      shown_(ShownUrl(url_.text())),
      stop_(StopFlag::OfThisThread()) {}

ObjectWriter::~ObjectWriter() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  Abort();
}

absl::Status ObjectWriter::Failed(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat("cannot write: ", status.message()));
}

absl::Status ObjectWriter::Begin() {
  const absl::StatusOr<HttpResponse> answer = client_.Send(
      url_, [](HttpRequest object) { return penstock::BeginParts(std::move(object)); });
  if (!answer.ok()) return Failed(answer.status());
  absl::StatusOr<std::string> upload = UploadIn(answer->body, shown_);
  if (!upload.ok()) return Failed(upload.status());
  upload_ = *std::move(upload);
  // Fewer of them send as well.
  for (int i = 0; i < kPartsUnderWay; ++i) {
    absl::StatusOr<std::thread> thread = NewThread("parts", [this] { SendParts(); });
    if (!thread.ok()) return threads_.empty() ? Failed(thread.status()) : absl::OkStatus();
    threads_.push_back(*std::move(thread));
  }
  return absl::OkStatus();
}

absl::Status ObjectWriter::HandOn() {
  if (upload_.empty()) {
    if (absl::Status status = Begin(); !status.ok()) return status;
  }
  if (next_number_ > kPartsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an object has at most ", kPartsMax, " parts (", shown_, ")"));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] {
    return !status_.ok() || static_cast<int>(waiting_.size()) + under_way_ < kPartsUnderWay;
  });
  if (!status_.ok()) return status_;
  waiting_.push_back({next_number_++, std::exchange(buffer_, {})});
  tags_.emplace_back();
  lock.unlock();
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status ObjectWriter::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    // Only a byte more decides that there are parts at all.
    if (buffer_.size() == PartBytes(next_number_)) {
      if (absl::Status status = HandOn(); !status.ok()) return status;
    }
    const absl::string_view taken = bytes.substr(0, PartBytes(next_number_) - buffer_.size());
    buffer_.append(taken.data(), taken.size());
    bytes_ += taken.size();
    bytes.remove_prefix(taken.size());
  }
  return StopStatus();
}

absl::Status ObjectWriter::StopStatus() const {
  if (!IsStopped()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("not wanted any more (", shown_, ")"));
}

void ObjectWriter::SendParts() {
  const StopFlag::Scope scope(stop_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Part part = std::move(waiting_.front());
    waiting_.pop_front();
    ++under_way_;
    lock.unlock();
    absl::StatusOr<HttpResponse> answer = client_.Send(url_, [&](HttpRequest object) {
      return PutPart(std::move(object), upload_, part.number, part.bytes);
    });
    std::string tag(answer.ok() ? answer->Header("etag") : "");
    absl::Status status = answer.status();
    if (status.ok() && (tag.empty() || !std::all_of(tag.begin(), tag.end(), absl::ascii_isprint))) {
      status = absl::DataLossError(
          absl::StrCat("the server gives no ETag for part ", part.number, " (", shown_, ")"));
    }
    lock.lock();
    --under_way_;
    tags_[static_cast<size_t>(part.number - 1)] = std::move(tag);
    if (status_.ok() && !status.ok()) status_ = Failed(status);
    // What is left of it is of no use.
    if (!status_.ok()) waiting_.clear();
    changed_.notify_all();
  }
}

absl::Status ObjectWriter::Close() {
  if (absl::Status status = StopStatus(); !status.ok()) return status;
  if (upload_.empty()) {
    const absl::StatusOr<HttpResponse> answer = client_.Send(
        url_, [this](HttpRequest object) { return PutWhole(std::move(object), buffer_); });
    return answer.ok() ? absl::OkStatus() : Failed(answer.status());
  }
  if (absl::Status status = HandOn(); !status.ok()) return status;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return under_way_ == 0 && (waiting_.empty() || !status_.ok()); });
    if (!status_.ok()) return status_;
  }
  absl::Status status = EndUpload();
  if (!status.ok() && !IsThere()) return Failed(status);
  upload_.clear();
  return absl::OkStatus();
}

absl::Status ObjectWriter::EndUpload() {
  for (int tries = 1;; ++tries) {
    const absl::StatusOr<HttpResponse> answer = client_.Send(url_, [this](HttpRequest object) {
      return penstock::EndParts(std::move(object), upload_, tags_);
    });
    if (!answer.ok()) return answer.status();
    absl::Status status = EndOfParts(answer->body, shown_);
    if (status.ok() || tries >= kEndTries || IsStopped()) return status;
  }
}

bool ObjectWriter::IsThere() {
  const std::string tag = TagOfParts(tags_);
  if (tag.empty() || IsStopped()) return false;
  const absl::StatusOr<ObjectState> state = client_.Describe(url_);
  return state.ok() && state->size == bytes_ && state->etag == tag;
}

void ObjectWriter::Abort() {
  if (upload_.empty()) return;
  // Also where all else has been stopped.
  const StopFlag::Scope scope(nullptr);
  client_.Send(url_, [this](HttpRequest object) { return AbortParts(std::move(object), upload_); })
      .IgnoreError();
}

}  // namespace penstock
