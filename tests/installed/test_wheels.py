"""The wheel in roots that hold Python and no compiler: installed without a network, then batches from a daemon and from a private one.

Run by `./dev test wheels`, as root; it sets PENSTOCK_WHEELHOUSE (a folder with the wheel and NumPy's) and PENSTOCK_WHEEL_ROOTS (a folder of tar
archives, one a root).
"""

import os
import pathlib
import shutil
import sys
import time

import pytest

from machine import TREE, check, given, run

sys.path.insert(0, str(TREE / "tests" / "support"))

from certificates import make_certificate  # noqa: E402

# From `pip install` to the first batch. It turns a hang into a failure; what it took is printed.
_FIRST_BATCH_S = 60

# A mount, process and network namespace of its own: no mount is left behind, and no network is there but the loopback.
_INSIDE = """
ip link set lo up && mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc" && mount -t tmpfs shm "$1/dev/shm" && exec chroot "$1" /bin/sh -ec "$2"
"""


def archives():
    folder = os.environ.get("PENSTOCK_WHEEL_ROOTS")
    return sorted(pathlib.Path(folder).glob("*.tar")) if folder else []


class Root:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, command, **options):
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "/bin/sh", "-ec", _INSIDE, "sh", self.folder, command]
        return check(*words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}, **options)


@pytest.fixture(scope="module", params=archives(), ids=lambda path: path.stem)
def root(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param.stem)
    check("tar", "-C", folder, "-xf", request.param, "--numeric-owner", "--exclude=./dev/*")
    shutil.copytree(given("PENSTOCK_WHEELHOUSE"), folder / "wheels")
    for program in ("attach_once.py", "read_addresses.py"):
        shutil.copy(TREE / "tests" / "support" / program, folder)
    (folder / "reader").mkdir()
    for path in ("README.md", "tests/docs/run_page.py", "tests/docs/readme_reader.py"):
        shutil.copy(TREE / path, folder / "reader")
    yield Root(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_there_is_a_root():
    assert archives(), "./dev test wheels makes them"


def test_the_root_has_neither_compiler_nor_network(root):
    for program in ("cc", "g++", "cmake", "protoc"):
        assert run("chroot", root.folder, "/bin/sh", "-c", f"command -v {program}").returncode != 0
    with pytest.raises(AssertionError, match="unreachable|Network"):
        root("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 1)\"")


def test_the_first_batch_after_pip_install(root, capsys):
    root("python3 -m venv /venv")
    before = time.monotonic()
    root("/venv/bin/pip install --no-index --find-links /wheels --quiet penstock && /venv/bin/python /attach_once.py /venv/bin", timeout=_FIRST_BATCH_S)
    took = time.monotonic() - before
    version = root("/venv/bin/python -c 'import sys; print(sys.version.split()[0])'").strip()
    with capsys.disabled():
        print(f"\n{root.folder.name}, Python {version}: {took:.1f} s from pip install to the last batch")


def test_addresses_are_read_though_the_root_has_no_libcurl(root):
    assert root("find / -xdev -name 'libcurl*' -not -path '/venv/*' -not -path '/proc/*'") == ""
    make_certificate(root.folder)
    read = root("/venv/bin/python /read_addresses.py /localhost.pem /localhost.key", timeout=_FIRST_BATCH_S)
    assert read.splitlines() == ["read http 500 rows", "read https 500 rows", "read s3 500 rows"]


def test_the_programs_answer(root):
    for program in ("penstock", "penstockd"):
        assert "penstock" in root(f"/venv/bin/{program} --version").lower() or root(f"/venv/bin/{program} --version")[0].isdigit()


def test_the_starts_of_the_readme_need_nothing_but_the_wheel(root):
    """Where no framework is, the reader's own stand-ins take its place. No folder of the source tree is there."""
    read = root("mkdir /reader/here && cd /reader/here && export PATH=/venv/bin:$PATH && penstock make-sample flowers --records 128 --out samples/flowers && "
                "python ../run_page.py ../README.md --first ../readme_reader.py")
    assert read.splitlines()[-1] == "5 examples"
