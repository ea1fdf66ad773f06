// An object that is written: whole, or not at all.
//
//     Write() ─► part of 8 MiB or more ─► kPartsUnderWay of them at a time ─► Close(): the server makes one object of them
//                                                  │ fails, or Close() is never called
//                                                  └─► the parts are thrown away
//
// Nobody sees an object before Close(), and an object of that name stays as it was until then. What is smaller than a part is one request. Every
// request is sent again where that may help; the server is told the SHA-256 of each body, so that it takes no other bytes. A process that is killed
// leaves parts behind that no list of objects has: buckets can be told to throw those away after some days.
//
// Threads:  Write() and Close() from one thread, which waits where kPartsUnderWay parts are on their way. They end with Cancelled soon where the
//           StopFlag of the thread that made the writer says so.
// Owns:     kPartsUnderWay threads, once there is a part; `client` must outlive it.
// Limits:   s3:// and gs://; HTTP has no writing. 10,000 parts: they double behind each 1,000, so that 8 TiB fit.
// Cost:     memory of 3 × kPartsUnderWay parts, and a SHA-256 of all bytes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "io/file/byte_sink.h"
#include "io/remote/remote_client.h"

namespace penstock {

class ObjectWriter final : public ByteSink {
 public:
  static constexpr int kPartsUnderWay = 4;
  // Of part `number`, from 1 on.
  static constexpr uint64_t PartBytes(int number) {
    return (uint64_t{8} << 20) << ((number - 1) / 1000);
  }
  static constexpr int kPartsMax = 10'000;

  // Unimplemented for an address where nothing can be written. Asks nobody.
  static absl::StatusOr<std::unique_ptr<ObjectWriter>> Create(RemoteClient& client,
                                                              const std::string& address);
  ~ObjectWriter() override;
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  absl::Status Write(absl::string_view bytes) override;
  absl::Status Close() override;

 private:
  struct Part {
    int number;
    std::string bytes;
  };

  ObjectWriter(RemoteClient& client, RemoteUrl url);

  absl::Status Begin();
  absl::Status HandOn();
  void SendParts();
  absl::Status EndUpload();
  // Whether the object is what was written: an answer that said so may have been lost.
  bool IsThere();
  void Abort();
  absl::Status StopStatus() const;
  absl::Status Failed(const absl::Status& status) const;

  RemoteClient& client_;
  const RemoteUrl url_;
  const std::string shown_;
  const std::atomic<bool>* const stop_;
  std::string buffer_;
  std::string upload_;  // "": not begun, or over
  uint64_t bytes_ = 0;
  int next_number_ = 1;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> waiting_;       // under mutex_, as all below
  int under_way_ = 0;              // parts that are being sent
  bool is_over_ = false;           // no further part comes
  absl::Status status_;            // of the part that failed first
  std::vector<std::string> tags_;  // of the parts, by number
  std::vector<std::thread> threads_;
};

}  // namespace penstock
