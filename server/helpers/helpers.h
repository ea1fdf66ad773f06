// The helpers of a daemon, as its configuration names them, for all streams that it runs; and the
// side of one that helps.
//
// Threads:  Make() from any thread.
// Owns:     the certificates, and what is known of addresses.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/v1/server.pb.h"
#include "server/engine/run/step_lender.h"
#include "server/helpers/helper_server.h"
#include "server/helpers/known_helpers.h"
#include "server/helpers/tls.h"

namespace penstock {

// Fills in defaults, then checks. InvalidArgument begins with the field.
absl::Status CompleteHelpers(v1::HelperOptions* options);
absl::Status CompleteServe(v1::ServeOptions* options);

class Helpers final : public StepLenders {
 public:
  // Null where no address is named. Reads the certificates.
  static absl::StatusOr<std::shared_ptr<Helpers>> Create(const v1::HelperOptions& options);

  std::unique_ptr<StepLender> Make(std::shared_ptr<const Plan> plan,
                                   const LentStream& stream) override;

 private:
  Helpers(const v1::HelperOptions& options, std::shared_ptr<const KnownHelpers> known,
          std::shared_ptr<const TlsContext> tls)
      : options_(options), known_(std::move(known)), tls_(std::move(tls)) {}

  const v1::HelperOptions options_;
  const std::shared_ptr<const KnownHelpers> known_;
  const std::shared_ptr<const TlsContext> tls_;  // may be null
};

// Helps at serve.address; null where none is named. `means` but for the certificates and names.
absl::StatusOr<std::unique_ptr<HelperServer>> Serve(const v1::ServeOptions& options,
                                                    ServedStream::Means means);

}  // namespace penstock
