"""Cursors as a user has them: `penstock run --cursor-out FILE`, then `--resume FILE`, in another process, with other workers, elsewhere."""

import os
import pathlib
import re
import shutil
import zipfile

from programs import Penstock
import pytest

import penstock
import tfrecord_files

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
STEPS = 23
# Of the reference pipelines, small enough for passes of a few steps each.
BATCH_SIZES = {"chess": 50, "flowers": 3}


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    """Folders with the data of both pipelines: 417 positions in 3 shards, 8 photographs in one."""
    folder = tmp_path_factory.mktemp("data")
    made = Penstock(folder)("make-sample", "chess", "--records", 417, "--shards", 3, "--out", folder / "chess")
    assert made.code == 0, made
    (folder / "flowers").mkdir()
    shutil.copy(GOLDEN / "flowers.tfrecord", folder / "flowers")
    return folder


def spec_of(name, folder):
    text = (ROOT / "config" / "pipelines" / f"{name}.textproto").read_text()
    text, count = re.subn(r"batch_size: \d+", f"batch_size: {BATCH_SIZES[name]}", text)
    assert count == 1
    path = folder / f"{name}.textproto"
    path.write_text(text)
    return path


def files_in(folder):
    """The bytes of every array, by file and name. (A file also holds the time at which it was written.)"""
    found = {}
    for path in folder.iterdir():
        with zipfile.ZipFile(path) as arrays:
            found[path.name] = {name: arrays.read(name) for name in arrays.namelist()}
            assert found[path.name]
    return found


@pytest.fixture(scope="session")
def uninterrupted(shards, tmp_path_factory):
    """The files of STEPS steps of each pipeline."""
    steps = {}
    for name in BATCH_SIZES:
        folder = tmp_path_factory.mktemp(name)
        result = Penstock(folder)("run", spec_of(name, folder), "--files", shards / name / "*.tfrecord", "--steps", STEPS,
                                  "--workers", 1, "--out", "out")
        assert result.code == 0, result
        steps[name] = files_in(folder / "out")
        assert sorted(steps[name]) == [f"step-{step:06d}.npz" for step in range(STEPS)]
    return steps


def in_parts(penstock, name, data, cuts, workers):
    """The files of a run that was cut behind the steps `cuts`; part i reads the folder data(i)."""
    spec = spec_of(name, penstock.folder)
    done, resume = 0, []
    for part, end in enumerate([*cuts, STEPS]):
        result = penstock("run", spec, "--files", data(part) / "*.tfrecord", "--steps", end - done, "--workers", workers[part],
                          "--out", "out", "--cursor-out", f"cursor-{part}", *resume)
        assert result.code == 0, result
        done, resume = end, ["--resume", f"cursor-{part}"]
        assert len(list((penstock.folder / "out").iterdir())) == end
        assert (penstock.folder / f"cursor-{part}").stat().st_size <= 1024
    return files_in(penstock.folder / "out")


@pytest.mark.parametrize("name", BATCH_SIZES)
@pytest.mark.parametrize("cuts, workers", [((1,), (1, 4)), ((9,), (3, 1)), ((8, 17), (2, 5, 1)), ((STEPS - 1,), (4, 2))])
def test_a_resumed_run_writes_what_an_uninterrupted_one_does(penstock_command, shards, uninterrupted, name, cuts, workers):
    assert in_parts(penstock_command, name, lambda part: shards / name, cuts, workers) == uninterrupted[name]


@pytest.mark.parametrize("name", BATCH_SIZES)
def test_the_files_may_be_copied_elsewhere(penstock_command, shards, uninterrupted, name):
    def copied(part):
        folder = penstock_command.folder / f"place-{part}"
        shutil.copytree(shards / name, folder, copy_function=shutil.copyfile)
        return folder

    assert in_parts(penstock_command, name, copied, (5, 12), (2, 2, 2)) == uninterrupted[name]


