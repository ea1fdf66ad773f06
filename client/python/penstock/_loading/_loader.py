"""penstock.torch.DataLoader."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Optional

import torch
from torch.utils.data import _DatasetKind
from torch.utils.data.distributed import DistributedSampler

from penstock import _errors
from penstock._loading import _iterators

_STATE = {"penstock_dataloader", "epoch"}
_EPOCH_UNDER_WAY = {"batches", "base_seed", "turn"}
_told = set()


def _tell(what):
    """A warning, once in a process."""
    if what not in _told:
        _told.add(what)
        warnings.warn(what, UserWarning, stacklevel=4)


class DataLoader(torch.utils.data.DataLoader):
    """torch.utils.data.DataLoader with the same arguments, order, structures and errors, and with a state.

    With `num_workers` from 1 on batches are made in worker processes of Penstock's private daemon, put together there, and seen by this process
    where they lie. The trainer is never forked, nothing is pickled for each batch but its outline, and /dev/shm is not used. A worker that
    dies costs the batch that it was at one more try. `num_workers=0` runs in this process, as in torch.

    The class is a torch.utils.data.DataLoader, so that libraries which ask for one take it.

    Args:
      dataset: a torch Dataset, map-style or iterable, or anything with __getitem__ and __len__. It is pickled (by cloudpickle, so that lambdas, local
        classes and those of a notebook go along) when a loop begins; arrays and tensors in it are in memory once for all workers, and read-only in effect: what a
        worker writes into them stays its own.
      batch_size, shuffle, sampler, batch_sampler, drop_last, generator: as torch's. Samplers run in this process, and draw the same
        indices as under torch's DataLoader of the same seeds.
      num_workers: as torch's where bytes depend on it: batch i is that of worker i % num_workers for get_worker_info() and worker_init_fn. There
        are at most so many processes, and no more than processors.
      collate_fn: runs in the workers.
      pin_memory, pin_memory_device: as torch's; pinning is a copy in this process.
      timeout: the longest wait for one batch in seconds, or 0. RuntimeError behind it.
      worker_init_fn: runs once for each worker number and epoch, in whichever process that worker's batches are made in.
      multiprocessing_context: checked as torch does, and of no effect: no process is forked or spawned by this one.
      prefetch_factor: batches that wait ready for each worker.
      persistent_workers: whether later epochs go on with the dataset as the first one had it. Without it each epoch has it as it is then.
      in_order: batches always come in order.
      rank, world_size: beyond torch: this process' part, by a DistributedSampler over `dataset` with `shuffle` and `drop_last`, seeded by `generator`'s
        seed or 0. Each epoch has its own order, as by its set_epoch; set_epoch() of this loader chooses one.
      share: beyond torch: the name of a job whose processes on this host use one private daemon (penstock.shared_daemon).

    Raises:
      ValueError, TypeError: the arguments, with torch's own words.
      TypeError: on a loop, when something cannot be pickled: says what, by the way that leads to it.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: Optional[int] = 1,
        shuffle: Optional[bool] = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[Any], Any]] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        generator: Optional[torch.Generator] = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        share: Optional[str] = None,
    ):
        self._epoch = 0
        self._chosen_epoch = None
        self._position = None
        self._resume = None
        self._sampler_states = {}
        self._work = None
        self._socket = None
        self._shared = None
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size belong together")
        if rank is not None:
            if sampler is not None or batch_sampler is not None or isinstance(dataset, torch.utils.data.IterableDataset):
                raise ValueError("rank and world_size divide the indices of a dataset: without sampler and batch_sampler, and not of an IterableDataset")
            seed = 0 if generator is None else generator.initial_seed()
            sampler = self._shared = DistributedSampler(dataset, world_size, rank, bool(shuffle), seed, drop_last)
            shuffle = None
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn, pin_memory, drop_last, timeout, worker_init_fn,
            multiprocessing_context, generator, prefetch_factor=prefetch_factor, persistent_workers=persistent_workers, pin_memory_device=pin_memory_device,
        )  # fmt: skip
        if multiprocessing_context is not None:
            _tell("multiprocessing_context has no effect: the worker processes are those of penstockd, and this process starts none")
        if not in_order:
            _tell("in_order=False has no effect: batches come in order, and a slow one holds up only those behind it that do not fit prefetch_factor")
        if share is not None:
            from penstock import shared_daemon

            self._socket = shared_daemon(share)

    def __iter__(self):
        if self._resume is not None:
            return self._go_on()
        if self._chosen_epoch is not None:
            self._epoch, self._chosen_epoch = self._chosen_epoch, None
        if self._shared is not None:
            self._shared.set_epoch(self._epoch)
        self._sampler_states = {name: found.state_dict() for name, found in self._samplers() if hasattr(found, "state_dict")}
        return self._begun(super().__iter__())

    def _go_on(self):
        resume = self._resume
        samplers = dict(self._samplers())
        self._sampler_states = resume.get("samplers", {})
        for name, state in self._sampler_states.items():
            samplers[name].load_state_dict(state)
        if "sampler_epoch" in resume:
            for found in samplers.values():
                if hasattr(found, "set_epoch"):
                    found.set_epoch(resume["sampler_epoch"])
        # The epoch's seed is drawn already: the trainer's own generator is left as it is.
        drawn_from = torch.get_rng_state()
        try:
            return self._begun(super().__iter__())
        finally:
            torch.set_rng_state(drawn_from)

    def _begun(self, iterator):
        self._position = iterator.position
        self._epoch += 1
        return iterator

    def _get_iterator(self):
        if self.num_workers == 0:
            return _iterators.Inline(self)
        kind = _iterators.Iterable if self._dataset_kind == _DatasetKind.Iterable else _iterators.MapStyle
        return kind(self)

    def _take_resume(self):
        """What load_state_dict() has left for the loop that begins, or None."""
        resume, self._resume = self._resume, None
        return resume

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next loop: by set_epoch() of the sampler or batch_sampler, and of the dataset, where they have one."""
        self._chosen_epoch = int(epoch)
        for target in (*(found for _, found in self._samplers()), self.dataset):
            if hasattr(target, "set_epoch"):
                target.set_epoch(int(epoch))

    def state_dict(self) -> Dict[str, Any]:
        """The position behind the batch given last: a dict of integers, texts and bytes.

        It has the states of the generators that the samplers have drawn from, as they were before the epoch (5 KB each of torch's), and a digest of
        the indices given. A sampler or batch_sampler that has a state_dict() of its own has that in it, as it was when the epoch began. For JSON:
        json.dumps(state, default=bytes.hex).
        """
        if self._resume is not None:
            return dict(self._resume)
        state = {"penstock_dataloader": 1, "epoch": self._epoch}
        position = self._position
        if position is None or position.ended:
            return state
        state["epoch"] -= 1
        state.update(position.state())
        if self.worker_init_fn is not None or position.asked_worker:
            state["num_workers"] = self.num_workers
        if self._sampler_states:
            state["samplers"] = dict(self._sampler_states)
        epoch = next((found.epoch for _, found in self._samplers() if isinstance(getattr(found, "epoch", None), int)), None)
        return state if epoch is None else {**state, "sampler_epoch": epoch}

    def _samplers(self):
        """The samplers by their names."""
        found = (("batch_sampler", self.batch_sampler), ("sampler", self.sampler), ("batch_sampler.sampler", getattr(self.batch_sampler, "sampler", None)))
        return [(name, sampler) for name, sampler in found if sampler is not None]

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes to a position: the next loop begins with the batch behind it, and ends with its epoch.

        A map-style dataset begins there at once: the sampler draws the indices again, and no element in front is made. An IterableDataset
        runs again from its beginning.

        Args:
          state: from state_dict() of a loader over an equal dataset, with equal samplers and batch size. `num_workers` may be another one, where neither
            worker_init_fn nor get_worker_info() was used.

        Raises:
          InvalidArgumentError: it is no such state.
          FailedPreconditionError: the workers' number decides what they give, and it is another one; on the next loop, when the sampler gives other
            indices than before.
        """
        if not isinstance(state, dict) or not _STATE <= set(state) or not (set(state) == _STATE or _EPOCH_UNDER_WAY <= set(state)):
            found = ", ".join(sorted(map(str, state))) if isinstance(state, dict) else type(state).__name__
            raise _errors.InvalidArgumentError(f"expected a state of penstock.torch.DataLoader, found {found or 'nothing'}")
        workers = state.get("num_workers", self.num_workers)
        if workers != self.num_workers:
            raise _errors.FailedPreconditionError(
                f"the state is that of a loader with num_workers={workers}, on which its batches depend (worker_init_fn, get_worker_info): found "
                f"num_workers={self.num_workers}. There are no more processes than processors, whatever it is"
            )
        self._iterator = None
        self._position = None
        self._chosen_epoch = None
        self._epoch = int(state["epoch"])
        self._resume = dict(state) if "batches" in state else None
