/* The C interface of a Penstock client: attach to a pipeline of penstockd and take its batches, in
 * place, without a copy.
 *
 *   penstock_loader* loader;
 *   if (penstock_attach("chess", NULL, NULL, &loader) != PENSTOCK_OK) die(penstock_last_error());
 *   penstock_batch* batch;
 *   int code;
 *   while ((code = penstock_next(loader, PENSTOCK_FOREVER, &batch)) == PENSTOCK_OK) {
 *     const penstock_tensor* boards = penstock_batch_tensor(batch, 0);
 *     train(boards->data, boards->shape[0]);
 *     penstock_batch_release(batch);
 *   }
 *   if (code != PENSTOCK_END) die(penstock_last_error());
 *   penstock_detach(loader);
 *
 * Threads:  every function may be called from any thread. Two calls of penstock_next on one loader
 *           follow each other, and penstock_detach follows a call that still waits.
 * Owns:     a loader is the caller's until penstock_detach, a batch until penstock_batch_release.
 *           Batches may be released in any order, and after penstock_detach too: their memory lives
 *           until then. What the accessors point to lives as long as the batch, or the loader.
 * Limits:   a consumer holds at most its share of the ring's slots (see penstock_stats); a batch
 *           beyond it is a private copy, so that a consumer never waits for itself.
 * Cost:     penstock_next of a ready batch and its release: tens of nanoseconds, no system call.
 *
 * Version 1 of the interface: functions are only added, and structures only grow at their end. A
 * program links libpenstock.so, which needs libc and nothing else. */
#ifndef PENSTOCK_H_
#define PENSTOCK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_API __attribute__((visibility("default")))

/* Results. 1 to 16 are gRPC's codes. */
enum {
  PENSTOCK_OK = 0,
  PENSTOCK_CANCELLED = 1,
  PENSTOCK_UNKNOWN = 2,
  PENSTOCK_INVALID_ARGUMENT = 3,
  PENSTOCK_DEADLINE_EXCEEDED = 4,
  PENSTOCK_NOT_FOUND = 5,
  PENSTOCK_ALREADY_EXISTS = 6,
  PENSTOCK_PERMISSION_DENIED = 7,
  PENSTOCK_RESOURCE_EXHAUSTED = 8,
  PENSTOCK_FAILED_PRECONDITION = 9,
  PENSTOCK_ABORTED = 10,
  PENSTOCK_OUT_OF_RANGE = 11,
  PENSTOCK_UNIMPLEMENTED = 12,
  PENSTOCK_INTERNAL = 13,
  PENSTOCK_UNAVAILABLE = 14,
  PENSTOCK_DATA_LOSS = 15,
  PENSTOCK_UNAUTHENTICATED = 16,
  PENSTOCK_END = 100,     /* the stream has ended; not an error */
  PENSTOCK_TIMEOUT = 101, /* no batch in time; not an error of the pipeline: call again to go on */
  PENSTOCK_PEER_LOST = 102, /* a rank of the group has died and not come back in time */
  PENSTOCK_DETACHED = 103   /* the daemon goes on without this consumer: it was too slow for its
                             * group, or another one has taken its place */
};

/* Element types, by NumPy's names. */
enum {
  PENSTOCK_BOOL = 1,
  PENSTOCK_INT8 = 2,
  PENSTOCK_UINT8 = 3,
  PENSTOCK_INT16 = 4,
  PENSTOCK_UINT16 = 5,
  PENSTOCK_INT32 = 6,
  PENSTOCK_UINT32 = 7,
  PENSTOCK_INT64 = 8,
  PENSTOCK_UINT64 = 9,
  PENSTOCK_FLOAT16 = 10,
  PENSTOCK_BFLOAT16 = 11,
  PENSTOCK_FLOAT32 = 12,
  PENSTOCK_FLOAT64 = 13,
  PENSTOCK_STRING = 14 /* bytes of any length and content */
};

/* How a tensor's elements lie in memory. */
enum {
  PENSTOCK_KIND_DENSE = 0,
  PENSTOCK_KIND_RAGGED = 1, /* rows of different lengths, of numbers or of strings */
  PENSTOCK_KIND_STRING = 2,
  PENSTOCK_KIND_SPARSE = 3 /* values, each with its place in a dense tensor */
};

#define PENSTOCK_MAX_RAGGED_RANK 3

#define PENSTOCK_FOREVER INT64_MAX

typedef struct penstock_loader penstock_loader;
typedef struct penstock_batch penstock_batch;
struct penstock_cuda; /* penstock_cuda.h */

