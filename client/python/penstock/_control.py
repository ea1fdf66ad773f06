"""Create, validate, count, delete, divide among other hosts, what was skipped and what a pipeline does, over a daemon's socket."""

from typing import Any, Dict, List, NamedTuple

from penstock import _core, _errors


# How long a daemon may give no sign of life when it is asked what it has skipped, and what it does.
_SKIPPED_SECONDS = 5.0
_STATS_SECONDS = 1.0


class Skipped(NamedTuple):
    """What a pipeline has left out: elements on which a stage fails (ignore_errors), and damaged places (on_damage).

    Attributes:
      count: how many there are.
      places: the first 1,000 of them, each a dict: "file", "offset" (a byte of it, of a compressed file of its plain bytes), "length" (bytes;
        0: to the end of the file), "reason" and "epoch".
    """

    count: int
    places: List[Dict[str, Any]]


def _ask(path, operation, *request):
    import json

    answer, connection = _core.request_spec(path, operation, *request)
    return json.loads(answer) if answer else None, connection


def create(path, name, text, cursor=b"", temporary=False, timeout=None, world=None, fewest_hosts=0):
    """Starts a pipeline. `timeout` as penstock.attach: how long the daemon may give no sign of life.

    Args:
      world: a World (penstock._running._world), of whose host it makes the rows; None: all rows.
      fewest_hosts: its ring has room for the rows of a host of as few; 0: of those of `world`.

    Returns:
      A dict that describes it (Pipeline in control.proto), and the connection: a temporary pipeline
      lives as long as that; None of any other.
    """
    hosts = (0, 0) if world is None else (world.hosts, world.host)
    answer, connection = _ask(path, _core.CREATE, name, text, cursor, temporary, timeout, *hosts, min(fewest_hosts, hosts[0]))
    alive = None
    if temporary:
        import socket as sockets

        alive = sockets.socket(fileno=connection)
    if hosts[0] > 1 and not answer["pipeline"].get("world"):
        raise _errors.FailedPreconditionError(f"the daemon at {path} is of a release that knows nothing of several hosts: pipeline {name} makes all rows")
    return answer["pipeline"], alive


def redivide(path, name, step, world):
    """From a step on, a pipeline makes the rows of another host, or of one of another number of hosts: a dict as of UpdatePipelineResponse.

    Raises:
      FailedPreconditionError: the step is being made already; or its ring has no room for as many rows.
      InvalidArgumentError: it is no world of this stream.
      UnimplementedError: the daemon is of a release that does not know the question.
    """
    answer, _ = _ask(path, _core.REDIVIDE, name, str(step), b"", False, None, world.hosts, world.host)
    return answer


def validate(path, name, text):
    """Checks a spec and starts nothing: a dict that describes the pipeline, and an explanation."""
    answer, _ = _ask(path, _core.VALIDATE, name, text)
    return answer["pipeline"], answer["explanation"]


def skipped(path, name):
    answer, _ = _ask(path, _core.SKIPPED, name, "", b"", False, _SKIPPED_SECONDS)
    numbers = ("offset", "length", "epoch")
    places = [{**place, **{key: int(place[key]) for key in numbers}} for place in answer["places"]]
    return Skipped(int(answer["count"]), places)


def stats(path, name):
    """What a pipeline does: a dict as of PipelineStats in control.proto."""
    answer, _ = _ask(path, _core.STATS, name, "", b"", False, _STATS_SECONDS)
    return answer or {}  # of a daemon that does not know the question


def count(path, text):
    """How many steps a spec has; None, and why, where nobody knows before it runs."""
    answer, _ = _ask(path, _core.COUNT, "", text)
    return (int(answer["steps"]), "") if "steps" in answer else (None, answer["why_not"])


def hang_up(connection):
    """Ends a temporary pipeline, also where a forked child holds its connection too."""
    try:
        connection.shutdown(2)  # SHUT_RDWR
    except OSError:
        pass  # the daemon has gone
    connection.close()


def delete(path, name):
    _core.request_spec(path, _core.DELETE, name)
