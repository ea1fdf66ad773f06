"""What runs in the worker processes: a batch of a torch Dataset as one row of bytes.

A Job is what all workers get. The number of a batch says which of DataLoader's workers has it in torch (`number % num_workers`): that worker's id, its seed and, where
worker_init_fn or get_worker_info may change something, its own copy of the dataset stand in for it, whichever process does the work.
So bytes depend on `num_workers` exactly where torch's do, and never on how many processes there are.
"""

import pickle
import random
import sys

import numpy as np

from penstock import _row
from penstock._loading import _iterables, _payload
from penstock._loading._stacking import MovedElements, MovedRows, Stacking, is_plain_array, is_plain_tensor

# The columns of a row that asks for a batch, in front of its indices.
NUMBER, KIND, COUNT, BASE_SEED, TURN, HEAD = range(6)
# What the indices are: a list or a tuple of integers, a lone integer, or the bytes of a pickle.
LIST, TUPLE, LONE, PICKLED = range(4)
# Flags of a payload: the code asked for get_worker_info(); the worker's iterable has ended; the batch is a pair, with the iterable's state behind it.
ASKED_WORKER, ENDED, STATE = 1, 2, 4


class Job:
    """What all workers of a DataLoader get.

    Attributes:
      parcel: dataset, collate_fn and worker_init_fn.
      is_collated: whether indices are those of a batch, else of one element.
      drop_last: of an iterable, whether a last batch of fewer is left out.
      has_init: whether there is a worker_init_fn.
    """

    def __init__(self, parcel, num_workers, is_iterable, is_collated, drop_last, has_init):
        self.parcel = parcel
        self.num_workers = num_workers
        self.is_iterable = is_iterable
        self.is_collated = is_collated
        self.drop_last = drop_last
        self.has_init = has_init


class _Process:
    """What all jobs of a worker process share: torch, told that it is a worker of DataLoader."""

    def __init__(self):
        import torch
        import torch.utils.data
        from torch.utils.data._utils import collate, worker

        self.torch = torch
        self.worker = worker
        self.collate = collate.default_collate
        self.arena = self.stacking = None
        self.asked = False
        torch.set_num_threads(1)
        self._stack_elsewhere = collate.default_collate_fn_map[torch.Tensor]
        self._stack_arrays_elsewhere = collate.default_collate_fn_map[np.ndarray]
        collate.default_collate_fn_map.update({torch.Tensor: self._stack, np.ndarray: self._stack_arrays})

        def get_worker_info():
            self.asked = True
            return worker._worker_info

        get_worker_info.__doc__ = worker.get_worker_info.__doc__
        # torch's own modules ask by the first one, where they would make files in /dev/shm.
        torch.utils.data.get_worker_info = worker.get_worker_info = get_worker_info

    def begin(self):
        """A new batch: its memory is the row's that is being made."""
        if self.arena is None:
            self.arena = _payload.Arena(_row.room)
            self.stacking = Stacking(self.torch, self.arena)
        self.arena.begin()
        self.stacking.begin(0)

    def _stack(self, batch, *, collate_fn_map=None):
        """Of default_collate: tensors of one shape along a new first axis, straight into the payload."""
        torch = self.torch
        stacked = self.stacking.stacked(batch)
        if stacked is not None:
            return stacked
        first = batch[0]
        if not is_plain_tensor(torch, first):
            info, self.worker._worker_info, asked = self.worker._worker_info, None, self.asked
            try:
                return self._stack_elsewhere(batch, collate_fn_map=collate_fn_map)
            finally:
                self.worker._worker_info, self.asked = info, asked
        size = first.element_size()
        for other in batch:
            if other.shape != first.shape or other.dtype != first.dtype:
                return torch.stack(batch, 0)  # which says what is wrong, or finds a type in common
        room = self.arena.room(len(batch) * first.numel() * size) if first.numel() else None
        if room is None:
            return torch.stack(batch, 0)
        out = torch.from_numpy(room).view(first.dtype).view(len(batch), *first.shape)
        return torch.stack(batch, 0, out=out)

    def _stack_arrays(self, batch, *, collate_fn_map=None):
        """The same of NumPy's arrays, without a tensor for each."""
        stacked = self.stacking.stacked(batch)
        if stacked is not None:
            return self.torch.from_numpy(stacked)
        first = batch[0]
        if not is_plain_array(first) or any(type(other) is not np.ndarray or other.shape != first.shape or other.dtype != first.dtype for other in batch):
            return self._stack_arrays_elsewhere(batch, collate_fn_map=collate_fn_map)
        room = self.arena.room(len(batch) * first.nbytes)
        out = None if room is None else room.view(first.dtype).reshape(len(batch) * len(first), *first.shape[1:])
        return self.torch.from_numpy(np.concatenate(batch, out=out).reshape(len(batch), *first.shape))


_process = None


def of_process():
    global _process
    if _process is None:
        _process = _Process()
    return _process


def mixed(*parts):
    """64 bits of several integers: splitmix64 (Steele, Lea and Flood 2014) of each upon the other."""
    mixed = 0
    for part in parts:
        mixed = _row.spread(mixed + (part & _row.MASK) * 0xD1342543DE82EF95)
    return mixed


