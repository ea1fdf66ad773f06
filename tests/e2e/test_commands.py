"""The `penstock` command: what it prints, writes and returns."""

import pathlib
import re
import signal
import subprocess
import tomllib

import numpy
import pytest

from programs import Penstock, program
from tfrecord_files import crc32c


def test_the_life_of_a_pipeline(remote, counter):
    spec = counter(more="stage { repeat {} }")
    # Its seed is drawn at creation and shown by get.
    spec.write_text(spec.read_text().replace("stage { batch", "stage { shuffle { buffer_size: 10 } } stage { batch"))
    created = remote("create", spec)
    assert created.code == 0, created
    assert re.search(r"^n +int64 +\(\?,\)$", created.out, re.M), created
    assert re.search(r"^x +float32 +\(\?,\)$", created.out, re.M), created
    listed = remote("list")
    assert re.search(r"^counter +running +\d+\S* +\d+ +8 ", listed.out, re.M), listed
    got = remote("get", "counter")
    assert re.search(r"seed: \d+", got.out), got
    stats = remote("stats", "counter", "--interval", "0")
    assert stats.code == 0, stats
    assert "no consumers" in stats.out
    assert re.search(r"^bottleneck: ", stats.out, re.M), stats
    again = remote("create", spec)
    assert again.code == 1
    assert 'ALREADY_EXISTS: a pipeline "counter" exists' in again.err
    assert remote("delete", "counter").code == 0
    gone = remote("get", "counter")
    assert gone.code == 1
    assert "NOT_FOUND" in gone.err


def test_a_ring_is_full_for_no_more_than_all_of_the_time(remote, counter):
    assert remote("create", counter()).code == 0
    # A wait that ends in a short interval has begun before it.
    for _ in range(20):
        stats = remote("stats", "counter", "--interval", "0.02")
        assert float(re.search(r"^slot wait +([\d.]+) % of the time$", stats.out, re.M)[1]) <= 100, stats


def test_get_prints_a_spec_that_can_be_created(remote, counter, tmp_path):
    assert remote("create", counter()).code == 0
    (tmp_path / "got.textproto").write_text(remote("get", "counter").out)
    result = remote("create", "got.textproto", "--name", "again")
    assert result.code == 0, result


def test_run_writes_what_numpy_reads(penstock_command, counter, tmp_path):
    result = penstock_command("run", counter(), "--out", "out")
    assert result.code == 0, result
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == [f"step-{step:06d}.npz" for step in range(11)]
    rows = []
    for name in files:
        with numpy.load(tmp_path / "out" / name) as arrays:
            assert sorted(arrays) == ["n", "x"]
            assert arrays["n"].dtype == numpy.int64
            assert arrays["x"].dtype == numpy.float32
            numpy.testing.assert_array_equal(arrays["x"], 2 * arrays["n"])
            rows.extend(arrays["n"])
    assert rows == list(range(42))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_run_prints_a_line_a_batch(penstock_command, counter):
    result = penstock_command("run", counter(), "--steps", "2")
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert len(lines) == 2
    n = numpy.arange(4, 8, dtype=numpy.int64)
    x = (2 * n).astype(numpy.float32)
    assert lines[1] == (f"step 1  epoch 0  n int64 (4,) crc32c={crc32c(n.tobytes()):08x}"
                        f"  x float32 (4,) crc32c={crc32c(x.tobytes()):08x}")


def test_run_of_fewer_and_more_steps(penstock_command, counter):
    assert len(penstock_command("run", counter(), "--steps", "3").out.splitlines()) == 3
    longer = penstock_command("run", counter(), "--steps", "1000")
    assert longer.code == 0
    assert len(longer.out.splitlines()) == 11


def test_run_of_an_endless_stream_needs_steps(penstock_command, counter):
    spec = counter(more="stage { repeat {} }")
    result = penstock_command("run", spec)
    assert result.code == 2
    assert "--steps N" in result.err
    assert len(penstock_command("run", spec, "--steps", "30").out.splitlines()) == 30


