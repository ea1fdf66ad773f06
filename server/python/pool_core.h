// What Pool is made of: its own header, so that the parts of it may stand in files of their own.
//
//     pool.cc         calls: begun, cut into sheets, ended, cancelled
//     pool_dealing.cc sheets: on which tray, laid there, taken from there
//     pool_thread.cc  workers: started, heard, replaced
//     pool_watching.cc  what they have done, how long they take, and how many there are to be
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/memory_account.h"
#include "ring/descriptor.h"
#include "server/engine/order/away_workers.h"
#include "server/python/offers.h"
#include "server/python/pool.h"
#include "server/python/worker_count.h"
#include "server/python/worker_process.h"

namespace penstock::python {

// A block that somebody waits for. Under the pool's mutex but where it says something else.
struct Call {
  AwayRows* rows =
      nullptr;  // of whoever has raised `busy`, else under the mutex; null once it has ended
  Completion end;
  int open = 0;  // sheets that have not ended
  int busy = 0;  // threads that copy its rows without the mutex
  bool has_begun = false;
  bool is_over = false;  // nobody wants it
  bool is_prepared = false;
  bool has_place = false;                  // its rows go straight to the batch
  std::shared_ptr<MemoryAccount> account;  // of who waits; may be null
  absl::Status status;
};

struct Sheet {
  std::shared_ptr<Call> call;
  uint32_t first = 0;
  uint32_t rows = 0;
  int deaths = 0;  // of workers, at its one row
  uint64_t number = 0;
};

struct Tray {
  bool is_taken = false;
  bool is_laid = false;  // and told to the worker
  Sheet sheet;
};

// A process that another pool has started, of the same function.
struct LentWorker {
  std::shared_ptr<void> lender;  // keeps the thread that started it: the process ends with that
  std::unique_ptr<WorkerProcess> process;
};

struct Worker {
  std::shared_ptr<void> lender;  // as LentWorker has it; null: this pool
  std::unique_ptr<WorkerProcess> process;
  std::array<Tray, kTrays> trays;
  std::deque<int> order;  // trays that are laid; the first one is worked on
  bool is_ready = false;
  bool is_leaving = false;  // gets no more sheets
  bool is_gone = false;
  uint64_t rows_made = 0;
  uint64_t idle_until_ns = 0;  // what it has made last was here then, or it began to work
  // What it was seen to be at, with which sheet in front, and since when.
  Progress seen;
  uint64_t seen_sheet = 0;
  uint64_t seen_ns = 0;
  uint64_t unwanted_ns = 0;  // since when it works for nobody; 0: it does not
  uint64_t asked_ns = 0;     // when its stack was asked for, as a row takes too long; 0: never
  uint64_t killed_ns = 0;    // when it was told to end, as it took too long; 0: never
  uint64_t started_ns = 0;
  std::shared_ptr<const Offer> offer = nullptr;  // whose process has started it; null: the daemon
  int number = 0;                                // how many were started before it, and 1
};

class PoolCore : public std::enable_shared_from_this<PoolCore> {
 public:
  PoolCore(FunctionFile function, SheetForm in, SheetForm out, PoolOptions options);
  ~PoolCore();

  void Begin(AwayRows* rows, Completion end);
  void Cancel(const std::shared_ptr<Call>& call);
  void Close();

  // Nobody calls for a while: it closes itself at that time, unless it is roused. False where it
  // has work, or nothing that is worth it.
  bool Rest(uint64_t until_ns);
  // False where it has closed itself.
  bool Rouse();
  bool is_over();

  // Whether it has a worker for others that load that function (LoadKey()).
  bool Lends(const std::string& load_key) const;
  // Its worker, for good, where it is idle; else none. REQUIRES: nobody uses the pool any more.
  LentWorker Lend();

  AwayWorkers Workers();
  std::vector<AwaySpan> SpansSince(uint64_t monotonic_ns);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // --- calls ---
  uint32_t RowsOfSheet(uint32_t rows) const;
  // One of its sheets is over. Its end, where that was the last one, is to be told without the
  // mutex.
  void EndSheet(const std::shared_ptr<Call>& call, std::vector<std::shared_ptr<Call>>* ended);
  void EndIfDone(const std::shared_ptr<Call>& call, std::vector<std::shared_ptr<Call>>* ended);
  static void Tell(std::vector<std::shared_ptr<Call>> ended);
  void FailRow(const Sheet& sheet, uint32_t row, absl::Status status,
               std::vector<std::shared_ptr<Call>>* ended);
  // Sheets of that call that wait, from that row on, are not wanted.
  void DropWaiting(const std::shared_ptr<Call>& call, uint32_t from_row,
                   std::vector<std::shared_ptr<Call>>* ended);
  // Nothing goes on here.
  void Break(absl::Status status, std::vector<std::shared_ptr<Call>>* ended);

