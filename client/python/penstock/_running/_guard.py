"""Whether the hosts of a world make the same stream: each tells the others what it has, over the trainer's own process group."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable, Dict, List, Optional

from penstock import _errors
from penstock._running import _cursors

# Gathers one object of each process, in any order, on all of them.
Gather = Callable[[Dict[str, Any]], List[Dict[str, Any]]]

# The numbers of a Fingerprint's fields (proto/penstock/v1/cursor.proto) that all hosts have alike, and what differs where one is another.
_FIELDS = {
    1: "its files have other names, or there are more or fewer of them",
    2: "its files have other sizes",
    3: "its files have the same sizes but begin or end with other bytes",
    4: "its order ops (shuffle, batch, repeat, ...) or their options are others",
    5: "its seeds are others; give each op a seed, or the job a name (share=)",
    6: "its batch size is another one",
    7: "its work ops (map, parse_example, ...) or their options are others",
    9: "its release means something else by one of the ops",
    10: "other changes of position were made while it ran (update, seek)",
}
# Known only where the files have indices.
_COUNTS = 8


def told(cursor: bytes, world) -> Dict[str, Any]:
    """What a host tells of the batch that this is the cursor of."""
    fields = _cursors.fields(cursor)
    message = {field.number: field.value for field in fields}
    fingerprint = _cursors.fingerprint(fields)
    return {
        "hosts": world.hosts,
        "host": world.host,
        "rank": world.rank,
        "ranks": world.ranks,
        "release": bytes(message.get(1, b"")).decode(),
        "step": message.get(2, 0),
        "position": [bytes(field.value).hex() if isinstance(field.value, bytes) else field.value for field in fields if field.number == 4],
        "fingerprint": {number: value for number, value in fingerprint.items() if number in _FIELDS or number == _COUNTS},
    }


def compare(all_told: List[Dict[str, Any]]) -> None:
    """Says which host differs, and by what.

    Raises:
      FailedPreconditionError: one does.
    """
    places: Dict[Any, Any] = {}
    first = min(all_told, key=lambda one: (one["host"], one["rank"]))
    prints: Dict[int, Any] = {}
    for one in sorted(all_told, key=lambda one: (one["host"], one["rank"])):
        name = f"host {one['host']} of {one['hosts']}"
        if one["hosts"] != first["hosts"]:
            raise _differ(name, f"it counts {one['hosts']} hosts, and host {first['host']} counts {first['hosts']}")
        place = (one["host"], one["rank"])
        if place in places:
            raise _differ(name, f"two processes have this number{'' if one['ranks'] == 1 else ' and rank ' + str(one['rank'])}")
        places[place] = one
        difference = _difference(first, one)
        if difference:
            raise _differ(name, f"beside host {first['host']}, {difference}")
        prints.setdefault(one["host"], one)
    missing = sorted(set(range(first["hosts"])) - set(prints))
    if missing:
        raise _differ(f"host {missing[0]} of {first['hosts']}", "none of the processes has this number")


def _difference(first, one):
    ours, theirs = first["fingerprint"], one["fingerprint"]
    for number, text in _FIELDS.items():
        if ours.get(number) != theirs.get(number):
            return text
    if ours.get(_COUNTS) and theirs.get(_COUNTS) and ours[_COUNTS] != theirs[_COUNTS]:
        return "its files have another number of records, as their indices say"
    if one["release"] != first["release"]:
        return f"its release is {one['release']}, not {first['release']}: equal bytes are promised within one release"
    if one["step"] != first["step"]:
        return f"its next step is {one['step']}, not {first['step']}: they began with the states of different steps"
    if one["position"] != first["position"]:
        return "it stands at another position: they began with different states"
    return ""


def _differ(name, what):
    return _errors.FailedPreconditionError(f"the hosts of this world do not make one stream: {name}: {what}")


def gather_of(guard) -> Optional[Gather]:
    """How processes tell each other: of "auto", by torch.distributed where it is initialised, else by JAX where it is distributed; None where neither is."""
    if guard is None or callable(guard):
        return guard
    if guard != "auto":
        raise _errors.InvalidArgumentError(f'guard: expected "auto", None or a function that gathers one object of each process, found {guard!r}')
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return _gather_by_torch
    jax = sys.modules.get("jax")
    client = getattr(getattr(sys.modules.get("jax._src.distributed"), "global_state", None), "client", None)
    return _gather_by_jax if jax is not None and client is not None else None


_has_warned = False


def warn_of_none(world) -> None:
    """Says once that nobody compares what the hosts of a world make, where somebody has left that to us."""
    global _has_warned
    if _has_warned or world.hosts == 1:
        return
    _has_warned = True
    warnings.warn(
        f"nothing compares what the {world.hosts} hosts of this world make: neither torch.distributed nor JAX is initialised, so that one with other files or "
        "options goes unnoticed; initialise it before the first batch, give a guard= that gathers an object of each process, or guard=None, which says that it is meant",
        RuntimeWarning,
        stacklevel=4,
    )


def _gather_by_torch(mine):
    import torch.distributed

    everything: List[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everything, mine)
    return everything


def _gather_by_jax(mine):
    import json

    import numpy as np
    from jax.experimental import multihost_utils

    def plain(value):
        return value.hex() if isinstance(value, (bytes, bytearray, memoryview)) else value

    text = dict(mine, fingerprint={str(number): plain(value) for number, value in mine["fingerprint"].items()})
    encoded = json.dumps(text).encode()
    # What is gathered is as large in all processes: first how large that is.
    sizes = np.asarray(multihost_utils.process_allgather(np.asarray([len(encoded)], np.int32)))
    data = np.zeros(int(sizes.max()), np.uint8)
    data[: len(encoded)] = np.frombuffer(encoded, np.uint8)
    rows = np.asarray(multihost_utils.process_allgather(data)).reshape(-1, len(data))
    everything = [json.loads(bytes(row).rstrip(b"\0")) for row in rows]
    return [dict(one, fingerprint={int(number): value for number, value in one["fingerprint"].items()}) for one in everything]
