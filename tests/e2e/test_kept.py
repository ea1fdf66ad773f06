"""Caches in files: several daemons on one folder, one that is killed while it writes, and a disk that is too small."""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from programs import Daemon, Penstock, eventually

penstock = pytest.importorskip("penstock")

SPEC = """
name: "kept"
stage { range { stop: 6000 } }
stage { map { out: "n = value" out: "x = float32(value) + 0 * random_uniform([1000], seed=1)" } }
stage { cache { filename: "kept" } }
stage { batch { batch_size: 100 } }
ring { slots: 3 }
"""


class Host:
    """Daemons that share a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.spec = folder / "kept.textproto"
        self.spec.write_text(SPEC)
        self.kept = folder / "kept"
        self.daemons = []

    def start(self, *options):
        daemon = Daemon(self.folder / f"{len(self.daemons)}.sock", *options, keeps_state=False)
        assert daemon.is_ready
        self.daemons.append(daemon)
        return daemon

    def command(self, daemon, *words):
        return Penstock(self.folder, daemon.socket)(*words)

    def take(self, daemon):
        """All numbers, and whether all values were right."""
        assert self.command(daemon, "create", self.spec).code == 0
        numbers = []
        for batch in penstock.attach("kept", socket=daemon.socket):
            assert (batch["x"] == batch["n"][:, None]).all()
            numbers += batch["n"].tolist()
        return numbers

    def names(self):
        return sorted(path.suffix for path in self.kept.iterdir()) if self.kept.exists() else []

    def state(self, daemon):
        return self.command(daemon, "stats", "kept", "--interval", "0.1").out


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path)
    yield host
    for daemon in host.daemons:
        daemon.kill()


def test_fault_32_two_daemons_share_a_folder_and_one_is_killed_while_it_writes(host):
    writer = host.start()
    assert host.command(writer, "create", host.spec).code == 0
    held = iter(penstock.attach("kept", socket=writer.socket, reconnect=0))
    next(held)
    eventually(lambda: host.names() == [".partial"])
    # Its ring is full, and its file is not.
    other = host.start()
    assert host.take(other) == list(range(6000))
    assert host.names() == [".partial"]
    assert "computing" in host.state(other)

    writer.kill()
    third = host.start()
    assert host.take(third) == list(range(6000))
    assert host.names() == [".penstock-elements"]
    assert "keeps 6000 elements" in host.state(third) and "(whole)" in host.state(third)

    fourth = host.start()
    assert host.take(fourth) == list(range(6000))
    assert "6000 were taken from there" in host.state(fourth)
    assert host.names() == [".penstock-elements"]


def test_a_cache_is_listed_verified_and_cleared(host):
    daemon = host.start()
    host.take(daemon)
    listed = host.command(daemon, "cache", "list", host.kept)
    assert listed.code == 0 and "6000 elements" in listed.out and "n int64 (), x float32 (1000,)" in listed.out
    assert host.command(daemon, "cache", "verify", host.kept).code == 0
    (path,) = host.kept.iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    verified = host.command(daemon, "cache", "verify", host.kept)
    assert verified.code == 1 and "element 302" in verified.out
    assert host.command(daemon, "cache", "clear", host.kept).code == 0
    assert host.names() == []


# Fixed tensors go from the file's map into the batch, others by way of a copy.
SOURCES = {"numbers": 'stage { range { stop: 600 } } stage { map { out: "x = float32(value) + 0 * random_uniform([1000], seed=1)" } }',
           "strings": 'stage { text_line { files: "lines.txt" } } stage { map { out: "x = value" } }'}


@pytest.mark.parametrize("written", [True, False], ids=["by this run", "by an earlier one"])
@pytest.mark.parametrize("source", SOURCES)
def test_fault_31_a_bit_that_flips_between_two_passes_of_one_run_ends_its_stream(host, source, written):
    (host.folder / "lines.txt").write_text("".join(f"{n:0500}\n" for n in range(600)))
    host.spec.write_text(f"""
        name: "kept" ring {{ slots: 2 }}
        {SOURCES[source]} stage {{ cache {{ filename: "kept" }} }} stage {{ batch {{ batch_size: 100 }} }} stage {{ repeat {{}} }}""")
    daemon = host.start()

    def begin():
        assert host.command(daemon, "create", host.spec).code == 0
        return iter(penstock.attach("kept", socket=daemon.socket))

    loader = begin()
    first = [next(loader)["x"].tolist() for _ in range(6)]
    assert [next(loader)["x"].tolist() for _ in range(6)] == first
    assert host.names() == [".penstock-elements"]
    if not written:
        loader.close()
        assert host.command(daemon, "delete", "kept").code == 0
        loader = begin()
        # A pass in which each element is found to hold, and the beginning of the next one.
        assert [next(loader)["x"].tolist() for _ in range(8)] == first + first[:2]
    (path,) = host.kept.iterdir()
    with open(path, "r+b") as file:
        middle = path.stat().st_size // 2
        file.seek(middle)
        (byte,) = file.read(1)
        file.seek(middle)
        file.write(bytes([byte ^ 1]))
    taken = []
    with pytest.raises(penstock.DataLossError, match="a kept element no longer is what was written"):
        for batch in loader:
            taken.append(batch["x"].tolist())
            assert len(taken) < 20
    begin_at = 12 if written else 8
    assert taken == [first[(begin_at + i) % 6] for i in range(len(taken))]
    # Who begins anew finds that it does not hold, and computes.
    assert host.command(daemon, "delete", "kept").code == 0
    loader = begin()
    assert [next(loader)["x"].tolist() for _ in range(12)] == first + first


def test_fault_31_a_file_that_is_cut_ends_choices_that_it_keeps(host):
    """Zeros are there in the place of what was cut off, and zero is a choice."""
    host.spec.write_text("""
        name: "kept" ring { slots: 2 }
        stage { range { stop: 6000 } }
        stage { map { out: "value = value % 2" structure: "null" } }
        stage { cache { filename: "kept" } }
        stage { repeat {} }
        stage { choose_from_datasets { input { stage { counter {} } } input { stage { counter { start: 1000000 } } } } }
        stage { batch { batch_size: 100 } }""")
    daemon = host.start()
    assert host.command(daemon, "create", host.spec).code == 0
    loader = iter(penstock.attach("kept", socket=daemon.socket))
    # A pass that writes the file, and one that reads it.
    for _ in range(130):
        assert (next(loader) >= 1000000).sum() == 50
    (path,) = host.kept.iterdir()
    assert path.suffix == ".penstock-elements"
    os.truncate(path, 8192)
    with pytest.raises(penstock.DataLossError, match="choose_from_datasets: a kept element no longer is what was written"):
        for _ in range(200):
            assert (next(loader) >= 1000000).sum() == 50


def test_files_are_written_below_the_cache_roots_only(host, tmp_path):
    config = tmp_path / "config.textproto"
    (tmp_path / "roots").mkdir()
    config.write_text(f'data_roots: "{tmp_path}"\n')
    refused = host.command(host.start("--config", str(config)), "create", host.spec)
    assert refused.code == 1 and "no cache { roots }" in refused.err
    config.write_text(f'data_roots: "{tmp_path}"\ncache {{ roots: "{tmp_path}/roots" }}\n')
    daemon = host.start("--config", str(config))
    for folder in ("kept", "roots/../kept", "roots/link/kept"):
        (tmp_path / "roots" / "link").unlink(missing_ok=True)
        (tmp_path / "roots" / "link").symlink_to(tmp_path)
        host.spec.write_text(SPEC.replace('"kept" }', f'"{folder}" }}'))
        refused = host.command(daemon, "create", host.spec)
        assert refused.code == 1 and "cache.roots" in refused.err, folder
    host.spec.write_text(SPEC.replace('"kept" }', '"roots/deep/kept" }'))
    assert host.take(daemon) == list(range(6000))
    assert len(list((tmp_path / "roots/deep/kept").iterdir())) == 1
    # A limit over all files of a folder.
    config.write_text('cache { max_bytes: 3000000 }\n')
    limited = host.start("--config", str(config))
    host.spec.write_text(SPEC)
    assert host.take(limited) == list(range(6000))
    assert "(full)" in host.state(limited)
    assert sum(path.stat().st_size for path in host.kept.iterdir()) <= 3000000


ON_A_SMALL_DISK = """
    import json, os, pathlib, sys
    import numpy as np
    import penstock

    folder = pathlib.Path(sys.argv[1])
    elements = penstock.Dataset.range(64).map(lambda x: x.astype(np.float32) + np.zeros(16384, np.float32))
    kept = elements.cache(str(folder / "kept"))

    def take():
        values = []
        for element in kept:
            assert (element == element[0]).all()
            values.append(int(element[0]))
        return values

    passes = [take(), take()]
    files = {path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    disk = os.statvfs(folder)
    # A disk without any room at all.
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    passes += [take(), take()]
    print(json.dumps({"passes": passes, "files": files, "disk": disk.f_blocks * disk.f_frsize}))
"""


def test_fault_68_a_cache_that_a_disk_of_2_mb_has_no_room_for(tmp_path):
    """4 MB of elements: some are kept, the others are computed in each pass, and nothing fails."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(ON_A_SMALL_DISK))
    own_mounts = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=2m small "$1" && shift && exec "$@"', "sh", str(disk)]
    if subprocess.run([*own_mounts, "true"], capture_output=True).returncode != 0:
        pytest.skip("a disk can only be mounted by root")
    done = subprocess.run([*own_mounts, sys.executable, script, disk], capture_output=True, text=True, timeout=120, env=os.environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["disk"] == 2 << 20
    assert found["passes"] == [list(range(64))] * 4
    # One behind the other, each by a pass that found room.
    assert all(name.endswith(".penstock-elements") for name in found["files"]), found
    assert 1 << 20 < sum(found["files"].values()) < 2 << 20, found


def test_what_a_cache_has_given_is_counted_on_when_the_pipeline_changes(tmp_path, daemon):
    command = Penstock(tmp_path, daemon.socket)
    spec = tmp_path / "hits.textproto"
    spec.write_text("""
        name: "hits"
        stage { range { stop: 100 } } stage { cache {} }
        stage { map { constant { name: "K" value: 2 } out: "x = value * K" } }
        stage { batch { batch_size: 10 } } stage { repeat {} }""")
    assert command("create", spec).code == 0
    loader = penstock.attach("hits", socket=daemon.socket, timeout=60)

    def hits():
        return int(re.search(r"(\d+) were taken from there", command("stats", "hits", "--interval", "0").out)[1])

    for _ in range(200):
        next(loader)
    before = hits()
    assert before >= 1800
    assert command("update", "hits", "--set", "map.K=3").code == 0
    while next(loader)["x"][1] != 3:
        pass
    assert hits() >= before