BATCHES_LEFT_OUT = """
stage { range { stop: 90 } }
stage { batch { batch_size: 2 drop_remainder: true } }
stage { enumerate {} }
stage { shard { num_shards: 3 index: 2 } }
stage { batch { batch_size: 4 } }
"""


def test_cursors_behind_batches_that_are_left_out_are_the_same(penstock_command):
    (penstock_command.folder / "spec").write_text(BATCHES_LEFT_OUT)

    def cursor(name, *arguments):
        assert penstock_command("run", "spec", "--cursor-out", name, *arguments).code == 0
        return (penstock_command.folder / name).read_bytes()

    cursor("one", "--steps", 1)
    assert cursor("resumed", "--resume", "one", "--steps", 1) == cursor("straight", "--steps", 2)


def test_a_cursor_goes_through_links_and_pipes(penstock_command):
    folder = penstock_command.folder
    (folder / "spec").write_text(BATCHES_LEFT_OUT)
    (folder / "real").write_bytes(b"")
    (folder / "link").symlink_to("real")
    os.mkfifo(folder / "pipe")
    end = os.open(folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        for name in ("link", "pipe"):
            assert penstock_command("run", "spec", "--steps", 1, "--cursor-out", name).code == 0
        assert (folder / "link").is_symlink() and (folder / "pipe").is_fifo()
        assert os.read(end, 4096) == (folder / "real").read_bytes() != b""
    finally:
        os.close(end)


def test_a_shared_daemon_resumes_too(remote, shards, uninterrupted):
    assert in_parts(remote, "chess", lambda part: shards / "chess", (5, 12), (1, 2, 3)) == uninterrupted["chess"]
    assert "chess" not in remote("list").out


def lines(result):
    assert result.code == 0, result
    return result.out.splitlines()


def test_a_trainer_goes_on_from_its_checkpoint_in_another_daemon_s_pipeline(remote, daemon, tmp_path, counter):
    spec = counter(more="stage { repeat {} }")
    assert remote("create", spec, "--name", "whole").code == 0
    with penstock.attach("whole", socket=str(daemon.socket)) as loader:
        taken = [next(loader)["n"].copy() for _ in range(7)]
        checkpoint = loader.state_dict()
        ahead = [next(loader)["n"].copy() for _ in range(20)]
    assert len(taken) == 7 and checkpoint["step"] == 6
    (tmp_path / "checkpoint").write_bytes(checkpoint["cursor"])
    assert remote("create", spec, "--name", "rest", "--resume", "checkpoint", "--workers", 3).code == 0
    with penstock.attach("rest", socket=str(daemon.socket)) as loader:
        for step, expected in enumerate(ahead, 7):
            assert (next(loader)["n"] == expected).all()
            assert loader.state_dict()["step"] == step


def test_where_and_when_agree_with_the_batches(penstock_command, counter):
    spec = counter()
    where = lines(penstock_command("where", spec, "--step", 2, "--row", 3))
    assert len(where) == 1
    found = re.fullmatch(r"(.*counter\.tfrecord), record (\d+), offset (\d+) \(epoch 0\)", where[0])
    assert found, where
    when = lines(penstock_command("when", spec, "--file", "counter.tfrecord", "--offset", found[3]))
    assert when == ["epoch 0, step 2, row 3"]
    refuse(penstock_command("where", spec, "--step", 2000, "--row", 0), "OUT_OF_RANGE", "only")
    refuse(penstock_command("when", spec, "--file", "counter.tfrecord", "--offset", 1), "NOT_FOUND", "offset 1")


def test_the_last_cursor_of_a_stream_has_nothing_behind_it(penstock_command, counter):
    spec = counter(more="stage { repeat { count: 2 } }")
    every = lines(penstock_command("run", spec, "--cursor-out", "cursor"))
    assert len(every) == 22
    for _ in range(2):
        assert lines(penstock_command("run", spec, "--resume", "cursor")) == []
    assert lines(penstock_command("run", spec, "--steps", 21, "--cursor-out", "cursor")) == every[:21]
    assert lines(penstock_command("run", spec, "--resume", "cursor", "--steps", 9)) == every[21:]


def test_an_error_behind_a_cursor_stays_where_it_is(penstock_command, tmp_path, counter):
    spec = counter()
    records = [tfrecord_files.framed(tfrecord_files.example(n=n)) for n in range(42)]
    records[26] = records[26][:-1] + bytes([records[26][-1] ^ 1])
    (tmp_path / "counter.tfrecord").write_bytes(b"".join(records))
    whole = penstock_command("run", spec)
    assert whole.code == 1 and len(whole.out.splitlines()) == 6
    assert lines(penstock_command("run", spec, "--steps", 3, "--cursor-out", "cursor")) == whole.out.splitlines()[:3]
    rest = penstock_command("run", spec, "--resume", "cursor")
    assert (rest.code, rest.out.splitlines(), rest.err) == (1, whole.out.splitlines()[3:], whole.err)
    assert "record 26" in rest.err


def refuse(result, code, *parts):
    """Exit 1, nothing but one line."""
    assert result.code == 1, result
    assert result.out == "" and len(result.err.splitlines()) == 1, result
    assert code in result.err, result
    for part in parts:
        assert part in result.err, result


def test_bytes_that_are_no_cursor_are_refused(penstock_command, tmp_path, counter):
    spec = counter()
    assert penstock_command("run", spec, "--steps", 2, "--cursor-out", "cursor").code == 0
    cursor = (tmp_path / "cursor").read_bytes()
    for bad in [b"", b"x", cursor[:-1], cursor[:8], cursor + b"x", cursor[:20] + bytes([cursor[20] ^ 4]) + cursor[21:], b"\0" * 1024,
                b"PNSC" + b"y" * 5000, (tmp_path / "counter.tfrecord").read_bytes()]:
        (tmp_path / "bad").write_bytes(bad)
        refuse(penstock_command("run", spec, "--resume", "bad", "--out", "out"), "INVALID_ARGUMENT", "cursor")
    refuse(penstock_command("run", spec, "--resume", "none"), "NOT_FOUND", "none")
    refuse(penstock_command("run", spec, "--resume", "."), "", ".")


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda text: text.replace("batch_size: 4", "batch_size: 5"), "its batch size is 4, this pipeline's 5"),
        (lambda text: text.replace("seed: 3", "seed: 4"), "seeds differ"),
        # Drawn anew by each run.
        (lambda text: text.replace("seed: 3", ""), "seeds differ"),
        (lambda text: text.replace("buffer_size: 10", "buffer_size: 9"), "order ops"),
        (lambda text: text + "stage { take { count: 5 } }", "order ops"),
        (lambda text: text.replace("value: 2", "value: 3"), "work ops"),
    ],
)
def test_cursors_of_another_spec_are_refused(penstock_command, counter, change, reason):
    spec = counter(more="stage { repeat { count: 2 } }")
    text = spec.read_text().replace("stage { batch", "stage { shuffle { buffer_size: 10 seed: 3 } } stage { batch")
    assert change(text) != text
    spec.write_text(text)
    assert penstock_command("run", spec, "--steps", 2, "--cursor-out", "cursor").code == 0
    assert penstock_command("run", spec, "--resume", "cursor").code == 0
    spec.write_text(change(text))
    refuse(penstock_command("run", spec, "--resume", "cursor"), "FAILED_PRECONDITION", "another stream", reason)


