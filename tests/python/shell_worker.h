// A shell in the place of a worker process: it says that it is ready, and that each sheet is made,
// with the outputs as they are. It tells nothing of the row that it is at.
#pragma once

#include <sys/mman.h>

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/python/pool_core.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock::python::test {

inline constexpr std::chrono::seconds kHangs{60};

// Messages have 32 bytes (messages.h); the socket is descriptor 6. `before`: what it does in front
// of each answer; `loading`: before it is ready.
inline FunctionFile ShellFunction(const penstock::test::ScratchFolder& folder,
                                  const std::string& before = ":",
                                  const std::string& loading = ":") {
  std::string zeros;
  for (int i = 0; i < 31; ++i) zeros += "\\0";
  FunctionFile function;
  function.file = std::make_shared<const ring::Descriptor>(memfd_create("function", MFD_CLOEXEC));
  function.program = "/bin/sh";
  function.flags = {"-c",
                    absl::StrCat(loading, "; printf '\\020", zeros,
                                 "' >&6;"
                                 "while dd bs=32 count=1 <&6 2>/dev/null >m$$ && [ -s m$$ ]; do ",
                                 before,
                                 "; { printf '\\022\\0\\0\\0'; tail -c 28 m$$; } |"
                                 " dd bs=32 iflag=fullblock >&6 2>/dev/null; done")};
  function.folder = folder.path();
  function.environment = {"PATH=/usr/bin:/bin"};
  return function;
}

inline std::shared_ptr<PoolCore> NewPool(FunctionFile function, PoolOptions options = {}) {
  const Signature number = {{"", {DType::kUint64, {}}}};
  options.name = "shell";
  options.configuration = "{}";
  return std::make_shared<PoolCore>(std::move(function), SheetForm(number), SheetForm(number),
                                    std::move(options));
}

struct Sink final : Completion::Sink {
  void End(absl::Status status) override { ended.set_value(std::move(status)); }
  void OnCancel(std::function<void()>) override {}
  std::promise<absl::Status> ended;
};

// Has it compute some rows: how that ended.
inline absl::Status Use(PoolCore& pool, int count = 3) {
  std::vector<uint64_t> numbers(count);
  const Column in = {.data = reinterpret_cast<uint8_t*>(numbers.data()), .row_bytes = 8};
  Column out;
  Arena arena;
  AwayRows rows = {.rows = count, .in = {&in, 1}, .out = {&out, 1}, .arena = &arena};
  // It lives on, as it may not have returned from End() when that is heard.
  static std::deque<Sink> sinks;
  Sink& sink = sinks.emplace_back();
  std::future<absl::Status> ended = sink.ended.get_future();
  pool.Begin(&rows, Completion(&sink));
  REQUIRE(ended.wait_for(kHangs) == std::future_status::ready);
  absl::Status status = ended.get();
  return status.ok() ? rows.failure.status : status;
}

}  // namespace penstock::python::test