/* One tensor of a batch: C order, read-only.
 *
 * Strings: element i is bytes offsets[i] up to offsets[i + 1] of `data`; shape counts strings.
 * Ragged: `shape` is -1 for the axes 1 to ragged_rank. Row i of the axis a + 1 begins at
 * row_splits[a][i] and ends before row_splits[a][i + 1]. Splits count rows of the next axis; the
 * splits of the last ragged axis count elements of the shape that follows. `data` holds all of
 * these elements, one after another; for ragged strings `offsets` does.
 *
 * Sparse: `shape` is the shape of the dense tensor. `data` (and `offsets`) hold the values. The
 * place of value i is indices[i * ndim] up to indices[i * ndim + ndim - 1]. Values have the order
 * of their rows. The data may hold an index outside of the shape: check it before you follow it.
 *
 * Offsets and row splits begin with 0 and end inside of what they point into; a program that must
 * survive a torn ring checks those between. */
typedef struct penstock_tensor {
  const char* name; /* ends with a zero byte; lives as long as the loader or the batch */
  const void* data; /* aligned to 64 bytes; at least 64 readable bytes follow */
  const int64_t* shape;
  uint64_t bytes; /* of data */
  uint32_t ndim;
  uint32_t dtype;
  uint32_t element_bytes; /* 0: strings */
  uint32_t batched;       /* 1: the first axis counts rows, and is shorter in a short batch */
  uint32_t kind;
  uint32_t ragged_rank;
  uint32_t dynamic; /* 1: dense or strings, and an axis of the shape differs from batch to batch */
  uint32_t
      narrow_splits; /* 1: ragged, and whoever made the pipeline wants its row splits shown as int32 */
  const int64_t* offsets; /* strings: num_strings + 1 of them; else NULL */
  uint64_t num_strings;
  const int64_t* row_splits[PENSTOCK_MAX_RAGGED_RANK]; /* the outermost axis first; else NULL */
  uint64_t num_row_splits[PENSTOCK_MAX_RAGGED_RANK];   /* rows of the axis, plus one */
  const int64_t* indices; /* sparse: num_values * ndim of them; else NULL */
  uint64_t num_values;    /* sparse */
} penstock_tensor;

typedef struct penstock_stats {
  uint64_t batches;     /* taken so far */
  uint64_t bytes;       /* in them */
  uint64_t copies;      /* of them, given as private copies */
  uint64_t waits;       /* times that no batch was ready */
  uint64_t sleeps;      /* times that the process slept for one */
  uint64_t wait_ns;     /* spent waiting */
  uint64_t position;    /* the next step */
  uint64_t published;   /* steps that the daemon has published */
  uint32_t leases;      /* slots held now */
  uint32_t lease_share; /* slots that may be held */
  uint32_t consumer;    /* this consumer's number, as `penstock stats` shows it */
  uint32_t reconnects;  /* times that it went on with another ring, mostly of a new daemon */
} penstock_stats;

/* How the consumers of a group share a stream. */
enum {
  PENSTOCK_BROADCAST = 0, /* each sees every batch */
  PENSTOCK_RANK = 1,      /* each sees its rows of every batch: rank r of n those from
                           * floor(r * rows / n) up to floor((r + 1) * rows / n) */
  PENSTOCK_SPLIT = 2      /* each batch goes to one of them, first come, first served */
};

/* What happens to a consumer of a broadcast that holds up another one. */
enum {
  PENSTOCK_BLOCK =
      0, /* the others wait for lag_seconds; then it is served from memory of its own */
  PENSTOCK_DETACH = 1, /* its next call returns PENSTOCK_DETACHED */
  PENSTOCK_SKIP = 2    /* it misses batches; penstock_skipped counts them */
};

/* What to attach to and as whom. penstock_default_options fills it in; a NULL text is its default.
 * */
