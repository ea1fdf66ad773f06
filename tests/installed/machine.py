"""An installed Penstock: the Debian package in a clean root, under a systemd that has really booted, and in a container.

Run by `./dev test service`, as root; it sets PENSTOCK_DEB (the package) and tar archives of Debian roots: PENSTOCK_ROOT (systemd, a compiler and the
libraries that the package depends on), PENSTOCK_RUNTIME_ROOT (those libraries) and PENSTOCK_BUILD_ROOT (what building needs, compiled with the
cache of PENSTOCK_CCACHE).
"""

import os
import pathlib
import shutil
import subprocess
import time

import pytest

TREE = pathlib.Path(__file__).parents[2]
TIMEOUT_S = 600  # turns a hang into a failure; images are built within it on a busy machine


def given(name):
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set; ./dev test service sets it")
    return pathlib.Path(value)


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          **{"timeout": TIMEOUT_S, **options})


def check(*words, **options):
    done = run(*words, **options)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def eventually(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.05)


class Root:
    """A Debian file system in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, command):
        """Runs a shell command inside, without services."""
        return check("chroot", self.folder, "/bin/sh", "-ec", command)

    def put(self, source, path):
        target = self.folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if pathlib.Path(source).is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    check("tar", "-C", folder, "-xf", given("PENSTOCK_ROOT"), "--numeric-owner", "--exclude=./dev/*")
    root = Root(folder)
    root.put(given("PENSTOCK_DEB"), "/penstock.deb")
    yield root
    shutil.rmtree(folder, ignore_errors=True)
