"""Which host of how many this is, and which of its processes: what launchers say of it in variables, one table for all of them."""

from __future__ import annotations

import operator
import os
import re
import sys
from typing import NamedTuple, Optional, Tuple

from penstock import _errors
from penstock._spec._stage import Spec, first_seed


class World(NamedTuple):
    """Whose rows a process takes of each batch: those of host `host` of `hosts`, and of these its part as `rank` of `ranks`."""

    hosts: int
    host: int
    rank: int = 0
    ranks: int = 1


class _Launcher(NamedTuple):
    """The variables by which a launcher numbers what it has started; several stand for the first that is set.

    Attributes:
      mark: set by this launcher alone: one of them tells that it was this one.
      process, processes: the number of this process among all of the job, and how many there are.
      host, hosts: the same of hosts.
      local, locals: the same of the processes of this host.
    """

    name: str
    mark: Tuple[str, ...]
    process: Tuple[str, ...] = ()
    processes: Tuple[str, ...] = ()
    host: Tuple[str, ...] = ()
    hosts: Tuple[str, ...] = ()
    local: Tuple[str, ...] = ()
    locals: Tuple[str, ...] = ()


# How many there are, where the launcher does not say: for Kubernetes, in the container's env.
_COUNT = ("PENSTOCK_HOSTS",)