typedef struct penstock_attach_options {
  uint64_t bytes;       /* of this structure, as the program knows it */
  const char* pipeline; /* needed */
  const char* socket;
  const char* group;         /* "default"; it is made by its first consumer */
  const char* consumer_name; /* unique in the group; NULL: none */
  /* Where to begin: after the batch with this penstock_batch_cursor. NULL: where the group stands.
   * */
  const void* cursor;
  uint32_t cursor_bytes;
  uint32_t mode; /* PENSTOCK_BROADCAST */
  /* For mode PENSTOCK_RANK: this consumer is `replica` of `replicas` that see the rows of `rank`.
   * */
  uint32_t rank;
  uint32_t world_size; /* 1 */
  uint32_t replica;
  uint32_t replicas; /* 1 */
  /* For PENSTOCK_SPLIT: 1: what a dead consumer held is lost, and not given again. The end of the
   * stream waits for batches that may be given again, but not for consumers that have detached or
   * had the end. What such a consumer dies with goes to the next consumer that asks or attaches. */
  uint32_t at_most_once;
  uint32_t slow;      /* PENSTOCK_BLOCK */
  uint32_t take_over; /* 1: a consumer of the same name or rank is detached */
  /* Rows of this consumer's batches; 0: those of the pipeline's batches. For a rank group: rows of
   * the group's batches, of which each rank sees its part. Rows that lie in one batch of the
   * pipeline are seen in place; rows of several are copied together (penstock_batch_is_joined). A
   * short batch at the end of a pass ends a batch, and what fills it up fills up that batch too.
   * Steps are counted as if all batches of the pipeline were full, so a short batch may leave
   * numbers out: batch n begins with row n * batch_rows of the stream, and so does the first batch
   * of a late consumer without a cursor. In PENSTOCK_SPLIT a consumer's batches are made of the
   * batches of the pipeline that it gets, one after another. A cursor may lie inside of a batch of
   * the pipeline; such a cursor is only for attaching with batch_rows. */
  uint32_t batch_rows;
  double lag_seconds; /* 60 */
  double
      reconnect_seconds; /* 60: how long to look for a daemon that has gone away; 0: not at all */
  /* The device of a pipeline with its ring on a device: the loader takes batches there
   * (penstock_batch_on_device). It must outlive the loader. Such a loader gives no private copies:
   * if it holds its whole share of the slots, penstock_next waits for slots that are being
   * released, or else returns PENSTOCK_RESOURCE_EXHAUSTED. NULL: shared memory. */
  struct penstock_cuda* cuda;
  /* 60: how long the daemon may take to answer penstock_attach_with and penstock_seek; after that
   * they return PENSTOCK_UNAVAILABLE. A daemon that was restarted waits for its other consumers
   * first. */
  double attach_seconds;
  /* Called about ten times a second while those two wait, in the calling thread, with
   * cancel_context. They return PENSTOCK_CANCELLED once it returns another value than 0. It must
   * live as long as the loader. NULL: is not called. */
  int (*is_cancelled)(void* cancel_context);
  void* cancel_context;
} penstock_attach_options;

/* Attaches to the pipeline `name`. `socket`: the daemon's, or NULL for $PENSTOCK_SOCKET, else
 * $XDG_RUNTIME_DIR/penstock.sock, else /run/penstock/penstock.sock. `group`: NULL for "default". */
PENSTOCK_API int penstock_attach(const char* name, const char* socket, const char* group,
                                 penstock_loader** loader);

/* Fills in as many options as the program knows: a later release adds options at the end, beyond
 * the memory of a program that was compiled before. */
PENSTOCK_API void penstock_default_options_of(penstock_attach_options* options, uint64_t bytes);
PENSTOCK_API void penstock_default_options(penstock_attach_options* options);
#define penstock_default_options(options) penstock_default_options_of(options, sizeof *(options))
/* Results: PENSTOCK_ALREADY_EXISTS when the name or rank is taken, PENSTOCK_FAILED_PRECONDITION
 * when the group is of another kind or the cursor of another stream, PENSTOCK_OUT_OF_RANGE when the
 * step after the cursor has gone and cannot be made again. */
PENSTOCK_API int penstock_attach_with(const penstock_attach_options* options,
                                      penstock_loader** loader);

/* Goes to the position of a cursor: the next batch is the one after it. Batches that are held stay
 * valid. If the daemon does not answer in time, or the call is cancelled, the next call goes on
 * with it. */
PENSTOCK_API int penstock_seek(penstock_loader* loader, const void* cursor, uint32_t bytes);

/* The next batch: PENSTOCK_OK, PENSTOCK_END, PENSTOCK_TIMEOUT after `timeout_ns` without one, or
 * the reason why there will be none.
 *
 * When the daemon dies the loader looks for it for reconnect_seconds, by itself, and goes on with
 * the very next batch; meanwhile a call just waits. PENSTOCK_UNAVAILABLE when none comes back,
 * never the end. Batches that are held stay readable.
 *
 * PENSTOCK_RESOURCE_EXHAUSTED, here as in any call: there is no memory. If a batch was lost by
 * that, every further call says so, until penstock_seek goes on after the batch that was given
 * last. */
PENSTOCK_API int penstock_next(penstock_loader* loader, int64_t timeout_ns, penstock_batch** batch);

/* 1 when penstock_next would return a batch without waiting, else 0. */
PENSTOCK_API int penstock_ready(penstock_loader* loader);

PENSTOCK_API void penstock_batch_release(penstock_batch* batch);

/* Leaves. Batches that are still held stay valid. */
PENSTOCK_API void penstock_detach(penstock_loader* loader);

/* What every batch of this loader looks like: the shape is that of a full batch, with -1 for an
 * axis of variable size; data is NULL. */
PENSTOCK_API uint32_t penstock_num_tensors(const penstock_loader* loader);
PENSTOCK_API const penstock_tensor* penstock_tensor_info(const penstock_loader* loader,
                                                         uint32_t index);

