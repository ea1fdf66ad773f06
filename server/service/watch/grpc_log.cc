#include "server/service/watch/grpc_log.h"

#include <grpc/support/log.h>

#include "spdlog/spdlog.h"

namespace penstock {
namespace {

void Write(gpr_log_func_args* line) {
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    spdlog::warn("gRPC: {}", line->message);
  } else {
    spdlog::debug("gRPC: {}", line->message);
  }
}

}  // namespace

void TakeGrpcLog() { gpr_set_log_function(&Write); }

}  // namespace penstock
