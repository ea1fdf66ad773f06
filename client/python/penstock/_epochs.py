"""Loops over epochs, whichever framework's tensors the batches become."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Optional, Union

import penstock
from penstock import _control, _html
from penstock._ragged import RaggedTensor
from penstock._running import _guard, _helpers, _sharing, _world
from penstock._running._watching import Profile
from penstock._sparse import SparseTensor


# What to write for the arguments of torch's DataLoader; those of penstock.attach are left out where there is a pipeline.
_OF_DATA_LOADER = {
    "batch_size": "dataset.batch({value})",
    "shuffle": "dataset.shuffle(n), before batch, or dataset.global_shuffle() of plain files of records",
    "num_workers": "nothing: the workers are the daemon's threads, on all cores; fewer by options.threading.private_threadpool_size",
    "drop_last": "dataset.batch(n, drop_remainder=True)",
    "collate_fn": "padded_batch, ragged_batch, bucket_by_sequence_length, or a map behind batch",
    "pin_memory": 'device="cuda", by which the batches are copied to the device',
    "sampler": 'share="JOB", rank=…, world_size=… for a DistributedSampler; Dataset.sample_from_datasets for a weighted one',
    "batch_sampler": "bucket_by_sequence_length, or shuffle and batch",
    "prefetch_factor": "nothing, or dataset.prefetch(n) as the last stage",
    "persistent_workers": "nothing: there are no worker processes",
    "worker_init_fn": "nothing: there are no worker processes",
    "multiprocessing_context": "nothing: there are no worker processes",
}


def _refuse_data_loaders(options, is_attached):
    """Says what stands for DataLoader's arguments, where there are any."""
    found = [name for name in options if name in _OF_DATA_LOADER and not (is_attached and name == "batch_size")]
    if found:
        rows = "".join(f"\n  {name}: {_OF_DATA_LOADER[name].format(value=options[name])}" for name in found)
        raise TypeError(f"arguments of torch's DataLoader; here (docs/migrating.md):{rows}")


def _until_closed(loader, before=None):
    """The batches of a loader that is open: they end with it, or when it is closed. `before` is called in front of each."""
    was_closed = loader.closed
    while True:
        if before is not None:
            before(loader)
        try:
            element = next(loader)
        except StopIteration:
            return
        except penstock.Error:
            if was_closed or not loader.closed:
                raise
            return
        yield element


def _take_ranks(world, options):
    """Which of the host's processes this is, where nobody has said it."""
    if world is None:
        return
    for name, found in (("rank", world.rank), ("world_size", world.ranks)):
        if options.get(name) is None:
            if world.ranks > 1:
                options[name] = found
        elif world.ranks > 1 and options[name] != found:
            raise penstock.InvalidArgumentError(f"world: the launcher says {name}={found} of this host's processes, and the loader was given {name}={options[name]}")


def _check_served(loader, world):
    """Whether a pipeline makes the rows of this host."""
    found = _control.stats(loader.socket, loader.pipeline).get("world") or {"hosts": 1, "host": 0}
    if (int(found["hosts"]), int(found["host"])) != (world.hosts, world.host):
        raise penstock.FailedPreconditionError(
            f"pipeline {loader.pipeline} makes the rows of host {found['host']} of {found['hosts']}, and this is host {world.host} of {world.hosts}: "
            f"penstock create SPEC --world {world.hosts}:{world.host}"
        )


