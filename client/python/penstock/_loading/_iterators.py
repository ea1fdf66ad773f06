"""The loops over a DataLoader: by worker processes, of a dataset with __getitem__ or an iterable, and in the trainer itself.

They stand in for torch's own iterators, and are made of the class that these have in common: it draws the seeds, as torch does, warns where torch
warns, and counts what it gives.
"""

import functools
import math
import os

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

import penstock
from penstock import _core, _errors
from penstock._spec._stage import Seed, Stage
from penstock._loading import _parcel, _payload
from penstock._loading._indices import Digest, Generators, Indices, pack
from penstock._loading._worker import ASKED_WORKER, ENDED, HEAD, NUMBER, Batches, Job, Stream

# Of one pipeline: indices that are drawn and handed over together. The first of an epoch is small, so that it begins soon.
_FIRST_INDICES = 1 << 16
_MOST_INDICES = 1 << 20
_MOST_BATCHES = 1 << 16
# The same of a sampler that does not say how long it is, which may look at what the trainer has made of the batches before.
_BATCHES_OF_UNSIZED = 256
_ENDLESS = 1 << 62
# What is smaller is copied: a view that may be written to is a map of its own.
_MIN_VIEW_BYTES = 64 << 10
# Of a ring.
_MOST_SLOTS = 63


class Position:
    """How far a loop has come: what a state_dict says.

    Attributes:
      given: batches that the loop has had.
      ended: whether it has had all.
    """

    def __init__(self, base_seed, turn, indices):
        self.base_seed = base_seed
        self.turn = turn
        self.given = 0
        self.ended = False
        self.asked_worker = False
        self.streams = None
        self._indices = indices
        self._digest = Digest()
        self._pending = []
        self._pending_rows = 0

    def add(self, rows):
        """Rows that were handed over."""
        self._pending.append(rows)
        self._pending_rows += len(rows)

    def digest(self):
        ahead = self._pending_rows - self.given
        while self._pending and self._pending_rows > 0:
            rows = self._pending[0]
            past = min(len(rows), sum(map(len, self._pending)) - ahead)
            if past <= 0:
                break
            self._digest.add(rows[:past])
            if past < len(rows):
                self._pending[0] = rows[past:]
                break
            self._pending.pop(0)
        return self._digest.hex()

    def state(self):
        state = {"batches": self.given, "base_seed": self.base_seed, "turn": self.turn}
        if self.streams is not None:
            return {**state, "streams": [list(stream) for stream in self.streams.counts()], "next_stream": self.streams.next_stream}
        return {**state, "digest": self.digest(), "generators": self._indices.states()}


def _begin_epoch(iterator, loader, turn):
    """The indices and the position of an epoch that begins, or goes on where a state says; and what was drawn of it ahead."""
    resume = loader._take_resume()
    indices = Indices(iterator._sampler_iter, Generators(loader))
    if resume is None:
        return indices, Position(iterator._base_seed, turn, indices), []
    iterator._base_seed = resume["base_seed"]
    position = Position(resume["base_seed"], resume["turn"], indices)
    if "streams" in resume:
        position.given = resume["batches"]
        return indices, position, []
    with indices.at(resume["generators"]):
        left = resume["batches"]
        while left:
            drawn = indices.draw_until(min(left, _MOST_BATCHES), _MOST_INDICES)
            if not drawn:
                break
            position.add(indices.rows(drawn, 0, 0))
            left -= len(drawn)
        position.given = resume["batches"] - left
        if left or position.digest() != resume["digest"]:
            raise _errors.FailedPreconditionError(
                f"the sampler gives other indices than before: of the {resume['batches']} batches that were had, "
                + (f"it gives {position.given}" if left else "some have others")
                + ". Dataset, batch_size and sampler are to be those of the state; a sampler that draws by itself draws from a generator that it has as an "
                "attribute, or has a state_dict() of its own"
            )
        # A sampler that has drawn nothing yet is to draw from generators that are as they were.
        return indices, position, indices.draw(1)