  // --- dealing ---
  // `wakes`: the pool's thread is told of what is left, and looks whether a worker is to be had. It
  // does so anyway by itself.
  void Deal(bool wakes);
  // A free tray, and the worker that has it.
  std::shared_ptr<Worker> FindTray(int* tray) const;
  void Lay(const std::shared_ptr<Worker>& worker, int tray, Lock& lock,
           std::vector<std::shared_ptr<Call>>* ended);
  absl::Status LayOn(Desk& desk, int tray, const Sheet& sheet, uint64_t* bytes) const;
  void Take(Worker& worker, const Message& message, std::string text, Lock& lock,
            std::vector<std::shared_ptr<Call>>* ended);
  absl::Status TakeRows(Desk& desk, const Message& message, const Sheet& sheet,
                        AwayRows* rows) const;
  void Learn(Worker& worker, uint64_t rows);

  // --- the thread ---
  void Run();
  // Takes the worker of a pool that has described the function.
  void Borrow();
  // Gives it to who waits in Lend(), and lives as long as it is used.
  void HandOver(Lock& lock);
  void Wake();
  // The pool's thread alone calls those below, with the mutex.
  void Add(std::shared_ptr<Worker> worker);
  void StartWorkersIfNeeded(std::vector<std::shared_ptr<Call>>* ended);
  // Unavailable where the function is another user's, and no process of his offers workers.
  absl::StatusOr<std::shared_ptr<Worker>> NewWorker();
  void Listen(Lock& lock, std::vector<std::shared_ptr<Call>>* ended);
  void Hear(const std::shared_ptr<Worker>& worker, Lock& lock,
            std::vector<std::shared_ptr<Call>>* ended);
  void LookAtTimes(Lock& lock, std::vector<std::shared_ptr<Call>>* ended);
  // Waits for its end, without the mutex: many look at a pool, and none of them waits for whoever
  // has started a worker.
  void Bury(const std::shared_ptr<Worker>& worker, Lock& lock,
            std::vector<std::shared_ptr<Call>>* ended);
  // It has ended before it was ready.
  void EndLoading(const Worker& worker, const std::string& how, uint64_t now_ns,
                  std::vector<std::shared_ptr<Call>>* ended);
  // Whether one has loaded the function.
  bool HasReady() const;
  // How many are about it.
  size_t NumLoading() const;
  // Sheets that one more worker could be at: they lie in front of no worker, or behind what one is
  // at.
  size_t NumWaiting() const;
  int64_t LoadTimeoutMs() const;
  int64_t BetweenRowsMs() const;
  // What is on its trays goes back to the front of the queue.
  void GiveBack(Worker& worker, const std::string& how, std::vector<std::shared_ptr<Call>>* ended);
  int WaitMs() const;

  // --- watching: under the mutex ---
  static bool IsAtWork(const Worker& worker);
  // What all workers were at rows, together.
  uint64_t BusyNs(uint64_t now_ns) const;
  // What spans call it.
  static int ProcessOf(const Worker& worker);
  // Looks which row it is at. REQUIRES: a sheet is laid before it.
  static void Watch(Worker& worker, uint64_t now_ns);
  // Whether it was seen at a row of the sheet that is in front.
  static bool IsAtRow(const Worker& worker);
  // It has made so many rows, or ended, since it was idle.
  void CountWork(Worker& worker, uint64_t rows);
  // How many there are to be; has one leave that is not needed.
  void ChooseWorkers();

  static constexpr size_t kMaxSpans = 8192;
  // Until an offer that had to be given up is taken again.
  static constexpr uint64_t kOfferNs = 1'000'000'000;

  const FunctionFile function_;
  const SheetForm in_;
  const SheetForm out_;
  const PoolOptions options_;
  const std::string load_key_;
  const ring::Descriptor wake_;
  const std::shared_ptr<void> offers_;  // tells of new ones; null where the daemon starts workers
  std::atomic<uint64_t> row_ns_{0};     // what a row takes a worker; 0: not known

  std::mutex mutex_;
  std::thread thread_;  // under mutex_, as those below
  bool is_closed_ = false;
  bool is_lent_ = false;
  bool has_handed_over_ = false;
  LentWorker handed_over_;
  std::condition_variable lent_changes_;
  uint64_t rest_until_ns_ = 0;  // 0: it does not rest
  absl::Status broken_;
  std::deque<Sheet> waiting_;
  std::vector<std::shared_ptr<Worker>> workers_;
  uint64_t next_sheet_ = 1;
  std::deque<uint64_t> deaths_ns_;  // since a row was made
  int load_deaths_ = 0;             // since one was ready
  int lone_load_deaths_ = 0;        // of them, one after the other while no other was ready
  uint64_t load_death_ns_ = 0;      // the last one's time
  WorkerCount count_;
  int wanted_;
  uint64_t rows_made_ = 0;
  uint64_t busy_ns_ = 0;
  uint64_t started_ = 0;
  uint64_t deaths_ = 0;
  std::map<uint64_t, uint64_t> given_up_ns_;  // offers, and when
  uint64_t unoffered_ns_ = 0;   // since when rows wait as nobody offers workers; 0: they do not
  std::deque<AwaySpan> spans_;  // the last ones
  std::string load_error_;
};

}  // namespace penstock::python