def test_run_in_a_shared_daemon_deletes_its_pipeline(remote, counter):
    assert len(remote("run", counter(), "--steps", "2").out.splitlines()) == 2
    assert "run-" not in remote("list").out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_that_a_signal_ends_takes_its_pipeline_along(remote, counter, number):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("who started these tests has it ignored, and so has the program")
    with remote.start("run", counter(more="stage { repeat {} }"), "--steps", "1000000000") as process:
        process.stdout.readline()
        assert "run-" in remote("list").out
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == -number
    assert "run-" not in remote("list").out


def test_run_whose_reader_goes_takes_its_pipeline_along(remote, counter):
    with remote.start("run", counter(more="stage { repeat {} }"), "--steps", "1000000000") as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0, process.stderr.read()
    assert "run-" not in remote("list").out


def test_workers_do_not_change_the_bytes(penstock_command, counter):
    spec = counter(records=3000)
    outputs = {penstock_command("run", spec, "--workers", workers).out for workers in (1, 2, 8)}
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 750


def test_files_and_constants_are_overridden(penstock_command, counter, tmp_path):
    spec = counter()
    counter("other", records=3)
    plain = penstock_command("run", spec, "--files", "other.tfrecord", "--set", "K=3", "--out", "a")
    assert plain.code == 0, plain
    named = penstock_command("run", spec, "--files", "tfrecord=oth*.tfrecord", "--set", "map.K=3", "--out", "b")
    assert named.code == 0, named
    for folder in "ab":
        with numpy.load(tmp_path / folder / "step-000000.npz") as arrays:
            numpy.testing.assert_array_equal(arrays["x"], [0, 3, 6])


def test_an_ambiguous_override_lists_the_stages(penstock_command, counter):
    spec = counter(more='stage { name: "late" map { constant { name: "K" value: 1 } out: "y = x * K" } }')
    result = penstock_command("validate", spec, "--set", "K=3")
    assert result.code == 1
    assert 'several stages have a constant "K": map, late; name one: STAGE.K=3' in result.err
    assert penstock_command("validate", spec, "--set", "late.K=3").code == 0


def test_validate_prints_the_signature(penstock_command, counter, tmp_path):
    result = penstock_command("validate", counter())
    assert result.code == 0, result
    assert result.out == ("n  int64     (?,)\nx  float32   (?,)\n"
                          "cursor: seek: about 100 bytes, resumed in the same time at any step\n")
    assert list((tmp_path / "tmp").iterdir()) == []


# What stands behind the source and its parse_example, the class of the cursor, and what validate says that a resume costs.
CLASSES = {
    "nothing": ("", "seek", "resumed in the same time at any step"),
    "values decide, and nothing waits": ('stage { filter { predicate: "n > 3" } }', "seek", "resumed in the same time at any step"),
    "a buffer": ("stage { shuffle { buffer_size: 10 seed: 1 } }", "replay order", "no record is parsed for it"),
    "a buffer behind values": ('stage { filter { predicate: "n > 3" } } stage { shuffle { buffer_size: 10 seed: 1 } }', "replay data",
                               "read and computed again up to the cursor, at most 1260 bytes of files"),
    "what was seen": ('stage { map { out: "n = n" } } stage { unique {} }', "replay data", "at most 1260 bytes of files"),
}


@pytest.mark.parametrize("case", CLASSES)
def test_validate_prints_the_class_of_the_cursor(penstock_command, counter, tmp_path, case):
    behind, name, cost = CLASSES[case]
    counter()
    spec = tmp_path / "classes.textproto"
    spec.write_text('name: "c" stage { tfrecord { files: "counter.tfrecord" } } stage { parse_example { feature { key: "n" int64 {} } } } '
                    f"{behind} stage {{ batch {{ batch_size: 4 }} }}")
    result = penstock_command("validate", spec)
    assert result.code == 0, result
    last = result.out.splitlines()[-1]
    assert last.startswith(f"cursor: {name}: about 100 bytes") and last.endswith(cost), last


