"""The loops over a DataLoader: by worker processes, of a dataset with __getitem__ or an iterable, and in the trainer itself.

They stand in for torch's own iterators, and are made of the class that these have in common: it draws the seeds, as torch does, warns where torch
warns, and counts what it gives.
"""

import functools
import math
import os
import sys

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

import penstock
from penstock import _core, _errors
from penstock._spec._stage import with_seed
from penstock._loading import _iterables, _parcel, _payload, _state
from penstock._loading._indices import pack
from penstock._loading._outlines import Outlines
from penstock._loading._position import MOST_BATCHES, MOST_INDICES, Streams, begin_epoch
from penstock._loading._stream import Stream
from penstock._loading._worker import ASKED_WORKER, ENDED, HEAD, NUMBER, STATE, Batches, Job

# Of one pipeline: indices that are drawn and handed over together. The first of an epoch is small, so that it begins soon.
_FIRST_INDICES = 1 << 16
# The same of a sampler that does not say how long it is, which may look at what the trainer has made of the batches before.
_BATCHES_OF_UNSIZED = 256
_ENDLESS = 1 << 62
# What is smaller is copied: a view that may be written to is a map of its own.
_MIN_VIEW_BYTES = 64 << 10
# Of a ring.
_MOST_SLOTS = 63


class Inline(_SingleProcessDataLoaderIter):
    """num_workers=0: in the trainer's own process, as in torch."""

    def __init__(self, loader):
        super().__init__(loader)
        resume = loader._resume
        self._indices, self.position, self._ahead = begin_epoch(self, loader, 0)
        if loader._dataset_kind == torch.utils.data._DatasetKind.Iterable:
            self._go_on(resume)

    def _go_on(self, resume):
        """Of an iterable: where the state says, by its own state or from the beginning."""
        states = _state.unpacked(resume["iterable"]) if resume is not None and resume["iterable"] is not None else None
        if states is not None:
            begun = _iterables.GoingOn(self._dataset, states)
            self._dataset_fetcher = torch.utils.data._DatasetKind.create_fetcher(
                self._dataset_kind, begun, self._auto_collation, self._collate_fn, self._drop_last
            )
        else:
            given, self.position.given = self.position.given, 0
            for _ in range(given):
                next(self)
        self.position.iterable = lambda: _iterables.state_of(self._dataset, self._dataset_fetcher.dataset_iter)

    def _next_index(self):
        drawn = self._ahead or self._indices.draw(1)
        self._ahead = []
        if not drawn:
            self.position.ended = True
            raise StopIteration
        if self._dataset_kind == torch.utils.data._DatasetKind.Map:
            self.position.add(pack(drawn))
        return drawn[0]

    def _next_data(self):
        try:
            data = super()._next_data()
        except StopIteration:
            self.position.ended = True
            raise
        except Exception:
            self.position.given += 1  # the next one is behind it
            raise
        self.position.given += 1
        return data


class _ByWorkers(_BaseDataLoaderIter):
    """What both kinds have in common."""

    def __init__(self, loader):
        self._runs = []
        self._outlines = Outlines()
        super().__init__(loader)
        self._prefetch = max(1, loader.prefetch_factor) * loader.num_workers
        self._socket = loader._socket
        self._work = None
        self._turn = 0
        self._init = loader.worker_init_fn
        if hasattr(torch.utils.data, "IterDataPipe") and isinstance(self._dataset, (torch.utils.data.IterDataPipe, torch.utils.data.MapDataPipe)):
            from torch.utils.data.dataloader import _sharding_worker_init_fn

            self._init = functools.partial(_sharding_worker_init_fn, self._init, self._world_size, self._rank)
        self._is_iterable = loader._dataset_kind == torch.utils.data._DatasetKind.Iterable
        self._workers = 1 if self._is_iterable else min(loader.num_workers, len(os.sched_getaffinity(0)))
        self._job = self._make_job(loader)
        self._begin(loader)

    def __next__(self):
        if self._is_iterable or self._sampler_iter is None or getattr(torch.autograd.profiler, "_is_profiler_enabled", True):
            return super().__next__()
        # The same without the profiler's record, which costs as much as the batch.
        data = self._next_data()
        self._num_yielded += 1
        return data

    def _make_job(self, loader):
        parcel = _parcel.pack(dataset=self._dataset, collate_fn=loader.collate_fn, worker_init_fn=self._init)
        return Job(parcel, loader.num_workers, self._is_iterable, loader._auto_collation, loader.drop_last, self._init is not None)

    def _make_work(self, loader, begun=None):
        """The stage that makes rows of bytes of rows: that of the epoch before, where dataset and functions are as they were.

        Args:
          begun: of an iterable, where its streams go on (Streams.begun).
        """
        job = self._job
        key = (job.parcel.digest(), job.num_workers, self._workers, begun)
        if loader._work is None or loader._work[0] != key:
            function = Stream(job, loader.batch_size if job.is_collated else 0, begun) if self._is_iterable else Batches(job)
            rows = penstock.Dataset.from_tensors(np.zeros(HEAD, np.int64))
            timeout_ms = math.ceil(1000 * self._timeout) or None
            output = penstock.TensorSpec((None,), np.uint8)
            # One seed, so that workers may be kept from epoch to epoch; _worker.py seeds by itself.
            made = rows.map(function, python=True, output=output, workers=self._workers, timeout_ms=timeout_ms, seed=0, seeds=False)
            loader._work = key, made._stages[-1]
        return loader._work[1]

    def _reset(self, loader, first_iter=False):
        self._close()
        super()._reset(loader, first_iter)
        self._turn += 1
        self._begin(loader)

    def _run(self, rows, seed=0):
        """A loop over the pipeline that makes batches of a dataset of rows. It runs from now on, in processes of its own where the seed is."""
        made = penstock.Dataset((*rows._stages, with_seed(self._work, seed)), None, rows.cardinality())
        run = penstock.DatasetIterator(made.prefetch(min(self._prefetch, _MOST_SLOTS)), self._socket, first_pass=True)
        try:
            run._start()
        except _errors.Error as error:
            raise self._failure(error) from error
        return run

    def _take(self, run):
        """The next batch of a run and its flags. StopIteration: it has given all."""
        row = next(run)
        writable = _core.writable(row) if row.nbytes >= _MIN_VIEW_BYTES else None
        return self._outlines.decode(row, np.array(row) if writable is None else writable)

    def _failure(self, error):
        """What torch raises where a worker dies or hangs."""
        if self._timeout and "longer than" in str(error):
            return RuntimeError(f"DataLoader timed out after {self._timeout} seconds: {error}")
        return RuntimeError(f"DataLoader worker failed: {error}")

    def _given(self, value, flags):
        self.position.given += 1
        self.position.asked_worker |= bool(flags & ASKED_WORKER)
        if isinstance(value, ExceptionWrapper):
            value.reraise()
        if self._pin_memory:
            value = _utils.pin_memory.pin_memory(value, self._pin_memory_device)
        return value

    def _close(self):
        for run in self._runs:
            run.close()
        self._runs = []

    def __del__(self):
        # With the process the daemon ends, and at its end there is nothing left to call.
        if sys is not None and not sys.is_finalizing():
            self._close()