def seed(torch, seed, shown):
    """The global generators of Python, NumPy and torch, and what else draws by the row.

    Args:
      shown: where worker_init_fn has seeded torch, what torch.initial_seed() is to say still; else 0.
    """
    _row.key, _row.path, _row.is_fresh = seed, 0, True
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    generator = torch.default_generator
    generator.manual_seed(seed >> 1)
    if shown:
        state = generator.get_state()
        state[:8] = torch.tensor([shown]).view(torch.uint8)
        generator.set_state(state)


class Worker:
    """One of DataLoader's workers, in the form that it has in this process.

    Attributes:
      iterator: that of an iterable; else None.
      own_seed: what worker_init_fn has seeded torch with, or 0.
    """

    def __init__(self, process, job, number, base_seed, loaded, begun=None):
        self.dataset, self._collate_fn, init = loaded
        self._job = job
        self._error = None
        self._process = process
        self.info = process.worker.WorkerInfo(
            id=number, num_workers=job.num_workers, seed=base_seed + number, dataset=self.dataset
        )
        process.torch.default_generator.manual_seed(self.info.seed)
        random.seed(self.info.seed)
        np.random.seed(process.worker._generate_state(base_seed, number))
        self._fetcher = self.iterator = None
        # Whether elements go into the batch as they come.
        self._is_moved = job.is_collated and self._collate_fn is process.collate
        self.own_seed = 0
        process.worker._worker_info = self.info
        try:
            if init is not None:
                init(number)
                drawn_from = process.torch.initial_seed()
                self.own_seed = 0 if drawn_from == self.info.seed else drawn_from
            self._make_fetcher(begun)
        except Exception:
            self._error = self.failure()

    def _make_fetcher(self, begun):
        from torch.utils.data import _DatasetKind

        job, stacking = self._job, self._process.stacking
        dataset, kind = self.dataset, _DatasetKind.Iterable if job.is_iterable else _DatasetKind.Map
        if not job.is_iterable and self._is_moved:
            self._is_moved = not getattr(dataset, "__getitems__", None)
            dataset = MovedRows(dataset, stacking) if self._is_moved else dataset
        if job.is_iterable and begun is not None:
            dataset = _iterables.GoingOn(dataset, begun)
        self._fetcher = _DatasetKind.create_fetcher(kind, dataset, job.is_collated, self._collate_fn, job.drop_last)
        if job.is_iterable:
            self.iterator = self._fetcher.dataset_iter
            if self._is_moved:
                self._fetcher.dataset_iter = MovedElements(self.iterator, stacking)

    def failure(self):
        from torch._utils import ExceptionWrapper

        # What there was of the batch goes.
        self._process.arena.again()
        return ExceptionWrapper(where=f"in DataLoader worker process {self.info.id}")

    def fetch(self, indices):
        """A batch, or an ExceptionWrapper. StopIteration: an iterable has ended."""
        if self._error is not None:
            return self._error
        self._process.worker._worker_info = self.info
        if self._is_moved:
            self._process.stacking.begin(len(indices))
        try:
            return self._fetcher.fetch(indices)
        except StopIteration:
            raise
        except Exception:
            return self.failure()


def encoded(process, worker, value, more_flags=0):
    """The payload of a batch, or of what went wrong as it was put together."""
    flags = ASKED_WORKER if process.asked else 0
    try:
        return _payload.encode(value, process.arena, flags | more_flags)
    except Exception:
        return _payload.encode(worker.failure(), process.arena, flags)


class Batches:
    """Batches of a dataset that has __getitem__: a function of a row of indices."""

    def __init__(self, job):
        self._job = job
        self._loaded = None
        self._workers = {}
        self._of = None

    def __reduce__(self):
        return _batches_in_worker, (self._job,)

    def __call__(self, row):
        """
        Args:
          row: int64, (HEAD + indices,): see NUMBER and LIST.

        Returns:
          uint8, (bytes,): see _payload.
        """
        process = of_process()
        process.begin()
        number, kind, count, base_seed, turn = row[:HEAD].tolist()
        worker = self._worker(process, number % self._job.num_workers, base_seed)
        seed(process.torch, mixed(base_seed, worker.own_seed, turn, number), worker.own_seed)
        indices = row[HEAD:]
        if kind == PICKLED:
            indices = pickle.loads(indices.view(np.uint8)[:count])
        else:
            indices = indices[:count].tolist()
            indices = indices[0] if kind == LONE else tuple(indices) if kind == TUPLE else indices
        try:
            value = worker.fetch(indices)
        except StopIteration:
            value = worker.failure()
        return encoded(process, worker, value)

    def _worker(self, process, number, base_seed):
        if self._of != base_seed:
            # Another epoch, whose workers are new ones, except where nothing tells.
            self._workers.clear()
            self._of = base_seed
        worker = self._workers.get(number)
        if worker is None:
            if self._job.has_init:
                loaded = self._job.parcel.load_in_worker()
            else:
                loaded = self._loaded
            worker = self._workers[number] = Worker(process, self._job, number, base_seed, loaded)
        return worker


# What takes long is imported and loaded as the function is, before the first batch's time begins.
def _batches_in_worker(job):
    of_process()
    batches = Batches(job)
    if not job.has_init:
        batches._loaded = job.parcel.load_in_worker()
    return batches
