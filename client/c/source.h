// One ring that a loader reads or has read, and the way to the next one.
//
//   reading ──kAgain──► StartReattaching() ──► Reattach() … ──► another source, from the same step
//                                                  └── nobody answers for reconnect_ns: an error
//
// Threads:  StartReattaching() and Reattach() under the loader's next_mutex; ReleaseLease() from
//           any thread.
// Owns:     a source is counted: the loader's own reference, and one for each batch in use.
// Cost:     nothing while a ring is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/c/device_slots.h"
#include "client/c/given_batch.h"
#include "client/c/penstock.h"
#include "client/c/pinned_slots.h"
#include "client/c/private_view.h"
#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/reader.h"

namespace penstock_client {

// A slot whose step is given in several batches: who still holds or will take some of its rows.
struct SharedLease {
  std::atomic<uint32_t> holders{0};
  std::atomic<bool> was_written{false};
  std::unique_ptr<penstock_batch[]> views;  // made when the slot is first seen
};

struct Source {
  std::unique_ptr<penstock::ring::Reader> reader;
  // One for each slot; only the first has any where steps are taken whole, only the second where
  // they are not.
  std::vector<penstock_batch> slots;
  std::unique_ptr<SharedLease[]> shared_leases;
  PrivateView view;  // mapped under the loader's mutex, when it is first asked for
  // Both end before the reader unmaps the ring.
  PinnedSlots pinned;
  std::unique_ptr<DeviceSlots> device_slots;  // null: batches are in shared memory
  // Of the step that is there, and whose copy to the device is not over: since when one waits for
  // it. 0: there is none.
  uint64_t copy_awaited_ns = 0;
  std::atomic<uint64_t> references{1};
};

// A lease that was taken from a source before the present one.
struct EarlierLease {
  const Source* source = nullptr;
  uint64_t step = 0;
  bool returned = false;
};

struct Reattachment {
  bool active = false;
  bool unattended = false;  // begun while nobody was in next: reconnect_ns has not begun
  std::string reason;       // "" when the daemon itself asked for it
  penstock::ring::AttachRequest request = {};
  uint64_t deadline_ns = 0;  // of the attempts that are under way
  std::optional<uint64_t>
      left_ns;  // for attempts, of what the last ones took; until a batch is taken
  penstock::ring::Descriptor socket;  // an answer is awaited on it
  penstock::ring::Status last;        // why the last attempt failed
  penstock::ring::Status failed;      // the end of all attempts, and of the loader
};

void Unreference(Source* source);

// The first attachment of a loader whose constant parts say what to attach to.
penstock::ring::Status AttachFirst(penstock_loader* loader,
                                   const penstock::ring::ConsumerPosition& position);

// A batch was taken: whatever comes next is a new beginning.
inline void NoteProgress(Reattachment* reattachment) { reattachment->left_ns.reset(); }

// Forgets all attempts but for the time that they took.
void Begin(Reattachment* again);
// Somebody waits for the attempts from now on: all of them together, until a batch is taken, for no
// longer than was meant.
void SetDeadline(penstock_loader* loader);

// The present source gives no further step here: goes on at `position`.
void StartReattaching(penstock_loader* loader, const penstock::ring::ConsumerPosition& position,
                      std::string reason);
// The same while nobody waits for a batch: false, and nothing has changed, when no daemon accepts a
// connection now.
// REQUIRES: the present source is deserted.
bool StartUnattended(penstock_loader* loader);
// Where the present source stands, together with what is still held of those before, for a request
// to attach: what it names there is numbered by that.
penstock::ring::ConsumerPosition WhereNow(penstock_loader* loader);
// Goes on with it until `until_ns`: PENSTOCK_OK with a new source, PENSTOCK_TIMEOUT, or the code of
// `failed`.
int Reattach(penstock_loader* loader, uint64_t until_ns);

// Lets go of a lease of any source; in a forked child of none, since they are the parent's.
void ReleaseLease(penstock_loader* loader, Source* source, const penstock::ring::Lease& lease);

}  // namespace penstock_client
