"""Datasets of an nginx that is late, stalls, cuts, refuses and lies (lua_nginx.py)."""

import pathlib
import sys
import urllib.request

import pytest

import lua_nginx
import penstock
from penstock._running import _daemon
from real_servers import digest, write_records

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from certificates import make_certificate  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not lua_nginx.is_installed(), reason="Debian packages: nginx libnginx-mod-http-lua"),
    pytest.mark.filterwarnings("ignore:this trainer holds"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("served")
    # Its workers are another user's.
    for folder in (root, *list(root.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    for i in range(4):
        write_records(root / f"part-{i}", i)
    (root / "empty").touch()
    return root


@pytest.fixture(scope="module")
def nginx(root, tmp_path_factory):
    server = lua_nginx.LuaNginx(tmp_path_factory.mktemp("nginx"), root)
    yield server
    server.end()


def counts(server):
    text = urllib.request.urlopen(server.url + "/counts").read().decode()
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def all_parts(place):
    return penstock.TFRecordDataset([f"{place}/part-{i}" for i in range(4)])


@pytest.mark.parametrize("place", ["near", "late", "stalled", "busy", "cut", "untagged", "old"])
def test_fault_29_what_passes_gives_what_the_files_give(place, nginx, root, variables):
    before = counts(nginx)
    assert digest(all_parts(f"{nginx.url}/{place}")) == digest(all_parts(root))
    if place in before:
        assert counts(nginx)[place] > before[place]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("whole", "gives no ranges"),
        ("gzip", "compresses what it sends"),
        ("elsewhere", "sends readers elsewhere"),
        ("forbidden", "the server refuses it"),
    ],
)
def test_fault_29_what_does_not_pass_is_told(place, message, nginx, variables):
    with pytest.raises(penstock.Error, match=message):
        list(penstock.TFRecordDataset(f"{nginx.url}/{place}/part-0").batch(10))


def test_fault_29_an_empty_file_is_empty(nginx, root, variables):
    far, near = ([f"{place}/{name}" for name in ("empty", "part-1")] for place in (f"{nginx.url}/near", root))
    assert digest(penstock.TFRecordDataset(far)) == digest(penstock.TFRecordDataset(near))
    # As of files of this machine, nothing but empty ones is taken for a mistake.
    for files in (far[:1], near[:1]):
        with pytest.raises(penstock.InvalidArgumentError, match="all 1 files are empty"):
            list(penstock.TFRecordDataset(files).batch(10))


@pytest.mark.parametrize(("named", "trusted", "message"), [
    ("localhost", True, None),
    ("other.example", True, "certificate does not hold"),
    ("localhost", False, "certificate does not hold"),
])  # fmt: skip
def test_fault_29_a_certificate_holds_for_its_name_and_authority_only(named, trusted, message, root, variables, tmp_path):
    certificate = make_certificate(tmp_path, named)
    folder = tmp_path / "nginx"
    folder.mkdir()
    server = lua_nginx.LuaNginx(folder, root, certificate=certificate, name="localhost")
    try:
        if trusted:
            variables.setenv("SSL_CERT_FILE", str(certificate[0]))
        if message is None:
            assert digest(all_parts(f"{server.url}/near")) == digest(all_parts(root))
        else:
            with pytest.raises(penstock.Error, match=message):
                list(penstock.TFRecordDataset(f"{server.url}/near/part-0").batch(10))
    finally:
        _daemon.stop_private_daemon()
        server.end()