/* How the tensors make up an element, as JSON: `null` is the next tensor in their order, an array a
 * tuple, an object a dict; {"x":null,"y":[null,null]}. "" is a flat dict of all tensors by name. */
PENSTOCK_API const char* penstock_structure(const penstock_loader* loader);

/* The steps of the whole stream, from step 0 to its end, wherever this loader begins; with
 * batch_rows: batches of that many rows, with the short ones at the ends of passes. PENSTOCK_OK, or
 * PENSTOCK_FAILED_PRECONDITION if the number is not known; penstock_last_error then says why: the
 * stream has no end, its files have no index yet (`penstock index`), only values decide, or
 * batch_rows are given in a split group. */
PENSTOCK_API int penstock_num_steps(const penstock_loader* loader, uint64_t* steps);

PENSTOCK_API uint64_t penstock_batch_step(const penstock_batch* batch);
PENSTOCK_API uint64_t penstock_batch_epoch(const penstock_batch* batch); /* of its first row */
PENSTOCK_API uint32_t penstock_batch_rows(const penstock_batch* batch);
/* How many of its rows, from the first on, are elements: all, unless the spec fills up a last batch
 * (remainder: PAD). */
PENSTOCK_API uint32_t penstock_batch_valid(const penstock_batch* batch);
/* The position after this batch: with it a pipeline goes on with the next one. */
PENSTOCK_API const void* penstock_batch_cursor(const penstock_batch* batch, uint32_t* bytes);
/* How many batches penstock_next had given before it, to all threads. If several threads take
 * batches, the batch with the highest number has the position. */
PENSTOCK_API uint64_t penstock_batch_taken(const penstock_batch* batch);
/* 1: another consumer of a split group held it when it died; it may have been worked on. */
PENSTOCK_API int penstock_batch_redelivered(const penstock_batch* batch);
PENSTOCK_API int penstock_batch_is_copy(const penstock_batch* batch);
/* 1: its rows lay in several batches of the pipeline and were copied together. It is a copy too,
 * but does not count as one. */
PENSTOCK_API int penstock_batch_is_joined(const penstock_batch* batch);
PENSTOCK_API uint32_t penstock_batch_num_tensors(const penstock_batch* batch);
PENSTOCK_API const penstock_tensor* penstock_batch_tensor(const penstock_batch* batch,
                                                          uint32_t index);
/* The tensor of that name, or NULL. */
PENSTOCK_API const penstock_tensor* penstock_batch_find(const penstock_batch* batch,
                                                        const char* name);

/* Where this process may write the bytes at `data` of one of the batch's tensors: a second map of
 * the same memory. A page that is written becomes this process' own, and nobody else sees it. The
 * map ends with the batch. NULL if the memory cannot be mapped.
 * Cost: a system call the first time; then a page fault for each page that is touched. */
PENSTOCK_API void* penstock_batch_writable(penstock_batch* batch, const void* data);

/* Starts a pipeline in the daemon, checks a spec, or deletes a pipeline. `socket`: as in
 * penstock_attach. `spec`: the text of a PipelineSpec; its relative paths start in this process'
 * folder. `name`: overrides the name in the spec; NULL: does not. `description`: unless NULL,
 * becomes JSON that describes the pipeline (ValidatePipelineResponse in control.proto); give it
 * back to penstock_free. A pipeline lives until it is deleted.
 *
 * The call waits for a daemon that is at work as long as it takes. If the daemon gives no sign of
 * life for $PENSTOCK_ANSWER_SECONDS (0.1 to 86400; 60), the result is PENSTOCK_UNAVAILABLE, and the
 * daemon may still do what was asked when it goes on. */
PENSTOCK_API int penstock_create(const char* socket, const char* name, const char* spec,
                                 char** description);
PENSTOCK_API int penstock_validate(const char* socket, const char* spec, char** description);
PENSTOCK_API int penstock_delete(const char* socket, const char* name);
PENSTOCK_API void penstock_free(char* text);

PENSTOCK_API void penstock_get_stats(penstock_loader* loader, penstock_stats* stats);

/* Batches that it missed by PENSTOCK_SKIP. */
PENSTOCK_API uint64_t penstock_skipped(penstock_loader* loader);

/* Batches that were joined. */
PENSTOCK_API uint64_t penstock_joined(penstock_loader* loader);

/* The calling thread's last error, as a sentence; "" when there was none. */
PENSTOCK_API const char* penstock_last_error(void);

/* The release of the library ("0.1.0"), and the version of the ring's ABI that it speaks. */
PENSTOCK_API const char* penstock_version(void);
PENSTOCK_API uint32_t penstock_abi_version(void);

/* The socket that a NULL `socket` stands for. Valid until the thread's next call. */
PENSTOCK_API const char* penstock_default_socket(void);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_H_ */
