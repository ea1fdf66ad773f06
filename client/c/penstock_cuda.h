/* Batches on CUDA devices: over penstock.h, without a CUDA library. The driver is looked for when
 * penstock_cuda_open is called; a program that runs where there is none gets an error.
 *
 *   penstock_cuda* cuda;
 *   if (penstock_cuda_open(0, &cuda) != PENSTOCK_OK) use_the_cpu(penstock_last_error());
 *   while (penstock_next(loader, PENSTOCK_FOREVER, &batch) == PENSTOCK_OK) {
 *     const penstock_tensor* images = penstock_batch_tensor(batch, 0);
 *     penstock_cuda_copy(cuda, batch, images->data, images->bytes, device_address, stream);
 *     penstock_cuda_release(cuda, batch, stream);      // when the copy is done; returns at once
 *     train<<<..., stream>>>(device_address);
 *   }
 *
 * Or, where the pipeline's ring is on a device (`ring { device: 0 }`), without a copy: give `cuda`
 * to penstock_attach_with, and
 *
 *     penstock_device_tensor images;
 *     penstock_batch_on_device(batch, 0, stream, &images);
 *     train<<<..., stream>>>(images.address);
 *     penstock_cuda_release(cuda, batch, stream);      // when the kernel is done with it
 *
 * Streams are CUstream or cudaStream_t; NULL is the legacy default stream. The device's primary
 * context is used, which is that of the CUDA runtime.
 *
 * Threads:  every function may be called from any thread.
 * Owns:     a penstock_cuda is its opener's until penstock_cuda_close; loaders that were given it
 *           are detached, and batches released, before.
 * Cost:     a copy is enqueued in some microseconds. The first copy out of a slot pins it. */
#ifndef PENSTOCK_CUDA_H_
#define PENSTOCK_CUDA_H_

#include "penstock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct penstock_cuda penstock_cuda;

typedef struct penstock_cuda_stats {
  uint64_t copies; /* straight from the ring's slots, which are pinned */
  uint64_t copied_bytes;
  uint64_t staged_copies; /* through a pinned buffer of this process */
  uint64_t staged_bytes;
  uint64_t pending;      /* what waits for a stream's work: batches that are not yet released */
  uint64_t pinned_bytes; /* of slots that were registered so far */
} penstock_cuda_stats;

/* A tensor of a batch in the device's memory, in C order. Whoever writes there changes what other
 * trainers read. */
typedef struct penstock_device_tensor {
  uint64_t address;
  uint64_t bytes;
  uint32_t ndim;
  uint32_t dtype; /* as in penstock.h; an expansion of the spec may have changed type and shape */
  int64_t shape[17];
} penstock_device_tensor;

/* Opens a device by its number, as the CUDA runtime counts. PENSTOCK_FAILED_PRECONDITION: there is
 * no driver, or it is too old, or finds no device; PENSTOCK_NOT_FOUND: there is no such device. */
PENSTOCK_API int penstock_cuda_open(int32_t device, penstock_cuda** cuda);
/* Waits for what is pending, but not for a device that does not answer: what it holds then stays
 * held. */
PENSTOCK_API void penstock_cuda_close(penstock_cuda* cuda);

/* Device memory in the order of a stream (cuMemAllocAsync); of a device that has no memory pools it
 * is there at once, and freeing it waits for the device. */
PENSTOCK_API int penstock_cuda_allocate(penstock_cuda* cuda, uint64_t bytes, void* stream,
                                        uint64_t* address);
PENSTOCK_API void penstock_cuda_free(penstock_cuda* cuda, uint64_t address, void* stream);

/* Enqueues a copy of `bytes` bytes at `from`, a part of `batch`, to the device. The batch must be
 * held until the copy is done: penstock_cuda_release. With a NULL batch `from` is any memory, and
 * the copy is staged. */
PENSTOCK_API int penstock_cuda_copy(penstock_cuda* cuda, penstock_batch* batch, const void* from,
                                    uint64_t bytes, uint64_t to, void* stream);
/* What comes next in `second` begins when all that `first` was given so far is done. */
PENSTOCK_API int penstock_cuda_order(penstock_cuda* cuda, void* first, void* second);
/* Waits until the stream has done all that it was given so far: for whoever takes the memory over
 * without a stream. */
PENSTOCK_API int penstock_cuda_synchronize(penstock_cuda* cuda, void* stream);
/* Enqueues a copy back and waits for it. */
PENSTOCK_API int penstock_cuda_read(penstock_cuda* cuda, uint64_t from, uint64_t bytes, void* to,
                                    void* stream);

/* Releases the batch when all that the stream was given so far is done. It is looked for in later
 * calls of this function, penstock_cuda_after, penstock_cuda_poll and, of a loader with a device's
 * ring, penstock_next. */
PENSTOCK_API int penstock_cuda_release(penstock_cuda* cuda, penstock_batch* batch, void* stream);
/* Calls done(argument) then, in the thread of such a later call. */
PENSTOCK_API int penstock_cuda_after(penstock_cuda* cuda, void* stream, void (*done)(void*),
                                     void* argument);
/* Looks for what is done, and tells how much is not. PENSTOCK_UNAVAILABLE when the device has
 * failed: everything is released then. */
PENSTOCK_API int penstock_cuda_poll(penstock_cuda* cuda, uint64_t* pending);

/* A tensor of a batch in a device's ring, of which `stream` may read from here on: the daemon's
 * copy is over. PENSTOCK_FAILED_PRECONDITION: the tensor is not on the device, since its size is
 * not fixed, or the loader was not given a penstock_cuda. */
PENSTOCK_API int penstock_batch_on_device(penstock_batch* batch, uint32_t index, void* stream,
                                          penstock_device_tensor* tensor);

PENSTOCK_API void penstock_cuda_get_stats(penstock_cuda* cuda, penstock_cuda_stats* stats);
/* Why copies are staged; "" while none had to be. Lives as long as `cuda`. */
PENSTOCK_API const char* penstock_cuda_why_staged(penstock_cuda* cuda);
/* The device's number, and its driver's version (12080: CUDA 12.8). */
PENSTOCK_API int32_t penstock_cuda_device(const penstock_cuda* cuda);
PENSTOCK_API int32_t penstock_cuda_driver_version(const penstock_cuda* cuda);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_CUDA_H_ */