class MapStyle(_ByWorkers):
    """Batches of a dataset that has __getitem__."""

    def _begin(self, loader):
        self._work = self._work or self._make_work(loader)
        self._indices, self.position, self._ahead = begin_epoch(self, loader, self._turn)
        self._turn = self.position.turn
        self._is_sized = hasattr(loader._index_sampler, "__len__")
        self._most_indices = _FIRST_INDICES
        self._rows = None
        # As torch draws when a loop begins, so that who draws from the same generator then sees the same.
        self._hand_over()

    def _hand_over(self):
        batches = MOST_BATCHES if self._is_sized else max(_BATCHES_OF_UNSIZED, self._prefetch)
        drawn = self._ahead + self._indices.draw_until(batches, self._most_indices)
        self._ahead = []
        self._most_indices = MOST_INDICES
        if not drawn:
            return
        rows = self._indices.rows(drawn, self.position.base_seed, self.position.turn)
        self.position.add(rows)
        self._begin_rows(rows)

    def _begin_rows(self, rows):
        self._rows = rows
        self._runs.append(self._run(penstock.Dataset.from_tensor_slices(rows)))

    def _next_data(self):
        while self._runs:
            try:
                value, flags = self._take(self._runs[0])
            except StopIteration:
                self._runs.pop(0).close()
                self._hand_over()
                continue
            except _errors.Error as error:
                self._pass_over(error)
                raise self._failure(error) from error
            return self._given(value, flags)
        self.position.ended = True
        raise StopIteration


    def _pass_over(self, error):
        """Goes on behind a batch that its workers have died of, or that took too long."""
        if isinstance(error, _errors.DataLossError):
            self._close()
            done = self.position.given - int(self._rows[0, NUMBER])
            self.position.given += 1
            if done + 1 < len(self._rows):
                self._begin_rows(self._rows[done + 1 :])
            else:
                self._hand_over()


class Iterable(_ByWorkers):
    """Batches of an IterableDataset: each of `num_workers` processes has its own copy, and they take turns."""

    def _begin(self, loader):
        resume = loader._resume
        self._prefetch = max(1, loader.prefetch_factor)
        _, self.position, _ = begin_epoch(self, loader, self._turn)
        self._turn = self.position.turn
        written = [(0, False, 0, None)] * loader.num_workers if resume is None else resume["streams"]
        if len(written) != loader.num_workers:
            raise _errors.FailedPreconditionError(
                f"the state is that of {len(written)} workers over an IterableDataset, each of which had its own part: expected num_workers={len(written)}, "
                f"found {loader.num_workers}"
            )
        self.position.streams = streams = Streams.read(written, 0 if resume is None else resume["next_stream"])
        goes_on = any(state is not None for _, state in streams.begun)
        self._work = self._make_work(loader, tuple(streams.begun) if goes_on else None)
        for worker, count in enumerate(streams.given):
            columns = np.array([0, worker, 0, self.position.base_seed, self.position.turn], np.int64)
            flags = np.array([1, 0, 0, 0, 0], np.int64)
            self._runs.append(self._run(penstock.Dataset.range(count, _ENDLESS).map(lambda number: number * flags + columns), seed=worker))

    def _next_data(self):
        streams = self.position.streams
        while True:
            worker = streams.turn()
            if worker is None:
                self.position.ended = True
                self._close()
                raise StopIteration
            try:
                value, flags = self._take(self._runs[worker])
            except _errors.Error as error:
                raise self._failure(error) from error
            if flags & ENDED:
                streams.has_ended[worker] = True
                self._runs[worker].close()
                continue
            streams.given[worker] += 1
            if flags & STATE:
                value, state = value
                streams.begun[worker] = streams.given[worker], state
            streams.advance()
            return self._given(value, flags)