def test_cursors_of_other_files_are_refused(penstock_command, tmp_path, counter):
    spec = counter()
    assert penstock_command("run", spec, "--steps", 2, "--cursor-out", "cursor").code == 0
    data = tmp_path / "counter.tfrecord"
    content = data.read_bytes()
    for change, reason in [(content + tfrecord_files.framed(b"more"), "other sizes"),
                           (tfrecord_files.framed(tfrecord_files.example(n=41)) + content[len(content) // 42:], "other bytes")]:
        data.write_bytes(change)
        if reason == "other bytes":
            assert len(change) == len(content)
        refuse(penstock_command("run", spec, "--resume", "cursor"), "FAILED_PRECONDITION", "another stream", reason)
    data.rename(tmp_path / "other.tfrecord")
    refuse(penstock_command("run", spec, "--resume", "cursor", "--files", "other.tfrecord"), "FAILED_PRECONDITION", "other names")


def test_no_cursor_is_written_where_there_was_no_batch(penstock_command, tmp_path, counter):
    result = penstock_command("run", counter(more="stage { skip { count: 99 } }"), "--cursor-out", "cursor")
    refuse(result, "OUT_OF_RANGE", "no batch")
    assert not (tmp_path / "cursor").exists()


def length(remote, daemon, spec, *options):
    assert remote("create", spec, "--name", "counted", *options).code == 0
    try:
        with penstock.attach("counted", socket=str(daemon.socket)) as loader:
            assert loader  # whatever its length
            return len(loader), sum(1 for _ in loader)
    finally:
        remote("delete", "counted")


def test_the_length_of_a_stream_is_the_number_of_its_steps(remote, daemon, counter, tmp_path):
    spec = counter(more="stage { repeat { count: 3 } }")
    assert remote("index", tmp_path / "counter.tfrecord").code == 0
    steps, taken = length(remote, daemon, spec)
    assert steps == taken > 0
    # A stream that goes on from a cursor has the same length, and fewer steps left.
    run = remote("run", spec, "--steps", 2, "--cursor-out", "two")
    assert run.code == 0, run
    assert length(remote, daemon, spec, "--resume", "two") == (steps, steps - 2)


def test_why_a_stream_has_no_length_is_said(remote, daemon, counter, tmp_path):
    def why(spec):
        assert remote("create", spec, "--name", "uncounted").code == 0
        with penstock.attach("uncounted", socket=str(daemon.socket)) as loader:
            with pytest.raises(TypeError) as error:
                len(loader)
        assert remote("delete", "uncounted").code == 0
        return str(error.value)

    assert "no end" in why(counter(more="stage { repeat {} }"))
    (tmp_path / "lines.txt").write_text("a\nb\n")
    text = tmp_path / "lines.textproto"
    text.write_text(f'stage {{ text_line {{ files: "{tmp_path}/lines.txt" }} }}')
    assert "penstock index" in why(text)
    assert remote("index", "--format", "text_line", tmp_path / "lines.txt").code == 0
    assert length(remote, daemon, text) == (2, 2)
    assert remote("make-sample", "chess", "--records", "300", "--out", tmp_path / "chess").code == 0
    records = tmp_path / "records.textproto"
    records.write_text(f'stage {{ tfrecord {{ files: "{tmp_path}/chess/*" }} }} stage {{ batch {{ batch_size: 7 }} }}')
    assert "penstock index" in why(records)
    assert remote("index", f"{tmp_path}/chess/*").code == 0
    assert length(remote, daemon, records) == (43, 43)


def test_a_cursor_of_other_work_ops_is_taken_on_request(penstock_command, tmp_path):
    spec = tmp_path / "work.textproto"

    def write(factor):
        spec.write_text(f"stage {{ range {{ stop: 20 }} }} stage {{ map {{ out: 'x = value * {factor}' }} }} stage {{ batch {{ batch_size: 4 }} }}")

    write(2)
    assert penstock_command("run", spec, "--steps", 2, "--cursor-out", "two").code == 0
    write(3)
    refused = penstock_command("run", spec, "--resume", "two")
    assert refused.code == 1 and "FAILED_PRECONDITION" in refused.err and "--allow-changed-work" in refused.err, refused
    taken = lines(penstock_command("run", spec, "--resume", "two", "--allow-changed-work"))
    assert taken == lines(penstock_command("run", spec))[2:]