@pytest.mark.parametrize("words", [
    [],
    ["no-such-command"],
    ["run"],
    ["run", "SPEC", "--steps", "0"],
    ["run", "SPEC", "--steps", "x"],
    ["run", "SPEC", "--workers", "-1"],
    ["run", "SPEC", "--set", "K"],
    ["validate", "SPEC", "--no-such-flag"],
    ["list", "too", "many"],
])
def test_usage_errors(penstock_command, counter, words):
    spec = counter()
    result = penstock_command(*[spec if word == "SPEC" else word for word in words])
    assert result.code == 2, result
    assert result.err


@pytest.mark.parametrize("words, name, least, most", [
    (["update", "p", "--at-step"], "--at-step", 0, 2**64 - 1),
    (["update", "p", "--skip"], "--skip", 0, 2**64 - 1),
    (["run", "SPEC", "--row"], "--row", 0, 2**32 - 1),
    (["make-sample", "chess", "--out", "x", "--records"], "--records", -(2**63), 2**63 - 1),
])
def test_numbers_are_decimal_and_in_range(penstock_command, counter, words, name, least, most):
    spec = counter()
    for number in (least - 1, most + 1, "0x10", "1e3", "7k", ""):
        result = penstock_command(*[spec if word == "SPEC" else word for word in words], number)
        assert result.code == 2 and f"{name}: expected an integer from {least} to {most}, found {number}" in result.err, result


def test_a_number_with_zeros_in_front_is_decimal(penstock_command, counter):
    assert len(penstock_command("run", counter(), "--steps", "010").out.splitlines()) == 10


def test_help_is_no_error(penstock_command):
    for words in (["--help"], ["run", "--help"]):
        result = penstock_command(*words)
        assert result.code == 0
        assert "Usage:" in result.out


def test_help_is_a_word_too_and_an_unknown_one_names_the_nearest(penstock_command):
    for words in (["help"], ["help", "run"]):
        asked = penstock_command(*words)
        assert asked.code == 0 and asked.out == penstock_command(*words[1:], "--help").out
    done = penstock_command("valdate")
    assert done.code == 2 and 'unknown word: valdate, did you mean "validate"?' in done.err


@pytest.mark.parametrize("words, hint", [
    (["list", "--jsn"], 'unknown option: --jsn, did you mean "--json"?'), (["run", "SPEC", "--stepps=3"], 'unknown option: --stepps, did you mean "--steps"?'),
    (["--sokcet", "/tmp/s", "list"], 'unknown option: --sokcet, did you mean "--socket"?'), (["list", "--nothing-like-it"], None)])
def test_an_unknown_option_names_the_nearest(penstock_command, words, hint):
    done = penstock_command(*words)
    assert done.code == 2
    assert hint in done.err if hint else "did you mean" not in done.err, done


@pytest.mark.parametrize("name", ["penstock", "penstockd", "penstock-samples"])
def test_the_release_of_every_program_is_the_packages(name):
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    done = subprocess.run([program(name), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{name} {project['version']}\n"


@pytest.mark.parametrize("words", [("list",), ("get", "counter"), ("history", "counter"), ("explain", "counter"),
                                   ("stats", "counter", "--interval", "0"), ("top", "--count", "1"), ("events",),
                                   ("--help",)])
def test_what_cannot_be_written_is_an_error(daemon, tmp_path, counter, words):
    penstock = Penstock(tmp_path, daemon.socket)
    assert penstock("create", counter("counter")).code == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(penstock.command(*words), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "penstock: cannot write to stdout\n"


def test_an_empty_file_is_no_history(penstock_command, tmp_path, counter):
    (tmp_path / "history").touch()
    done = penstock_command("run", counter("counter"), "--history", "history")
    assert done.code == 1
    assert "an empty file is no history" in done.err
