#include "server/service/http_server.h"

#include <httplib.h>

#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/new_thread.h"
#include "server/service/metrics.h"
#include "server/service/status_json.h"
#include "server/service/status_page.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr int kTimeoutSeconds = 5;
constexpr size_t kMaxBodyBytes = 4096;
constexpr int kSheetRows = 8;

// What stands in front of the port.
std::string NameOf(const std::string& host) {
  const size_t colon = host.rfind(':');
  return host.substr(0, colon);
}

bool IsThisMachine(const httplib::Request& request) {
  const std::string name = NameOf(request.get_header_value("Host"));
  return name == "localhost" || name == kLoopback || name.empty();
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

}  // namespace

struct HttpServer::Server {
  httplib::Server http;
  int port = 0;
  std::thread thread;
  std::atomic<bool> failed{false};
};

HttpServer::HttpServer(std::unique_ptr<Server> server) : server_(std::move(server)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(int port, const PipelineTable& table,
                                                               const Monitor& monitor,
                                                               const Access& access) {
  auto server = std::make_unique<Server>();
  httplib::Server& http = server->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http.set_payload_max_length(kMaxBodyBytes);
  http.set_read_timeout(kTimeoutSeconds);
  http.set_write_timeout(kTimeoutSeconds);
  http.set_keep_alive_timeout(1);
  http.set_keep_alive_max_count(10);
  // Not SO_REUSEPORT, the library's default: a second daemon would take half of the requests.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
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
    response.set_content(MetricsText(stats, access.Refused(), ReadProcessFigures()),
                         "text/plain; version=0.0.4; charset=utf-8");
  });
  server->port = port == 0 ? http.bind_to_any_port(kLoopback)
                           : (http.bind_to_port(kLoopback, port) ? port : -1);
  if (server->port < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", kLoopback, ":", port,
                     ": the port is taken, or not allowed; change http { port } (0: none)"));
  }
  absl::StatusOr<std::thread> thread = NewThread("the status page", [raw = server.get()] {
    try {
      raw->http.listen_after_bind();
    } catch (const std::system_error& error) {
      // The library makes its own threads here.
      spdlog::error("the status page is not served: no threads: {}", error.code().message());
      raw->failed = true;
    }
  });
  if (!thread.ok()) return thread.status();
  server->thread = *std::move(thread);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(server)));
}

HttpServer::~HttpServer() {
  // A stop before the thread has begun to listen would be lost.
  while (!server_->http.is_running() && server_->http.is_valid() && !server_->failed)
    std::this_thread::yield();
  server_->http.stop();
  server_->thread.join();
}

int HttpServer::port() const { return server_->port; }

}  // namespace penstock