class EpochLoader:
    """One epoch for each `for` loop over it: a pass over a Dataset, or the rest of the epoch in which a pipeline is.

    Args:
      source: a Dataset, or the name of a pipeline.
      make_tensor: what becomes of each array of numbers.
      options: of penstock.attach, for a pipeline; or for a Dataset that runs in a shared daemon, whose name is the option "share".
    """

    def __init__(self, source, make_tensor, options):
        self._make_tensor = make_tensor
        self._dataset = source
        self._loader = None
        self._next = None  # the first batch of the next epoch, which ended this one
        self._state = None
        self._resume = None
        self._epoch = 0  # of a dataset: the pass that the next loop makes
        self._pass = 0  # and that of the loop that is under way
        self._valid = 0
        self._skipped = _control.Skipped(0, [])
        if not isinstance(source, (str, penstock.Dataset)):
            kind = type(source)
            raise TypeError(
                f"the source is a {kind.__module__}.{kind.__qualname__}; it is a penstock.Dataset or the name of a pipeline (docs/migrating.md says "
                "what becomes of a DataLoader)"
            )
        share = options.pop("share", None)
        self._helpers = _helpers.check(options.pop("helpers", None), isinstance(source, str))
        if self._helpers is not None:
            source = _helpers.with_room(source, self._helpers)
        self._guard = options.pop("guard", "auto")
        self._has_met = False  # the other hosts, and found them to make the same stream
        self._reworld = None  # the step, the World that holds from there on, and the loader whose pipeline was told of it
        fewest = options.pop("fewest_hosts", None)
        self._world = _world.find(options.pop("world", None), of_processes=share is None and not isinstance(source, str))
        self._fewest_hosts = _world.check_fewest(fewest, self._world)
        _refuse_data_loaders(options, isinstance(source, str) or share is not None)
        if share is not None:
            if isinstance(source, str):
                raise TypeError("share is of a Dataset; a pipeline runs where its daemon is (socket)")
            if options.pop("socket", None) is not None:
                raise TypeError("share names the daemon, and so does socket: one of them")
            _take_ranks(self._world, options)
            source, options["socket"] = _sharing.serve(source, share, options.get("rank"), options.get("world_size"), self._world, self._fewest_hosts, self._helpers)
        self._source = source
        self._sizes_differ = options.get("batch_size") is not None
        if isinstance(source, str):
            if share is None:
                _take_ranks(self._world, options)
            if options.get("rank") is not None or options.get("world_size") is not None:
                options.setdefault("mode", "rank")
            self._loader = penstock.attach(source, **options)
            self._state = self._loader.state_dict()
            if self._world is not None:
                _check_served(self._loader, self._world)
        elif options:
            raise TypeError(
                f"arguments of penstock.attach, which a dataset does not take: {', '.join(sorted(options))}; the processes of a job that take one "
                'pass together name it: share="NAME"'
            )
        elif self._world is not None:
            _world.check_seeds(source)

    @property
    def world(self) -> Optional[_world.World]:
        """The host whose rows this loader gives, of how many, and which of its processes this is: a named tuple (hosts, host, rank, ranks). None: all rows."""
        return self._world

    def check_hosts(self) -> None:
        """Compares, with all other hosts of the world, what the batch given last belongs to: the files, the spec, the seeds, the changes, the step. Each loop does so
        behind its first batch, and behind the first one of another world (reworld); call it at checkpoints and changes, on all processes alike.

        Raises:
          FailedPreconditionError: a host makes another stream; the message names it, and what differs.
        """
        self._has_met = False
        if self._loader is not None:
            # Of a loop that was left, too; and not of the batch that begins the next epoch.
            self._meet(self.state_dict()["cursor"])

    def _meet(self, cursor):
        """Once, behind a first batch."""
        if self._has_met or self._world is None or not cursor:
            return
        gather = _guard.gather_of(self._guard)
        if gather is not None:
            _guard.compare(gather(_guard.told(bytes(cursor), self._world)))
        elif self._guard == "auto":
            _guard.warn_of_none(self._world)
        self._has_met = True

    def reworld(self, hosts: int, host: int, at_step: Optional[int] = None) -> None:
        """Goes on as host `host` of `hosts` from a step on: for engines that change the number of hosts while the processes live. Every host that stays calls it with the
        same step, and so does each process of a host; one that comes opens a loader with the state of the step before, and the new world.

        The daemon writes the change down, as others (penstock history), and goes on in the same ring. Where that has no room for the rows of one of fewer hosts
        (`fewest_hosts` of the loader), or has that step ready already, a loader of a Dataset makes its pipeline anew there: the same batches, in the time of a resume.

        Args:
          at_step: in a loop, the first step that is made so, which no host may have been given yet: of a Dataset a step of its pass, where a pass that ends before it is
            the last one of the old hosts; of a pipeline, or with `share`, one of the pipeline, as state_dict()["step"] counts them. Between two loops over a Dataset
            None: the new hosts make all of the next one.

        Raises:
          FailedPreconditionError: that step was given already; or it is missing in a loop, or named between two; or of a pipeline, or with `share`: it has no room for as
            many rows, or is making that step already. The message tells what to do.
          InvalidArgumentError: the numbers are no world, or not one of this stream.
        """
        world = _world.find((hosts, host), of_processes=True)
        if self._world is None:
            raise penstock.FailedPreconditionError("this loader was made for one host alone; make it with world=(1, 0) to change the number of hosts later")
        world = world._replace(rank=self._world.rank, ranks=self._world.ranks) if isinstance(self._source, str) else world
        if self._sizes_differ:
            raise penstock.FailedPreconditionError("the batches of this loader are not the pipeline's (batch_size), and those of several hosts cannot be joined")
        loader = self._loader
        if loader is None or loader.closed:
            if at_step is not None or isinstance(self._source, str):
                raise penstock.FailedPreconditionError(f"no loop is under way: the new hosts make all of the next one; leave at_step={at_step} out")
            self._reworld = None, world, None
            self._enter_world()
            return
        if at_step is None:
            raise penstock.FailedPreconditionError("a loop is under way: name the first step that the new hosts make (at_step=), the same on all hosts")
        next_step = loader.step + 1 if isinstance(self._source, str) else loader._next_step
        if at_step < next_step:
            raise penstock.FailedPreconditionError(f"step {at_step} was given already: the earliest is {next_step}")
        if self._reworld is not None and at_step != self._reworld[0]:
            raise penstock.FailedPreconditionError(f"the hosts change at step {self._reworld[0]} already, which is still to come: name that step, or wait for it")
        if isinstance(self._source, str):
            _control.redivide(loader.socket, loader.pipeline, at_step, world)
            told = loader
        else:
            told = loader._divide_anew(world, at_step)
        self._reworld = at_step, world, told

    def _take_world(self, iterator):
        """In front of each batch: the new world, where that is its first one."""
        if self._reworld is None or iterator is not self._loader or iterator.closed or iterator._next_step < self._reworld[0]:
            return
        # A pipeline that took the place of the one that was told knows nothing of it.
        is_told = self._reworld[2] is not None and self._reworld[2] is iterator._loader
        self._enter_world()
        if is_told:
            iterator._world = self._world
        else:
            iterator._change_world(self._world)

    def _enter_world(self):
        _, self._world, _ = self._reworld
        self._reworld = None
        self._has_met = False

    @property
    def dataset(self) -> Any:
        """The Dataset, or the name of the pipeline."""
        return self._dataset

    def __len__(self) -> int:
        """Batches of an epoch of a Dataset; or of the whole stream of a pipeline, in the size that this loader takes (`batch_size`).

        Raises:
          TypeError: it has no end, or nobody knows how many there are.
        """
        if isinstance(self._dataset, str):
            return len(self._loader)
        if self._sizes_differ:
            raise TypeError("the batches of this loader are not the dataset's (batch_size): nobody counts them")
        return len(self._dataset)

    def __bool__(self):
        return True

    def __reduce__(self):
        raise penstock.FailedPreconditionError(
            "a loader belongs to its process; in workers of a torch DataLoader each would give all batches: the daemon has workers of its own: num_workers=0"
        )

    @property
    def valid(self) -> int:
        """How many rows of the batch that the loop has, from the first on, are elements: fewer than it has only where the spec fills a
        last batch up (remainder: PAD), so that an evaluation counts none twice."""
        return self._valid

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next loop over a Dataset: that of its pass number `epoch`, from 0 on. Without it each loop makes the
        pass behind the one before it, also behind load_state_dict().

        A pipeline of a daemon has an order of its own in each epoch; there it changes nothing.
        """
        self._epoch = int(epoch)

    def state_dict(self) -> Dict[str, Any]:
        """The position behind the batch given last, exact and a few hundred bytes; for a checkpoint, also of torch.distributed.checkpoint: the keys are always
        the same. For one in JSON, which has no bytes: json.dumps(state, default=bytes.hex), and load_state_dict(json.loads(text))."""
        if isinstance(self._source, str):
            return dict(self._state)
        loader = self._loader  # which a loop in another thread may be done with meanwhile
        if loader is not None:
            return dict(loader.state_dict(), epoch=self._pass)
        return dict(self._resume or {"cursor": b"", "step": -1, "seeds": [], "epoch": self._epoch})

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes to a position: the next loop begins with the batch behind it, and ends with its epoch.

        Raises:
          FailedPreconditionError, InvalidArgumentError: the state is that of another stream, or none.
        """
        is_pipeline = isinstance(self._source, str)
        keys = {"cursor", "step"} if is_pipeline else {"cursor", "step", "seeds"}
        if not keys <= set(state) and (is_pipeline or set(state) != {"epoch"}):
            expected = f"{', '.join(sorted(keys))}{'' if is_pipeline else ', or epoch alone'}"
            raise penstock.InvalidArgumentError(
                f"expected a state of this loader, which has {expected}; found {', '.join(sorted(map(str, state))) or 'nothing'}"
            )
        if is_pipeline:
            if state.get("cursor"):
                self._loader.load_state_dict(state)
                self._next = None
                self._state = dict(state, cursor=self._loader.cursor)
            elif self._loader.cursor:
                raise penstock.FailedPreconditionError(
                    "the state is that of a loader before its first batch, and has no cursor; attach anew to begin there"
                )
            return
        self._next = None
        self._epoch = int(state.get("epoch", self._epoch))
        # Between two epochs it has neither.
        self._resume = dict(state) if state.get("cursor") or state.get("seeds") else None
        self._loader = None  # a loop that is under way goes on, but is no longer where this stands

    def close(self) -> None:
        """Leaves the pipeline, or the pass over the Dataset, and ends the loop that is under way; tensors stay valid."""
        loader = self._loader
        if loader is not None:
            loader.close()

    def stats(self) -> Dict[str, Any]:
        """What the loader has seen, and what holds its batches up ("bottleneck", "sentence"); see penstock.Loader.stats. Empty for a Dataset without a loop over it."""
        loader = self._loader
        return {} if loader is None else loader.stats()

    @property
    def socket(self) -> Optional[str]:
        """The socket of the daemon that makes the batches, for `penstock --socket`; None for a Dataset without a loop over it."""
        loader = self._loader
        return None if loader is None else loader.socket

    def profile(self, path: Union[str, os.PathLike], seconds: float = 1.0) -> Profile:
        """Writes what each worker does for so many seconds, from now on, to a file for ui.perfetto.dev; see penstock.Dataset.profile.

        Raises:
          FailedPreconditionError: of a Dataset, outside of a loop over it.
        """
        loader = self._loader
        if loader is None or loader.closed:
            raise penstock.FailedPreconditionError("no loop over this loader is under way: there is nothing to profile")
        return loader.profile(path, seconds)

    def __repr__(self):
        loader = self._loader
        state = "between two loops" if loader is None else "closed" if loader.closed else f"at step {loader.step}"
        source = f"pipeline {self._dataset}" if isinstance(self._dataset, str) else repr(self._dataset)
        return f"<{type(self).__name__} of {source}, {state}>"

    def _repr_html_(self):
        """For notebooks: the dataset's tables, or what is known of the pipeline, and where the loader is."""
        rows = [(key, value) for key, value in self.stats().items() if value != ""]
        shown = self._dataset._repr_html_() if isinstance(self._dataset, penstock.Dataset) else ""
        return f"{shown}{_html.table(('loader', repr(self)), rows)}"

    def skipped(self) -> _control.Skipped:
        """What was left out by now, of ignore_errors and on_damage: in the pass of the last loop over a Dataset, or by a pipeline in every pass
        anew."""
        loader = self._loader
        return self._skipped if loader is None else loader.skipped()

    def __iter__(self) -> Iterator[Any]:
        return self._served() if isinstance(self._source, str) else self._declared()

    def _declared(self):
        self._pass = self._epoch
        self._epoch += 1
        resume, self._resume = self._resume, None
        if resume is None and self._reworld is not None:
            # The pass of its step has ended before it.
            self._enter_world()
        self._has_met = False
        iterator = penstock.DatasetIterator(self._source, number=self._pass, world=self._world, fewest_hosts=self._fewest_hosts, helpers=self._helpers)
        if resume is not None:
            iterator.load_state_dict(resume)
        self._loader = iterator
        rebuilt, iterator._rebuilt = iterator._rebuilt, None
        with iterator:
            for element in _until_closed(iterator, self._take_world):
                if self._world is not None and not self._has_met:
                    self._meet(iterator.state_dict()["cursor"])
                self._valid = iterator._valid_of_last()
                element = self._convert(element)
                yield element if rebuilt is None else rebuilt(element)
            # The next loop begins anew, and so does whoever goes on from here; one that was closed has its position still.
            if self._loader is iterator and not iterator.closed:
                self._loader = None
            self._skipped = iterator.skipped()

    def _served(self):
        epoch = None
        self._has_met = False
        batches = _until_closed(self._loader)
        while True:
            if self._next is not None:
                element, state, of_epoch, valid = self._next
                self._next = None
            else:
                element = next(batches, None)
                if element is None:
                    return
                if self._reworld is not None and self._loader.step >= self._reworld[0]:
                    self._enter_world()
                self._meet(self._loader.cursor)
                state, of_epoch, valid = self._loader.state_dict(), self._loader.epoch, self._loader.valid
            if epoch is None:
                epoch = of_epoch
            if of_epoch != epoch:
                self._next = element, state, of_epoch, valid
                return
            self._state, self._valid = state, valid
            yield self._convert(element)

    def _convert(self, element):
        if isinstance(element, dict):
            return {key: self._convert(inner) for key, inner in element.items()}
        if isinstance(element, SparseTensor):
            return SparseTensor(*(self._convert(part) for part in element))
        if isinstance(element, tuple):
            return tuple(self._convert(inner) for inner in element)
        if isinstance(element, RaggedTensor):
            return element._converted(self._convert)
        return element if element.dtype == object else self._make_tensor(element)
