#include "client/python/control.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>

#include "client/c/spec_request.h"
#include "client/python/error.h"
#include "client/python/gil.h"
#include "ring/answer_time.h"

namespace nb = nanobind;

namespace penstock_python {
namespace {

using penstock::ring::Operation;

// As the timeout of an attach: a second at least, and at most what holds without one.
uint64_t SilenceFor(double seconds, uint64_t most_ns) {
  constexpr double kLeastSeconds = 1;
  return static_cast<uint64_t>(
      std::min(std::max(seconds, kLeastSeconds) * 1e9, static_cast<double>(most_ns)));
}

nb::tuple RequestSpec(const std::string& socket, uint32_t operation, const std::string& name,
                      const std::string& spec, const nb::bytes& cursor, bool temporary,
                      const std::optional<double>& answer_seconds, uint32_t hosts, uint32_t host,
                      uint32_t fewest_hosts, int offered) {
  const std::string position(cursor.c_str(), cursor.size());
  penstock_client::SpecRequest asked;
  asked.operation = static_cast<Operation>(operation);
  asked.name = name;
  asked.spec = spec;
  asked.cursor = position;
  asked.temporary = temporary;
  asked.world_hosts = hosts;
  asked.world_host = host;
  asked.fewest_hosts = fewest_hosts;
  asked.offered = offered;
  bool interrupted = false;
  const penstock::ring::Status given =
      penstock::ring::AnswerTime(asked.silence_ns_max, &asked.silence_ns_max);
  if (!given.ok()) ThrowError(static_cast<int>(given.code), given.message.c_str());
  if (answer_seconds.has_value())
    asked.silence_ns_max = SilenceFor(*answer_seconds, asked.silence_ns_max);
  asked.is_cancelled = [&interrupted] {
    const WithGil held;
    interrupted = PyErr_CheckSignals() != 0;
    return interrupted;
  };
  std::string answer;
  penstock::ring::Descriptor connection;
  penstock::ring::Status status;
  {
    const WithoutGil released;
    status = penstock_client::RequestSpec(socket, asked, &answer, &connection);
  }
  if (interrupted) throw nb::python_error();
  if (!status.ok()) ThrowError(static_cast<int>(status.code), status.message.c_str());
  return nb::make_tuple(answer, temporary ? connection.Release() : -1);
}

}  // namespace

void DefineControl(nb::module_& m) {
  m.attr("CREATE") = static_cast<uint32_t>(Operation::kCreate);
  m.attr("VALIDATE") = static_cast<uint32_t>(Operation::kValidate);
  m.attr("DELETE") = static_cast<uint32_t>(Operation::kDelete);
  m.attr("SKIPPED") = static_cast<uint32_t>(Operation::kSkipped);
  m.attr("STATS") = static_cast<uint32_t>(Operation::kStats);
  m.attr("COUNT") = static_cast<uint32_t>(Operation::kCount);
  m.attr("REDIVIDE") = static_cast<uint32_t>(Operation::kRedivide);
  m.attr("OFFER") = static_cast<uint32_t>(Operation::kOffer);
  m.def(
      "request_spec", &RequestSpec, nb::arg("socket"), nb::arg("operation"), nb::arg("name") = "",
      nb::arg("spec") = "", nb::arg("cursor") = nb::bytes("", 0), nb::arg("temporary") = false,
      nb::arg("answer_seconds") = nb::none(), nb::arg("hosts") = 0, nb::arg("host") = 0,
      nb::arg("fewest_hosts") = 0, nb::arg("offered") = -1,
      "Asks the daemon for one of CREATE, VALIDATE, COUNT, DELETE, SKIPPED, STATS, REDIVIDE and "
      "OFFER: its answer, "
      "which is JSON, and the descriptor of the connection that a temporary pipeline lives as long "
      "as (-1: none). Of CREATE, VALIDATE and REDIVIDE: as host number `host` of `hosts`; 0: of "
      "all rows. `fewest_hosts` of CREATE: "
      "the ring has room for the rows of one of as few. `spec` of REDIVIDE: the first step, in "
      "decimals. Of OFFER: the descriptor of a socket of packets, which the daemon gets too. "
      "UnavailableError when it gives no sign of life in answer_seconds.");
}

}  // namespace penstock_python
