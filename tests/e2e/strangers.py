"""Users besides the daemon's own, for tests that root runs."""

import os

import pytest

from programs import Daemon, Penstock

STRANGER = 54321


class Stranger(Penstock):
    """The command line of another user."""

    def __init__(self, folder, socket, uid=STRANGER, gid=STRANGER, groups=()):
        super().__init__(folder, socket)
        self.identity = ["setpriv", f"--reuid={uid}", f"--regid={gid}",
                         f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"]

    def command(self, *words):
        return self.identity + super().command(*words)


@pytest.fixture
def place(tmp_path):
    """A folder that others may enter, with the programs: tmp_path's parents are root's alone."""
    folder = tmp_path.parents[1]
    modes = {path: path.stat().st_mode for path in (tmp_path, *tmp_path.parents)
             if path.stat().st_mode & 0o5 != 0o5}
    for path in modes:
        path.chmod(0o755)
    yield tmp_path
    for path, mode in modes.items():
        path.chmod(mode & 0o7777)


@pytest.fixture
def serve(place, counter):
    daemons = []

    def start(text, pipelines=("eval-1", "train")):
        config = place / "penstockd.textproto"
        config.write_text(text)
        daemon = Daemon(place / "run" / "penstock.sock", "--config", str(config))
        daemons.append(daemon)
        (place / "run").chmod(0o755)
        os.chmod(daemon.socket, 0o666)
        owner = Penstock(place, daemon.socket)
        for name in pipelines:
            assert owner("create", counter(name)).code == 0
        return daemon

    yield start
    for daemon in daemons:
        daemon.stop()
