// Accepts connections by TCP: for the control plane with certificates (TcpOptions), and for the
// status page.
//
// Threads:  the event loop's.
// Owns:     the listening socket.
// Limits:   those of whoever takes the connections. Without free descriptors it rests for a second.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/server.pb.h"
#include "ring/descriptor.h"
#include "server/service/socket/event_loop.h"

namespace penstock {

// The texts of PEM files.
struct Certificates {
  std::string certificate;
  std::string key;
  std::string client_authorities;
};
// PermissionDenied when others than its owner and his group may read the key.
absl::StatusOr<Certificates> ReadCertificates(const v1::TcpOptions& options);

class TcpListener {
 public:
  // `on_connection` gets each connection, which does not block, with the number that it comes from.
  // Errors begin with `field`, which says where the address comes from.
  using OnConnection = std::function<void(ring::Descriptor socket, const std::string& address)>;
  static absl::StatusOr<std::unique_ptr<TcpListener>> Create(EventLoop& loop,
                                                             absl::string_view field,
                                                             const std::string& address,
                                                             OnConnection on_connection);
  ~TcpListener();

 private:
  TcpListener(EventLoop& loop, ring::Descriptor listening, OnConnection on_connection)
      : loop_(loop), listening_(std::move(listening)), on_connection_(std::move(on_connection)) {}
  absl::Status Arm();
  void AcceptSome();

  EventLoop& loop_;
  const ring::Descriptor listening_;
  const OnConnection on_connection_;
  EventLoop::Id watch_ = 0;
  EventLoop::Id pause_ = 0;
};

}  // namespace penstock
