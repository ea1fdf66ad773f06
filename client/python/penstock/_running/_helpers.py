"""The helpers of a loader: daemons of other hosts that make steps for a daemon of this process, and how that one hears of them.

It reads their addresses from a file, every second, so that they may come and go while it runs. Its certificate stands beside that file, in a
folder of this user alone.
"""

import contextlib
import os
import threading

from penstock import _errors
from penstock._options import Options

_ADDRESSES, _CONFIG, _CERTIFICATE, _KEY, _AUTHORITIES = "helpers", "helpers.textproto", "trainer.pem", "trainer.key", "authority.pem"
# Between two looks for other addresses.
_LOOK_SECONDS = 1.0
# A ring's slots for each helper, for the trainer and this host's own workers, and at most: a step is lent once it has one.
_SLOTS_OF_HELPER, _OWN_SLOTS, _MOST_SLOTS = 2, 6, 64


class Helpers:
    """What a loader takes as helpers=.

    Attributes:
      key: the same for copies of one in other processes, and different from that of any other.
      count: how many there are to be.
      certificate, private_key, authorities: PEM, as bytes: what the daemon beside the trainer shows, its key, and whose certificates it takes.
    """

    def __init__(self, key, count, certificate, private_key, authorities):
        self.key = key
        self.count = count
        self.certificate = certificate
        self.private_key = private_key
        self.authorities = authorities

    def addresses(self):
        """Where they are now: a list of "HOST:PORT"."""
        raise NotImplementedError

    def write(self, folder):
        """Writes the settings of a daemon with these helpers, and returns its options."""
        files = {_CERTIFICATE: self.certificate, _KEY: self.private_key, _AUTHORITIES: self.authorities}
        for name, text in files.items():
            write_file(os.path.join(folder, name), text)
        names = {"address": _ADDRESSES, "certificate": _CERTIFICATE, "key": _KEY, "authorities": _AUTHORITIES}
        fields = "\n".join(f'  {field}: "{os.path.join(folder, name)}"' for field, name in names.items())
        path = os.path.join(folder, _CONFIG)
        write_file(path, f"# {self.key}\nhelpers {{\n{fields}\n}}\n".encode())
        return ["--config", path]

    def forget(self, folder):
        """Removes the settings: the daemon has read them."""
        remove_files(folder, (_CONFIG, _CERTIFICATE, _KEY, _AUTHORITIES))


def write_file(path, text):
    """A whole file takes the place of the one that is there; only this user may read it."""
    partial = f"{path}.partial-{os.getpid()}"
    with open(partial, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
    os.replace(partial, path)


def remove_files(folder, names):
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def forget(folder):
    """Removes what an earlier daemon of that folder had of helpers."""
    remove_files(folder, (_ADDRESSES, _CONFIG, _CERTIFICATE, _KEY, _AUTHORITIES))


def check_daemon(folder, helpers):
    """Whether the daemon of that folder was started with these helpers, where a process names any.

    Raises:
      FailedPreconditionError: it has others, or none.
    """
    try:
        with open(os.path.join(folder, _CONFIG)) as file:
            found = file.readline()
    except FileNotFoundError:
        found = ""
    if found != f"# {helpers.key}\n":
        raise _errors.FailedPreconditionError(
            f"helpers: the shared daemon was started {'with other helpers' if found else 'without helpers'}; all processes of a share give the same ones"
        )


def check(helpers, source_is_name):
    """The argument of a loader."""
    if helpers is None:
        return None
    if source_is_name:
        raise TypeError("helpers is of a Dataset; a pipeline has those of its daemon (helpers { } in its configuration)")
    if not isinstance(helpers, Helpers):
        raise TypeError(f"helpers: expected what penstock.ray.workers() returns, found {type(helpers).__qualname__}")
    return helpers


def with_room(dataset, helpers):
    """The dataset with a ring that has slots for helpers' steps, unless its options name a number of slots."""
    if dataset._options.slots:
        return dataset
    options = Options()
    options.ring.slots = min(_MOST_SLOTS, _SLOTS_OF_HELPER * helpers.count + _OWN_SLOTS)
    return dataset.with_options(options)


class Listing:
    """Keeps a folder's file of addresses, on a thread of its own, until it is stopped or the folder goes."""

    def __init__(self, folder, helpers):
        self._path = os.path.join(folder, _ADDRESSES)
        self._helpers = helpers
        self._stopped = threading.Event()
        threading.Thread(target=self._keep, name="penstock-helpers", daemon=True).start()

    def stop(self):
        self._stopped.set()

    def _keep(self):
        written = None
        while not self._stopped.is_set():
            # Whoever knows them may be away, or end before this process does: those that were known go on helping.
            with contextlib.suppress(Exception):
                text = "".join(f"{address}\n" for address in self._helpers.addresses()).encode()
                if text != written and not self._stopped.is_set():
                    try:
                        write_file(self._path, text)
                    except FileNotFoundError:
                        return  # the daemon's folder has gone
                    written = text
            self._stopped.wait(_LOOK_SECONDS)