class Inline(_SingleProcessDataLoaderIter):
    """num_workers=0: in the trainer's own process, as in torch."""

    def __init__(self, loader):
        super().__init__(loader)
        self._indices, self.position, self._ahead = _begin_epoch(self, loader, 0)
        if loader._dataset_kind == torch.utils.data._DatasetKind.Iterable:
            # Begun again, since its position is nobody's but its own.
            given, self.position.given = self.position.given, 0
            for _ in range(given):
                next(self)

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
        super().__init__(loader)
        self._prefetch = max(1, loader.prefetch_factor) * loader.num_workers
        self._socket = loader._socket
        self._turn = 0
        self._init = loader.worker_init_fn
        if hasattr(torch.utils.data, "IterDataPipe") and isinstance(self._dataset, (torch.utils.data.IterDataPipe, torch.utils.data.MapDataPipe)):
            from torch.utils.data.dataloader import _sharding_worker_init_fn

            self._init = functools.partial(_sharding_worker_init_fn, self._init, self._world_size, self._rank)
        self._is_iterable = loader._dataset_kind == torch.utils.data._DatasetKind.Iterable
        self._workers = 1 if self._is_iterable else min(loader.num_workers, len(os.sched_getaffinity(0)))
        self._work = self._make_work(loader)
        self._begin(loader)

    def _make_job(self, loader):
        parcel = _parcel.pack(dataset=self._dataset, collate_fn=loader.collate_fn, worker_init_fn=self._init)
        return Job(parcel, loader.num_workers, self._is_iterable, loader._auto_collation, loader.drop_last, self._init is not None)

    def _make_work(self, loader):
        """The stage that makes rows of bytes of rows: that of the epoch before, where dataset and functions are as they were."""
        job = self._make_job(loader)
        key = (job.parcel.digest(), job.num_workers, self._workers)
        if loader._work is None or loader._work[0] != key:
            function = Stream(job, loader.batch_size if job.is_collated else 0) if self._is_iterable else Batches(job)
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
        work = Stage(self._work.op, [(field, Seed(seed) if field == "seed" else value) for field, value in self._work.fields])
        made = penstock.Dataset((*rows._stages, work), None, rows.cardinality())
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
        return _payload.decode(np.array(row) if writable is None else writable)

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
        self._close()


class MapStyle(_ByWorkers):
    """Batches of a dataset that has __getitem__."""

    def _begin(self, loader):
        self._indices, self.position, self._ahead = _begin_epoch(self, loader, self._turn)
        self._turn = self.position.turn
        self._is_sized = hasattr(loader._index_sampler, "__len__")
        self._most_indices = _FIRST_INDICES
        self._rows = None
        # As torch draws when a loop begins, so that who draws from the same generator then sees the same.
        self._hand_over()

    def _hand_over(self):
        batches = _MOST_BATCHES if self._is_sized else max(_BATCHES_OF_UNSIZED, self._prefetch)
        drawn = self._ahead + self._indices.draw_until(batches, self._most_indices)
        self._ahead = []
        self._most_indices = _MOST_INDICES
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


class _Streams:
    """The workers of a loop over an iterable, by turns.

    Attributes:
      next_stream: whose turn it is.
    """

    def __init__(self, given, ended, next_stream):
        self.given = given
        self.has_ended = ended
        self.next_stream = next_stream

    def counts(self):
        return zip(self.given, self.has_ended)

    def turn(self):
        """Whose turn it is, of those that have not ended; None where all have."""
        for _ in self.given:
            if not self.has_ended[self.next_stream]:
                return self.next_stream
            self.advance()
        return None

    def advance(self):
        self.next_stream = (self.next_stream + 1) % len(self.given)


class Iterable(_ByWorkers):
    """Batches of an IterableDataset: each of `num_workers` processes has its own copy, and they take turns."""

    def _begin(self, loader):
        resume = loader._resume
        self._prefetch = max(1, loader.prefetch_factor)
        _, self.position, _ = _begin_epoch(self, loader, self._turn)
        self._turn = self.position.turn
        begun = resume["streams"] if resume is not None and "streams" in resume else [(0, False)] * loader.num_workers
        if len(begun) != loader.num_workers:
            raise _errors.FailedPreconditionError(
                f"the state is that of {len(begun)} workers over an IterableDataset, each of which had its own part: expected num_workers={len(begun)}, "
                f"found {loader.num_workers}"
            )
        self.position.streams = _Streams([count for count, _ in begun], [ended for _, ended in begun], resume["next_stream"] if resume is not None else 0)
        for worker, (count, _) in enumerate(begun):
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
            streams.advance()
            return self._given(value, flags)
