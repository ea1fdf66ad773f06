"""What runs in the worker processes of an IterableDataset: its batches one behind the other."""

import time

from penstock._loading import _iterables, _payload, _state
from penstock._loading._worker import ENDED, STATE, Worker, encoded, mixed, of_process, seed
from penstock._worker._elements import STATE_NS


class Stream:
    """The batches of one of DataLoader's workers over an IterableDataset, one behind the other: a function of their number.

    It goes on where it is. Where it is asked for another batch, in the place of a process that has died, it begins again and goes there.

    Args:
      batch_size: 0 where elements are not batched.
      begun: of each worker, where it begins: how many batches were given, and the packed state behind them, or None (Streams.begun); None: all from the beginning.
    """

    def __init__(self, job, batch_size, begun=None):
        self._job = job
        self._batch_size = batch_size
        self._begun = begun
        self._worker = None
        self._of = None
        self._next = 0
        self._state_ns = 0

    def __reduce__(self):
        return _stream_in_worker, (self._job, self._batch_size, self._begun)

    def __call__(self, row):
        """
        Args:
          row: int64, (HEAD,): NUMBER of the batch, from 0 on, and the worker's in the column KIND.

        Returns:
          uint8, (bytes,): see _payload; with the flag ENDED behind the last one.
        """
        process = of_process()
        process.begin()
        number, at, _, base_seed, turn = row.tolist()
        if self._of != (at, base_seed, turn) or number < self._next:
            self._begin(process, at, base_seed, turn)
        worker = self._worker
        while True:
            process.begin()
            seed(process.torch, mixed(base_seed, worker.own_seed, turn, at, self._next), worker.own_seed)
            try:
                value = worker.fetch([None] * self._batch_size if self._batch_size else None)
            except StopIteration:
                self._next = number + 1
                return _payload.encode(None, process.arena, ENDED)
            self._next += 1
            if self._next > number:
                return self._encoded(process, worker, value)

    def _begin(self, process, at, base_seed, turn):
        self._of = at, base_seed, turn
        self._next, packed = (0, None) if self._begun is None else self._begun[at]
        states = None if packed is None else _state.unpacked(packed)
        self._worker = Worker(process, self._job, at, base_seed, self._job.parcel.load_in_worker(), states)
        self._state_ns = 0

    def _encoded(self, process, worker, value):
        try:
            state = self._state()
        except Exception:
            return encoded(process, worker, worker.failure())
        return encoded(process, worker, value) if state is None else encoded(process, worker, (value, state), STATE)

    def _state(self):
        """The iterable's, packed; None where it has none, or where it was asked lately."""
        now = time.monotonic_ns()
        if self._worker.iterator is None or now - self._state_ns < STATE_NS:
            return None
        self._state_ns = now
        states = _iterables.state_of(self._worker.dataset, self._worker.iterator)
        return None if states is None else _state.packed(states)


def _stream_in_worker(job, batch_size, begun):
    of_process()
    return Stream(job, batch_size, begun)
