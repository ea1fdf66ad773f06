"""Daemons on the nodes of a Ray cluster that lend their processors to the daemons beside trainers.

    workers = penstock.ray.workers(4)                           # in the driver
    loader = penstock.torch.loader(dataset, helpers=workers)    # in a trainer, on any node

Batches, their order and cursors are the same with any number of them, also when a node dies in the middle of a step. Needs the package ray;
importing penstock does not.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import penstock
from penstock._running import _daemon
from penstock._running._helpers import Helpers, remove_files, write_file

__all__ = ["Workers", "workers"]

# The name in the certificate of the daemon beside a trainer: helpers help nobody else.
_TRAINER = "penstock-trainer"
_CONFIG = "helper.textproto"
# The key of the authority lives as long as the job.
_DAYS = "3650"
_LOOK_SECONDS = 1.0
# For an actor that is placed and does not start, as others have the node's processors; and for a node where one did not.
_START_SECONDS = 60.0
_AVOID_SECONDS = 60.0
_ANSWER_SECONDS = 10.0
# How Ray calls what is no processor.
_ACCELERATORS = {"GPU", "TPU", "HPU", "NPU", "neuron_cores", "tpu"}


def _lends(node: Mapping[str, Any]) -> bool:
    """Whether a node, an item of ray.nodes(), has processors and no accelerator."""
    resources = node["Resources"]
    return resources.get("CPU", 0) >= 1 and not any(name in _ACCELERATORS or name.startswith("accelerator_type:") for name in resources)


class Workers(Helpers):
    """Daemons that help: what a loader takes as helpers=. It may be sent to actors and tasks, as an argument or within one.

    They end with the job, or when neither this object nor a copy of it is left. Use it as a context manager, or call close(), to end them before.

    Attributes:
      count: how many there are to be.
    """

    def __init__(self, keeper, key, count, certificate, private_key, authorities):
        super().__init__(key, count, certificate, private_key, authorities)
        self._keeper = keeper

    def addresses(self) -> List[str]:
        """Where those are that run now: a list of "HOST:PORT".

        Raises:
          FailedPreconditionError: this process has left Ray.
        """
        # A call would begin another job.
        if not ray.is_initialized():
            raise penstock.FailedPreconditionError("this process is not connected to Ray, or not any more")
        return ray.get(self._keeper.addresses.remote(), timeout=_ANSWER_SECONDS)

    def wait(self, count: Optional[int] = None, timeout: float = 120.0) -> List[str]:
        """Waits until so many of them run; a loader needs no waiting, and takes them as they come.

        Args:
          count: all by default.
          timeout: seconds.

        Returns:
          Their addresses.

        Raises:
          DeadlineExceededError: fewer run by then; the message says what keeps the others from it.
        """
        wanted = self.count if count is None else count
        deadline = time.monotonic() + timeout
        while True:
            found = self.addresses()
            if len(found) >= wanted:
                return found
            if time.monotonic() > deadline:
                reasons = ray.get(self._keeper.problems.remote(), timeout=_ANSWER_SECONDS)
                raise penstock.DeadlineExceededError("; ".join([f"{len(found)} of {wanted} helpers run after {timeout:g} s", *reasons]))
            time.sleep(_LOOK_SECONDS / 10)

    def close(self) -> None:
        """Ends them."""
        if not ray.is_initialized():
            return  # they have ended with the job
        try:
            ray.get(self._keeper.close.remote(), timeout=_ANSWER_SECONDS)
            ray.kill(self._keeper)
        except ray.exceptions.RayError:
            pass  # they have ended, and so has the job

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, type, value, traceback):
        self.close()

    def __repr__(self):
        return f"<Workers: {self.count} daemons on Ray's nodes>"


def workers(count: int, *, cpus: Optional[float] = None, nodes: Callable[[Dict[str, Any]], bool] = _lends) -> Workers:
    """Starts daemons on nodes of the cluster that make steps for trainers' daemons.

    An actor on each node has one. When a node dies, or one of the daemons, another one takes its place: on another node, if there is one. What
    passes between the hosts is encrypted, by certificates that are made for this job: nobody else is helped.

    Args:
      count: how many. If there are fewer nodes for them, the others start when nodes come.
      cpus: processors of each, which Ray gives to nobody else, and on which it works. By default each has a node of its own, with all its
        processors.
      nodes: tells, for an item of ray.nodes(), whether a node may have one. By default those that have processors and no accelerator.

    Returns:
      Workers, at once: wait() waits for them.

    Raises:
      InvalidArgumentError: the numbers.
      NotFoundError: there is no `penstock`, the command.
    """
    if count < 1:
        raise penstock.InvalidArgumentError(f"workers: expected one or more, found {count}")
    if cpus is not None and cpus <= 0:
        raise penstock.InvalidArgumentError(f"cpus: expected more than 0, found {cpus}")
    if not ray.is_initialized():
        ray.init()
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        made = _certify(folder, _TRAINER)
        authority = made["authority"]
    # It ends where this process' node does, and begins anew elsewhere only if the process lives on.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    keeper = _Keeper.options(num_cpus=0, max_restarts=-1, scheduling_strategy=here).remote(authority, count, cpus, nodes)
    return Workers(keeper, uuid.uuid4().hex, count, *made[_TRAINER], authority[0])


def _certify(folder, *names):
    """A dict of the certificates and keys of these names, and of the authority, which is made if the folder has none."""
    try:
        subprocess.run([_daemon.find_command(), "certificates", folder, *names, "--days", _DAYS], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise penstock.InternalError(error.stderr.strip()) from None
    found = {}
    for name in ("authority", *names):
        pair = []
        for end in ("pem", "key"):
            with open(os.path.join(folder, f"{name}.{end}"), "rb") as file:
                pair.append(file.read())
        found[name] = tuple(pair)
    return found


class _Settings:
    """Those of a daemon that helps, at a port of its own."""

    def __init__(self, host, threads, certificate, private_key, authorities):
        self._host = host
        self._threads = threads
        self._files = {"helper.pem": certificate, "helper.key": private_key, "authority.pem": authorities}
        self.address = None

    def write(self, folder):
        for name, text in self._files.items():
            write_file(os.path.join(folder, name), text)
        fields = dict(zip(("certificate", "key", "client_authorities"), (os.path.join(folder, name) for name in self._files)), certificate_names=_TRAINER)
        serve = "\n".join(f'  {field}: "{value}"' for field, value in fields.items())
        path = os.path.join(folder, _CONFIG)
        write_file(path, f"serve {{\n{serve}\n}}\nworker_defaults {{ workers: {self._threads} }}\n".encode())
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as bound:
            bound.bind((self._host, 0))
            port = bound.getsockname()[1]
        self.address = f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"
        return ["--config", path, "--serve", self.address]

    def forget(self, folder):
        remove_files(folder, (*self._files, _CONFIG))


@ray.remote
class _Helper:
    """The actor that has a daemon, which ends with it; one that dies has a successor."""

    def __init__(self, release, host, threads, certificate, private_key, authorities):
        if penstock.version() != release:
            raise penstock.FailedPreconditionError(f"the driver has Penstock {release}, and this node {penstock.version()}: helpers need the same release")
        self._settings = _Settings(host, threads, certificate, private_key, authorities)
        self._daemon = _daemon.PrivateDaemon(self._settings)
        threading.Thread(target=self._watch, daemon=True).start()

    def address(self):
        return self._settings.address

    def _watch(self):
        while True:
            self._daemon.process.wait()
            self._daemon._remove_folder()
            try:
                self._daemon = _daemon.PrivateDaemon(self._settings)
            except penstock.Error:
                time.sleep(_LOOK_SECONDS)


class _Placed:
    """A helper's actor, as its keeper sees it."""

    def __init__(self, node, actor):
        self.node = node
        self.actor = actor
        self.address = None
        self.problem = None
        self._patience = time.monotonic() + _START_SECONDS
        self._asked = actor.address.remote()

    def look(self):
        """Whether it lives, as far as is known."""
        ready, _ = ray.wait([self._asked], timeout=0)
        if not ready:
            if self.address is None and time.monotonic() > self._patience:
                self.problem = f"no actor has started within {_START_SECONDS:g} s: are its processors free?"
            return self.problem is None
        try:
            self.address = ray.get(self._asked)
        except ray.exceptions.RayError as error:
            self.problem = str(error).strip().splitlines()[-1]
            return False
        self._asked = self.actor.address.remote()
        return True


