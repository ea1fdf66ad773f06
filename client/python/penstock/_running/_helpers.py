"""The helpers of a loader: daemons of other hosts that make steps for a daemon of this process, and how that one hears of them.

It reads their addresses from a file, every second, so that they may come and go while it runs. Its certificate stands beside that file, in a
folder of this user alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, List, Optional, Sequence, Union

from penstock import _errors
from penstock._options import Options

_ADDRESSES, _CONFIG, _CERTIFICATE, _KEY, _AUTHORITIES = "helpers", "helpers.textproto", "trainer.pem", "trainer.key", "authority.pem"
# Between two looks for other addresses.
_LOOK_SECONDS = 1.0
# A ring's slots for each helper, for the trainer and this host's own workers, and at most: a step is lent once it has one.
_SLOTS_OF_HELPER, _OWN_SLOTS, _MOST_SLOTS = 2, 6, 64
# Helpers that a file is taken to name.
_COUNT_OF_FILE = 4


class Helpers:
    """What a loader takes as helpers=.

    Attributes:
      key: the same for copies of one in other processes, and different from that of any other.
      count: how many there are to be.
      certificate, private_key, authorities: PEM, as bytes: what the daemon beside the trainer shows, its key, and whose certificates it takes.
        None of them: it needs none.
    """

    # Whether there is no TLS also where the address is another machine's.
    plaintext = False

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
        names = {"address": _ADDRESSES}
        if self.certificate is not None:
            names.update(certificate=_CERTIFICATE, key=_KEY, authorities=_AUTHORITIES)
            for name, text in (_CERTIFICATE, self.certificate), (_KEY, self.private_key), (_AUTHORITIES, self.authorities):
                write_file(os.path.join(folder, name), text)
        fields = "\n".join(f'  {field}: "{os.path.join(folder, name)}"' for field, name in names.items())
        if self.plaintext:
            fields += "\n  plaintext: true"
        path = os.path.join(folder, _CONFIG)
        write_file(path, f"# {self.key}\nhelpers {{\n{fields}\n}}\n".encode())
        return ["--config", path]

    def forget(self, folder):
        """Removes the settings: the daemon has read them."""
        remove_files(folder, (_CONFIG, _CERTIFICATE, _KEY, _AUTHORITIES))


class NamedHelpers(Helpers):
    """Those whose addresses a program gives, or a file that somebody keeps."""

    def __init__(self, addresses, count, pem, plaintext):
        import hashlib

        told = repr((addresses, pem, plaintext))
        super().__init__(hashlib.sha256(told.encode()).hexdigest()[:32], count, *pem)
        self.plaintext = plaintext
        self._addresses = addresses

    def addresses(self):
        if isinstance(self._addresses, tuple):
            return list(self._addresses)
        with open(self._addresses) as file:
            return file.read().split()

    def __repr__(self):
        where = self._addresses if isinstance(self._addresses, str) else ", ".join(self._addresses)
        return f"<helpers at {where}>"


def helpers(
    addresses: Union[Sequence[str], str, os.PathLike[str]],
    *,
    certificate: Optional[str] = None,
    key: Optional[str] = None,
    authorities: Optional[str] = None,
    plaintext: bool = False,
    count: Optional[int] = None,
) -> NamedHelpers:
    """Daemons of other hosts that make steps for a loader: what its `helpers=` takes.

        penstock.torch.loader(dataset, helpers=penstock.helpers(["10.0.0.7:9466"], certificate="made/trainer.pem", key="made/trainer.key", authorities="made/authority.pem"))

    Helpers need no certificate on this machine's loopback, where a list of addresses is enough: `helpers=["127.0.0.1:9466"]`. `penstockd --serve HOST:PORT`
    is one. docs/howto/helpers.md tells how to start them and how `penstock certificates` makes certificates.

    Args:
      addresses: "HOST:PORT" each; all addresses of a name help. Or the path of a file with one a line, which is read again every second, so that helpers may come
        and go: rename a new file over the old one.
      certificate, key, authorities: PEM files: what this host shows to helpers, its key, and whose certificates helpers may show. All of them or none.
      plaintext: True: without TLS, to other machines too. Use it on a network that you trust.
      count: how many helpers there are to be, for which the ring gets slots; by default the number of the addresses, and 4 of a file.

    Raises:
      TypeError: addresses are something else.
      ValueError: an address without a port, none at all, some of the three files without the others, or beside `plaintext`.
      OSError: a file that cannot be read.
    """
    if isinstance(addresses, (str, os.PathLike)):
        addresses = os.path.abspath(addresses)
    elif isinstance(addresses, Sequence) and all(isinstance(one, str) for one in addresses):
        addresses = tuple(addresses)
        if not addresses:
            raise ValueError("addresses: expected at least one, found none")
        for one in addresses:
            host, _, port = one.rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise ValueError(f'addresses: expected a name or number and a port, as "10.0.0.7:9466", found {one!r}')
    else:
        raise TypeError(f"addresses: expected a list of texts or the path of a file, found {type(addresses).__qualname__}")
    files = (certificate, key, authorities)
    if any(files) and not all(files):
        raise ValueError("expected certificate, key and authorities, or none of them")
    if any(files) and plaintext:
        raise ValueError("plaintext: expected either certificates or plaintext, found both")
    if count is None:
        count = len(addresses) if isinstance(addresses, tuple) else _COUNT_OF_FILE
    return NamedHelpers(addresses, count, tuple(None if path is None else _read(path) for path in files), plaintext)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


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


def check(given: Any, source_is_name: bool) -> Optional[Helpers]:
    """The argument of a loader."""
    if given is None:
        return None
    if source_is_name:
        raise TypeError("helpers is of a Dataset; a pipeline has those of its daemon (helpers { } in its configuration)")
    if isinstance(given, Helpers):
        return given
    if isinstance(given, (list, tuple)):
        return helpers(given)
    raise TypeError(
        f"helpers: expected a list of addresses, or what penstock.helpers() or penstock.ray.workers() returns, found {type(given).__qualname__}"
    )


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
