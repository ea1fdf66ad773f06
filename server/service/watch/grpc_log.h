// gRPC writes to the standard error by itself, above all of handshakes by TLS that failed, which
// anybody who reaches the port can cause as often as he likes. This has its lines go through the
// daemon's log, with its form and its limits.
//
// Threads:  TakeGrpcLog() once, before gRPC is used; then from any.
#pragma once

namespace penstock {

// REQUIRES: StartLog() (log_output.h). What is an error to gRPC is a warning here: it is a peer's.
void TakeGrpcLog();

}  // namespace penstock