# The innermost first: torchrun stands within Slurm and Kubernetes, mpirun within Slurm.
_LAUNCHERS = (
    _Launcher("penstock", ("PENSTOCK_HOST",), ("PENSTOCK_HOST",), _COUNT, ("PENSTOCK_HOST",), _COUNT, ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    _Launcher("torchrun", ("GROUP_RANK", "TORCHELASTIC_RUN_ID"), ("RANK",), ("WORLD_SIZE",), ("GROUP_RANK",), ("GROUP_WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    # Of torch.distributed's own, as Ray Train and Lightning set them: the number of hosts is that of processes by that of each host.
    _Launcher("torch", ("RANK",), ("RANK",), ("WORLD_SIZE",), ("NODE_RANK", "GROUP_RANK"), ("GROUP_WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    _Launcher(
        "mpi", ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",),
        local=("OMPI_COMM_WORLD_LOCAL_RANK",), locals=("OMPI_COMM_WORLD_LOCAL_SIZE",),
    ),
    _Launcher(
        "slurm", ("SLURM_PROCID",), ("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), ("SLURM_NODEID",), ("SLURM_STEP_NUM_NODES", "SLURM_NNODES"),
        ("SLURM_LOCALID",), ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"),
    ),
    _Launcher("pmi", ("PMI_RANK",), ("PMI_RANK",), ("PMI_SIZE",), local=("MPI_LOCALRANKID",), locals=("MPI_LOCALNRANKS",)),
    # An Indexed Job, a JobSet's too.
    _Launcher("kubernetes", ("JOB_COMPLETION_INDEX",), ("JOB_COMPLETION_INDEX",), _COUNT, ("JOB_COMPLETION_INDEX",), _COUNT, ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
)  # fmt: skip
_NAMES = {"ray": "torch", "statefulset": "kubernetes"}
# "4", or of Slurm "4(x3)", where each of the hosts has as many.
_NUMBER = re.compile(r"(\d{1,9})(\(x\d+\))?")
_POD = re.compile(r".*-(\d{1,6})")


def find(world, of_processes, environ=None) -> Optional[World]:
    """The world that a loader's `world=` asks for.

    Args:
      world: None; (hosts, host); "auto"; or a launcher's name: "torchrun", "torch", "ray", "slurm", "mpi", "pmi", "kubernetes", "statefulset", "jax".
      of_processes: each process is a host of its own, as each has a daemon of its own; else the processes of a host share one.

    Raises:
      InvalidArgumentError: a number is missing, is none or contradicts another one; the message names the variables.
    """
    if world is None:
        return None
    environ = os.environ if environ is None else environ
    if not isinstance(world, str):
        return _given(world)
    if world == "statefulset":
        return _pod(environ)
    if world == "jax" or (world == "auto" and "PENSTOCK_HOST" not in environ and _jax_is_distributed()):
        return _of_jax()
    wanted = _NAMES.get(world, world)
    found = [launcher for launcher in _LAUNCHERS if wanted in ("auto", launcher.name) and any(name in environ for name in launcher.mark)]
    if found:
        return _of(found[0], of_processes, environ)
    # In every pod, whatever has started the process in it: the last of all.
    if world in ("auto", "kubernetes") and "KUBERNETES_SERVICE_HOST" in environ:
        return _pod(environ)
    known = [launcher for launcher in _LAUNCHERS if wanted in ("auto", launcher.name)]
    if not known:
        names = ", ".join(repr(launcher.name) for launcher in _LAUNCHERS)
        raise _errors.InvalidArgumentError(f'world: expected None, (hosts, host), "auto", {names}, "ray", "statefulset" or "jax", found {world!r}')
    marks = ", ".join(name for launcher in known for name in launcher.mark)
    raise _errors.InvalidArgumentError(
        f"world={world!r}: no launcher has numbered this process: none of {marks} is set, and jax.distributed is not initialised; give world=(hosts, host), or "
        "PENSTOCK_HOSTS and PENSTOCK_HOST in the environment"
    )


def _given(world):
    try:
        hosts, host = (operator.index(number) for number in world)
    except (TypeError, ValueError):
        raise _errors.InvalidArgumentError(f"world: expected (hosts, host), two whole numbers, found {world!r}") from None
    return _checked(World(hosts, host), "world", f"({hosts}, {host})")


def _checked(world, where, what):
    if world.hosts < 1 or not 0 <= world.host < world.hosts or not 0 <= world.rank < world.ranks:
        raise _errors.InvalidArgumentError(f"{where}: expected hosts counted from 0 on, each below their number, found {what}")
    return world


def _read(environ, launcher, names, what):
    """The first of these variables, and its number; an error where none is set, or it holds none."""
    for name in names:
        if name in environ:
            number = _NUMBER.fullmatch(environ[name].strip())
            if number is None:
                raise _errors.InvalidArgumentError(
                    f"world ({launcher.name}): {name} is {environ[name]!r}, and no number"
                    + (": hosts with different numbers of processes; give world=(hosts, host)" if "," in environ[name] else "")
                )
            return name, int(number[1])
    if not names:
        raise _errors.InvalidArgumentError(f"world ({launcher.name}): this launcher does not say {what}; give world=(hosts, host)")
    raise _errors.InvalidArgumentError(f"world ({launcher.name}): {_mark(environ, launcher)} is set, but {' or '.join(names)} is not: it says {what}")


def _mark(environ, launcher):
    """The variable that tells of this launcher."""
    return next(name for name in launcher.mark if name in environ)


def _of(launcher, of_processes, environ):
    if launcher.name == "slurm" and "SLURM_STEP_ID" not in environ and "SLURM_STEPID" not in environ:
        raise _errors.InvalidArgumentError("world (slurm): SLURM_PROCID is set, but SLURM_STEP_ID is not: this is a batch script and no step; start the program by srun")
    process = _read(environ, launcher, launcher.process, "which process this is")
    processes = _read(environ, launcher, launcher.processes, "how many processes there are")
    _below(launcher, process, processes)
    if not of_processes:
        return _of_host(launcher, process, processes, environ)
    if launcher.process == launcher.host and _has(environ, launcher.locals):
        # What is counted are hosts, and several processes of each are there.
        rank = _read(environ, launcher, launcher.local, "which of the host's processes this is")
        ranks = _read(environ, launcher, launcher.locals, "how many processes the host has")
        _below(launcher, rank, ranks)
        return World(processes[1] * ranks[1], process[1] * ranks[1] + rank[1])
    return World(processes[1], process[1])


def _below(launcher, number, count):
    if not number[1] < count[1]:
        raise _errors.InvalidArgumentError(
            f"world ({launcher.name}): {number[0]} is {number[1]} and {count[0]} is {count[1]}: expected a number below it, counted from 0 on"
        )


def _has(environ, names):
    return any(name in environ for name in names)


def _of_host(launcher, process, processes, environ):
    """Of a process that shares its host's daemon: the host's number, and its own there."""
    local, locals_ = (launcher.local[:1] or ("",))[0], None
    rank, ranks = (local, 0), (local, 1)
    if _has(environ, launcher.local) or _has(environ, launcher.locals):
        rank = _read(environ, launcher, launcher.local, "which of the host's processes this is")
        ranks = _read(environ, launcher, launcher.locals, "how many processes the host has")
        _below(launcher, rank, ranks)
        locals_ = ranks[1]
    if _has(environ, launcher.hosts):
        hosts = _read(environ, launcher, launcher.hosts, "how many hosts there are")
    elif locals_ is not None and processes[1] % locals_ == 0:
        hosts = (f"{processes[0]} / {ranks[0]}", processes[1] // locals_)
    else:
        hosts = _read(environ, launcher, launcher.hosts, "how many hosts there are")
    if _has(environ, launcher.host):
        host = _read(environ, launcher, launcher.host, "which host this is")
    elif hosts[1] == 1 or locals_ == 1:
        host = (process[0], process[1] if locals_ == 1 else 0)
    else:
        host = _read(environ, launcher, launcher.host, "which host this is")
    _below(launcher, host, hosts)
    if launcher.processes != launcher.hosts and locals_ is not None and hosts[1] * locals_ != processes[1]:
        raise _errors.InvalidArgumentError(
            f"world ({launcher.name}): {hosts[0]} is {hosts[1]} and {ranks[0]} is {locals_}, which makes {hosts[1] * locals_} processes, but {processes[0]} is "
            f"{processes[1]}: hosts with different numbers of processes; give world=(hosts, host)"
        )
    return World(hosts[1], host[1], rank[1], ranks[1])


def _pod(environ):
    """The world of a StatefulSet, whose pods have their numbers in their names."""
    name = environ.get("POD_NAME") or environ.get("HOSTNAME", "")
    number = _POD.fullmatch(name)
    if number is None:
        raise _errors.InvalidArgumentError(
            f"world (kubernetes): the pod's name {name!r} (POD_NAME or HOSTNAME) ends with no number, as those of a StatefulSet do, and JOB_COMPLETION_INDEX is not set; give "
            "PENSTOCK_HOSTS and PENSTOCK_HOST"
        )
    launcher = _Launcher("kubernetes", ("HOSTNAME",))
    if "PENSTOCK_HOSTS" not in environ:
        raise _errors.InvalidArgumentError(f"world (kubernetes): pod {name} is number {number[1]}, but PENSTOCK_HOSTS is not set: it says how many replicas there are")
    hosts = _read(environ, launcher, _COUNT, "how many replicas there are")
    _below(launcher, ("the pod's number", int(number[1])), hosts)
    return World(hosts[1], int(number[1]))


def _jax_is_distributed():
    """Whether this process has begun jax.distributed: nothing is imported, and no backend begun, to find out."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) is not None


def _of_jax():
    jax = sys.modules.get("jax")
    if jax is None or not _jax_is_distributed():
        raise _errors.InvalidArgumentError('world="jax": jax.distributed.initialize() has not been called in this process')
    return World(jax.process_count(), jax.process_index())


def check_fewest(fewest, world) -> int:
    """The number of a loader's `fewest_hosts=`; 0 for None.

    Raises:
      InvalidArgumentError: it is no number from 1 to that of the hosts.
    """
    if fewest is None:
        return 0
    try:
        number = operator.index(fewest)
    except TypeError:
        number = 0
    if world is None or not 1 <= number <= world.hosts:
        raise _errors.InvalidArgumentError(
            f"fewest_hosts: expected 1 to {'the number of hosts (world=)' if world is None else world.hosts}, found {fewest!r}"
        )
    return number


def check_seeds(dataset):
    """Raises InvalidArgumentError where a dataset leaves seeds open: each host would draw them for itself."""
    seeds = Spec(dataset._stages).drawn_by
    missing = sum(first_seed(seed).given is None for seed in seeds)
    if missing:
        raise _errors.InvalidArgumentError(
            f'world: {missing} of the {len(seeds)} seeds of this dataset are open, and each host would draw its own; give each op that draws a seed=, or the job a '
            'name: share="NAME"'
        )
