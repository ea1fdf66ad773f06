"""penstock.torch.DataLoader."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, Callable, Dict, Optional

import torch
from torch.utils.data import _DatasetKind
from torch.utils.data.distributed import DistributedSampler

from penstock import _errors
from penstock._loading import _iterators, _state
from penstock._loading._indices import Generators, Indices
from penstock._running import _world

_STATE = {"penstock_dataloader", "epoch", "position"}
_EPOCH_UNDER_WAY = {"batches", "base_seed", "turn"}
# What a position has of the loop that it is of.
_LOOPS = {
    "digest": "a dataset with __getitem__",
    "streams": "an IterableDataset by worker processes",
    "iterable": "an IterableDataset with num_workers=0",
}
_told = set()


def _tell(what):
    """A warning, once in a process."""
    if what not in _told:
        _told.add(what)
        warnings.warn(what, UserWarning, stacklevel=4)


def _ranks_of(world, rank, world_size):
    """The rank and their number that `world=` stands for."""
    found = _world.find(world, of_processes=True)
    if rank not in (None, found.host) or world_size not in (None, found.hosts):
        raise ValueError(f"world: rank={found.host} and world_size={found.hosts}, and the loader was given rank={rank} and world_size={world_size}")
    return found.host, found.hosts


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
        seed or 0, which decides the draws of all ranks, too. Each epoch has its own order, as by its set_epoch; set_epoch() of this loader chooses one. A state of one
        rank is good for each. Accelerate's prepare() leaves such a loader as it is.
      world: beyond torch: `rank` and `world_size` as a launcher numbers the processes: "auto", or its name, as of penstock.torch.loader; or (world_size, rank).
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
        world: Any = None,
    ):
        self._epoch = 0
        self._chosen_epoch = None
        self._position = None
        self._resume = None
        self._sampler_states = {}
        self._work = None
        self._socket = None
        self._shared = None
        if world is not None:
            rank, world_size = _ranks_of(world, rank, world_size)
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
        # To Accelerate's prepare() a loader that is divided already: it is left as it is, and its state goes into save_state(). One without `rank` is taken
        # apart by it, and torch's own loader takes its place.
        if rank is not None:
            self._is_accelerate_prepared = self.use_stateful_dataloader = True
        if multiprocessing_context is not None:
            _tell("multiprocessing_context has no effect: the worker processes are those of penstockd, and this process starts none")
        if not in_order:
            _tell("in_order=False has no effect: batches come in order, and a slow one holds up only those behind it that do not fit prefetch_factor")
        if share is not None:
            from penstock import shared_daemon

            self._socket = shared_daemon(share)

    def __iter__(self):
        if self._resume is not None:
            if self._chosen_epoch is None or self._chosen_epoch <= self._epoch:
                return self._go_on()
            self._leave_epoch()
        if self._chosen_epoch is not None:
            self._epoch, self._chosen_epoch = self._chosen_epoch, None
        if self._shared is not None:
            self._shared.set_epoch(self._epoch)
        self._sampler_states = {name: found.state_dict() for name, found in self._samplers() if hasattr(found, "state_dict")}
        return self._begun(super().__iter__())

    def _go_on(self):
        resume = self._resume
        samplers = dict(self._samplers())
        self._sampler_states = {name: _state.unpacked(inner) for name, inner in resume.get("samplers", {}).items()}
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

    def _leave_epoch(self):
        """set_epoch() has chosen one behind the state's, as trainers do whose epoch ends with its last batch."""
        resume = self._take_resume()
        if "generators" in resume:
            Indices(iter(self._index_sampler), Generators(self)).draw_all(resume["generators"])

    def _begun(self, iterator):
        self._position = iterator.position
        self._epoch += 1
        return iterator

    def _get_iterator(self):
        if self.num_workers == 0:
            return _iterators.Inline(self)
        kind = _iterators.Iterable if self._dataset_kind == _DatasetKind.Iterable else _iterators.MapStyle
        return kind(self)

    def _of_ranks(self):
        """Of a loader that is one rank's: this rank's seed of the epoch, and a text that tells the order of all ranks; None and None of another one."""
        shared = self._shared
        if shared is None:
            return None, None
        order = f"{len(self.dataset)} {shared.num_replicas} {shared.shuffle} {shared.drop_last} {shared.seed} {shared.epoch} {self.batch_size}"
        drawn = hashlib.blake2b(f"{shared.seed} {shared.epoch} {shared.rank}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "little") >> 1, order

    def _take_resume(self):
        """What load_state_dict() has left for the loop that begins, or None."""
        resume, self._resume = self._resume, None
        return resume

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next loop: by set_epoch() of the sampler or batch_sampler, and of the dataset, where they have one. Behind load_state_dict() the
        next loop is the rest of the state's epoch, unless a later one is chosen."""
        self._chosen_epoch = int(epoch)
        for target in (*(found for _, found in self._samplers()), self.dataset):
            if hasattr(target, "set_epoch"):
                target.set_epoch(int(epoch))

    def state_dict(self) -> Dict[str, Any]:
        """The position behind the batch given last: "penstock_dataloader" and "epoch", integers, and "position", a text. It goes into JSON and into any
        checkpoint, also of torch.distributed.checkpoint: the keys are always the same.

        The text has the states of the generators that the samplers have drawn from, as they were before the epoch, and a digest of the indices given. A
        sampler or batch_sampler that has a state_dict() of its own has that in it, as it was when the epoch began; and an IterableDataset, or its iterator,
        that has state_dict() and load_state_dict(), its own. Only where these hold more than dicts, lists, tuples, numbers, texts and bytes does the
        text have a pickle in it.
        """
        epoch, position = self._epoch, self._position
        if self._resume is not None:
            under_way = self._resume
        elif position is None or position.ended:
            under_way = None
        else:
            epoch -= 1
            under_way = self._under_way(position)
        if under_way is None:
            # The next epoch draws from them.
            own = Generators(self).own()
            under_way = {"generators": own} if own else None
        return {"penstock_dataloader": 1, "epoch": epoch, "position": "" if under_way is None else _state.written(under_way)}

    def _under_way(self, position):
        """What there is to say of a loop that has not ended."""
        state = position.state()
        if self.worker_init_fn is not None or position.asked_worker:
            state["num_workers"] = self.num_workers
        if self._sampler_states:
            state["samplers"] = {name: _state.packed(inner) for name, inner in self._sampler_states.items()}
        epoch = next((found.epoch for _, found in self._samplers() if isinstance(getattr(found, "epoch", None), int)), None)
        return state if epoch is None else {**state, "sampler_epoch": epoch}

    def _samplers(self):
        """The samplers by their names."""
        found = (("batch_sampler", self.batch_sampler), ("sampler", self.sampler), ("batch_sampler.sampler", getattr(self.batch_sampler, "sampler", None)))
        return [(name, sampler) for name, sampler in found if sampler is not None]

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes to a position: the next loop begins with the batch behind it, and ends with its epoch.

        A map-style dataset begins there at once: the sampler draws the indices again, and no element in front is made. An IterableDataset goes on
        by its own state where it has one, and else runs again from its beginning.

        Args:
          state: from state_dict() of a loader over an equal dataset, with equal samplers and batch size. `num_workers` may be another one, where neither
            worker_init_fn nor get_worker_info() was used.

        Raises:
          InvalidArgumentError: it is no such state.
          FailedPreconditionError: it is that of another kind of dataset; the workers' number decides what they give, and it is another one; on the next
            loop, when the sampler gives other indices than before.
        """
        if not isinstance(state, dict) or set(state) != _STATE or not isinstance(state["position"], str):
            found = ", ".join(sorted(map(str, state))) if isinstance(state, dict) else type(state).__name__
            raise _errors.InvalidArgumentError(f"expected a state of penstock.torch.DataLoader, found {found or 'nothing'}")
        under_way = _state.read(state["position"]) if state["position"] else None
        if under_way is not None and set(under_way) == {"generators"}:
            Generators(self).set_own(under_way["generators"])
            under_way = None
        elif under_way is not None:
            self._check(under_way)
        self._iterator = None
        self._position = None
        self._chosen_epoch = None
        self._epoch = int(state["epoch"])
        self._resume = under_way

    def _check(self, under_way):
        """Whether this loader can go on there."""
        of = [kind for kind in _LOOPS if kind in under_way]
        if not _EPOCH_UNDER_WAY <= set(under_way) or len(of) != 1:
            raise _errors.InvalidArgumentError(f"expected a state of penstock.torch.DataLoader, found a position of {', '.join(map(str, under_way)) or 'nothing'}")
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        own = "digest" if not is_iterable else "streams" if self.num_workers else "iterable"
        if of != [own]:
            raise _errors.FailedPreconditionError(f"the state is that of {_LOOPS[of[0]]}, and this is a loader over {_LOOPS[own]}")
        workers = under_way.get("num_workers", self.num_workers)
        if workers != self.num_workers:
            raise _errors.FailedPreconditionError(
                f"the state is that of a loader with num_workers={workers}, on which its batches depend (worker_init_fn, get_worker_info): found "
                f"num_workers={self.num_workers}. There are no more processes than processors, whatever it is"
            )
