#include "server/service/http/http_answers.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "server/service/http/metrics.h"
#include "server/service/http/status_json.h"
#include "server/service/http/status_page.h"

namespace penstock {
namespace {

constexpr size_t kMaxBodyBytes = 4096;
constexpr int kSheetRows = 8;

// What stands in front of the port.
std::string NameOf(const std::string& host) {
  const size_t colon = host.rfind(':');
  return host.substr(0, colon);
}

bool IsThisMachine(const httplib::Request& request) {
  const std::string name = NameOf(request.get_header_value("Host"));
  return name == "localhost" || name == "127.0.0.1" || name.empty();
}

void Protect(httplib::Response& response) {
  response.set_header(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
      "connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
}

// A connection that has said all it will say, and takes everything at once.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(std::string request) : request_(std::move(request)) {}

  std::string TakeAnswer() { return std::move(answer_); }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = std::min(size, request_.size() - read_);
    std::memcpy(bytes, request_.data() + read_, count);
    read_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const std::string request_;
  size_t read_ = 0;
  std::string answer_;
};

}  // namespace

// The library's, without its sockets: those would keep a thread for each connection, for as long as
// its client likes.
class HttpAnswers::Server : public httplib::Server {
 public:
  std::string Answer(std::string request) {
    Exchange exchange(std::move(request));
    bool closed = false;
    // Of a body that is made here a client gets all, and once: the library would write it for each
    // of some thousand ranges.
    process_request(exchange, /*close_connection=*/true, closed,
                    [](httplib::Request& asked) { asked.ranges.clear(); });
    return exchange.TakeAnswer();
  }
};

HttpAnswers::HttpAnswers(const PipelineTable& table, const Monitor& monitor, const Access& access)
    : server_(std::make_unique<Server>()) {
  Server& http = *server_;
  http.set_payload_max_length(kMaxBodyBytes);
  http.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    Protect(response);
    if (IsThisMachine(request)) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_content("this page is for localhost\n", "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kStatusPage, "text/html; charset=utf-8");
  });
  // That the event loop answers is what it says.
  http.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  http.Get("/status.json", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(StatusJson(table, monitor), "application/json");
  });
  http.Get(R"(/sheet/([A-Za-z0-9_.-]{1,64})\.png)", [&](const httplib::Request& request,
                                                        httplib::Response& response) {
    const auto pipeline = table.Find(request.matches[1].str());
    const auto sample =
        pipeline.ok() ? (*pipeline)->Sample(kSheetRows, /*with_numbers=*/false) : pipeline.status();
    if (sample.ok() && !sample->sheet_png().empty()) {
      response.set_content(sample->sheet_png(), "image/png");
    } else {
      response.status = 404;
      response.set_content("no pictures\n", "text/plain");
    }
  });
  http.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    std::vector<v1::PipelineStats> stats;
    for (const auto& pipeline : table.List()) stats.push_back(monitor.Stats(*pipeline));
    response.set_content(MetricsText(stats, table.Returning().size(), access.Refused(),
                                     table.MapsInUse(), ReadProcessFigures()),
                         "text/plain; version=0.0.4; charset=utf-8");
  });
}

HttpAnswers::~HttpAnswers() = default;

std::string HttpAnswers::Answer(std::string request) { return server_->Answer(std::move(request)); }

}  // namespace penstock