@ray.remote
class _Keeper:
    """The actor that has so many helpers at a time: they are its own, and end with it."""

    def __init__(self, authority, count, cpus, may_have):
        self._authority = authority
        self._count = count
        self._cpus = cpus
        self._may_have = may_have
        self._placed = []
        self._avoided = {}  # nodes, until when, and why
        self._trouble = None  # of the last look
        self._mutex = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._keep, daemon=True).start()

    def addresses(self):
        return [placed.address for placed in list(self._placed) if placed.address is not None]

    def places(self):
        """The nodes that have one, each with its address."""
        return [(placed.node, placed.address) for placed in list(self._placed)]

    def problems(self):
        """Why there are fewer than there are to be."""
        reasons = [f"on node {node[:8]}: {why}" for node, (_, why) in list(self._avoided.items())]
        missing = self._count - len(self._placed)
        if missing > 0:
            reasons.append(f"no node for {missing} of them")
        return reasons if self._trouble is None else [*reasons, self._trouble]

    def close(self):
        self._closed.set()
        with self._mutex:
            for placed in self._placed:
                ray.kill(placed.actor)
            self._placed = []

    def _keep(self):
        while not self._closed.is_set():
            with self._mutex:
                try:
                    if not self._closed.is_set():
                        self._look()
                    self._trouble = None
                except Exception as error:  # of Ray, or of the function that chooses nodes
                    self._trouble = str(error)
            self._closed.wait(_LOOK_SECONDS)

    def _look(self):
        now = time.monotonic()
        self._avoided = {node: (until, why) for node, (until, why) in self._avoided.items() if until > now}
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        for placed in list(self._placed):
            if placed.look() and placed.node in alive:
                continue
            # One that has run begins anew where it was.
            if placed.problem is not None and placed.address is None:
                self._avoided[placed.node] = now + _AVOID_SECONDS, placed.problem
            self._placed.remove(placed)
            ray.kill(placed.actor)
        while len(self._placed) < self._count:
            node = self._next_node(alive)
            if node is None:
                return
            self._placed.append(self._place(node))

    def _next_node(self, alive):
        """The one with the fewest of them that may have one more; None: there is none."""
        having = {node: sum(placed.node == node for placed in self._placed) for node in alive}
        free = []
        for name, node in alive.items():
            processors = node["Resources"].get("CPU", 0)
            most = 1 if self._cpus is None else int(processors / self._cpus)
            if having[name] < most and name not in self._avoided and self._may_have(node):
                free.append((having[name], name))
        return alive[min(free)[1]] if free else None

    def _place(self, node):
        host = node["NodeManagerAddress"]
        cpus = node["Resources"].get("CPU", 0) if self._cpus is None else self._cpus
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
            for end, text in zip(("pem", "key"), self._authority):
                write_file(os.path.join(folder, f"authority.{end}"), text)
            certificate, private_key = _certify(folder, host)[host]
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": there}
        threads = max(1, int(cpus))
        actor = _Helper.options(**options).remote(penstock.version(), host, threads, certificate, private_key, self._authority[0])
        return _Placed(node["NodeID"], actor)


def __dir__():
    return sorted(__all__)
