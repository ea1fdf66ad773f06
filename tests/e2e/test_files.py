"""What a spec's files are: by their names, in their order, few descriptors at a time, and never taken for what they were."""

import gzip
import os
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

import tfrecord_files
from programs import Daemon, Penstock, eventually, on_a_terminal, program

LINES = """
name: "lines"
stage {{ text_line {{ {files} {options} }} }}
stage {{ batch {{ batch_size: 100 }} }}
"""


def lines(folder, files, options="", more=""):
    spec = folder / "lines.textproto"
    spec.write_text(LINES.format(files=" ".join(f'files: "{file}"' for file in files), options=options) + more)
    return spec


def where(command, spec, row):
    result = command("where", spec, "--step", 0, "--row", row)
    assert result.code == 0, result
    return result.out


def test_a_path_that_is_there_is_no_glob(penstock_command, tmp_path):
    for name, text in (("fold[1].txt", "right"), ("fold1.txt", "wrong"), ("what?", "right"), ("whatX", "wrong")):
        (tmp_path / name).write_text(text + "\n")
    for name in ("fold[1].txt", "what?"):
        assert f"{tmp_path}/{name}" in where(penstock_command, lines(tmp_path, [name]), 0)
    (tmp_path / "fold[1].txt").unlink()
    assert f"{tmp_path}/fold1.txt" in where(penstock_command, lines(tmp_path, ["fold[1].txt"]), 0)


def test_a_list_of_files_keeps_its_order(penstock_command, tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name + "\n")
    spec = lines(tmp_path, ["c", "[ab]"])
    assert [where(penstock_command, spec, row).split(",")[0].rsplit("/", 1)[-1][:1] for row in range(3)] == ["c", "a", "b"]


def test_an_address_says_what_to_do(penstock_command, tmp_path):
    refused = penstock_command("validate", lines(tmp_path, ["hdfs://host/part-*"]))
    assert refused.code == 1
    assert "INVALID_ARGUMENT" in refused.err and "what others lead to can be mounted" in refused.err and "(hdfs://host/part-*)" in refused.err
    # Names below .invalid lead nowhere, by RFC 6761.
    unknown = penstock_command("validate", lines(tmp_path, ["http://host.invalid/part"]))
    assert unknown.code == 1 and "UNAVAILABLE: stage text_line: " in unknown.err and "(http://host.invalid/part)" in unknown.err


def test_zeros_behind_a_gzip_stream_are_an_error(penstock_command, tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n") + b"\0" * 512)
    failed = penstock_command("run", lines(tmp_path, ["a.gz"], 'compression: "GZIP"'))
    assert failed.code == 1
    assert "bytes behind the last member are no gzip member" in failed.err


def test_nothing_is_written_beside_data_below_data_roots(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "own"
    data.mkdir()
    for i in range(3):
        tfrecord_files.write(data / f"{i}.tfrecord", [tfrecord_files.example(n=n) for n in range(10)])
    spec = tmp_path / "spec.textproto"
    spec.write_text(f'name: "g" stage {{ tfrecord {{ files: "{data}/*.tfrecord" }} }} stage {{ shuffle {{ global: true seed: 1 }} }} stage {{ batch {{ batch_size: 4 }} }}')
    config = tmp_path / "config.textproto"
    config.write_text(f'data_roots: "{data}"')
    before = sorted(data.iterdir())
    os.environ["PENSTOCK_CACHE_DIR"] = str(cache)
    try:
        daemon = Daemon(tmp_path / "run" / "rooted.sock", "--config", str(config))
    finally:
        del os.environ["PENSTOCK_CACHE_DIR"]
    try:
        command = Penstock(tmp_path, daemon.socket)
        # Not by the command, which indexes as whoever calls it.
        assert command("where", spec, "--step", 0, "--row", 0).code == 0
        assert sorted(data.iterdir()) == before
        assert len(list((cache / "index").iterdir())) == 3
    finally:
        daemon.stop()


@pytest.mark.parametrize("limit", [128, 256])
def test_thousands_of_shards_and_few_descriptors(tmp_path, limit):
    (tmp_path / "shards").mkdir()
    for i in range(3000):
        tfrecord_files.write(tmp_path / "shards" / f"{i:04d}", [b"x"])
    spec = tmp_path / "spec.textproto"
    spec.write_text('name: "many" stage { tfrecord { files: "shards/*" } } stage { batch { batch_size: 1000 } }')

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    daemon = Daemon(tmp_path / "run" / "few.sock", limits=few)
    try:
        result = Penstock(tmp_path, daemon.socket)("run", spec)
        assert result.code == 0, result
        assert len(result.out.splitlines()) == 3, result
    finally:
        daemon.stop()


def test_each_reader_keeps_the_order_of_a_list_of_files(tmp_path):
    """As in tf.data; a glob expands in the byte order of the paths."""
    import penstock

    readers = {
        "tfrecord": (lambda names: penstock.TFRecordDataset(names), lambda path, text: tfrecord_files.write(path, [text])),
        "text": (lambda names: penstock.TextLineDataset(names), lambda path, text: path.write_bytes(text + b"\n")),
        "fixed": (lambda names: penstock.FixedLengthRecordDataset(names, 3), lambda path, text: path.write_bytes(text)),
    }
    for kind, (read, write) in readers.items():
        names = [tmp_path / f"{letter}.{kind}" for letter in "cab"]
        for name in names:
            write(name, name.name[0].encode() * 3)
        # As they are, and where a pass is longer than one file at a time.
        for dataset in (read([str(name) for name in names]), read([str(name) for name in names]).repeat(2).take(3)):
            assert [bytes(np.asarray(x).item()) for x in dataset] == [b"ccc", b"aaa", b"bbb"], kind
        assert [bytes(np.asarray(x).item()) for x in read(str(tmp_path / f"*.{kind}"))] == [b"aaa", b"bbb", b"ccc"], kind


MANY = """
import sys
import penstock
dataset = penstock.TFRecordDataset(sys.argv[1] + "/*").shuffle(500, seed=1).batch(1000)
print([len(batch) for batch in dataset])
"""


def run_within(limit, folder):
    """A Python with so many descriptors, and a daemon of its own, which has as many."""
    return subprocess.run([sys.executable, "-c", MANY, folder], capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))


def test_fault_60_python_reads_many_shards_with_few_descriptors(tmp_path):
    (tmp_path / "shards").mkdir()
    for i in range(3000):
        tfrecord_files.write(tmp_path / "shards" / f"{i:04d}", [b"x"])
    done = run_within(128, tmp_path / "shards")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1000, 1000, 1000]\n"
    done = run_within(20, tmp_path / "shards")
    assert done.returncode != 0
    assert "descriptors" in done.stderr, done.stderr


def test_whole_files_count_as_read(daemon, tmp_path):
    (tmp_path / "whole").mkdir()
    for i in range(8):
        (tmp_path / "whole" / str(i)).write_bytes(b"x" * 100_000)
    command = Penstock(tmp_path, daemon.socket)
    spec = tmp_path / "spec.textproto"
    spec.write_text('name: "whole" stage { files { files: "whole/*" } } stage { repeat {} } stage { batch { batch_size: 4 } }')
    assert command("create", spec).code == 0
    # Three slots and what is ahead of them are filled without a consumer.
    eventually(lambda: re.search(r'"bytes_read": ?"?[1-9]\d{5}', command("top", "whole", "--json", "--count", "1").out))


@pytest.mark.parametrize("words", [("where", "--step", "0", "--row", "0"), ("when", "--file", "lines", "--offset", "0"), ("run", "--step", "0"),
                                   ("run", "--resume", "cursor")])
def test_what_is_asked_of_a_step_needs_seeds(penstock_command, tmp_path, words):
    (tmp_path / "a").write_text("one\ntwo\n")
    shuffled = 'stage { name: "mix" shuffle { buffer_size: 2 SEED } }'
    spec = tmp_path / "open.textproto"
    if words[0] == "when":
        words = ("when", "--file", str(tmp_path / "a"), "--offset", "0")

    def ask(seed, draw):
        spec.write_text(
            f'name: "open" stage {{ text_line {{ files: "{tmp_path}/a" }} }} stage {{ name: "mix" shuffle {{ buffer_size: 2 {seed} }} }} '
            f'stage {{ name: "draw" map {{ out: "u = random_uniform([2]{draw})" }} }} stage {{ batch {{ batch_size: 2 }} }}')
        return penstock_command(words[0], spec, *words[1:])

    if "--resume" in words:
        asked, words = words, ("run", "--steps", "1", "--cursor-out", "cursor")
        assert ask("seed: 1", ", seed=1").code == 0
        words = asked
    refused = ask("", ", seed=1")
    assert refused.code == 1 and "stage mix: seed: expected a number, found none" in refused.err, refused
    refused = ask("seed: 1", "")
    assert refused.code == 1 and 'stage draw: out: "u = random_uniform([2])": seed: expected a number' in refused.err, refused
    assert ask("seed: 1", ", seed=1").code == 0


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    """Neither from names of files nor from words that a shell has expanded; a pipe gets them as they are."""
    name = "a\x1b[2Jb"
    (tmp_path / name).write_bytes(b"no record")
    for words in (["index", name], ["write", "out", "--files", name + "*none"], [name]):
        words = [str(program("penstock")), *words]
        drawn = on_a_terminal(words, cwd=tmp_path)
        assert drawn.returncode != 0
        assert "a\\x1b[2Jb" in drawn.stderr and "\x1b[2J" not in drawn.stderr
        piped = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert name in piped.stderr


def test_control_characters_of_what_a_command_prints_do_not_reach_the_terminal(daemon, tmp_path):
    """Of names of files in answers, on stdout: `where`, `verify`, and `list` of a pipeline that has failed."""
    name = "a\x1b[2Jb"
    tfrecord_files.write(tmp_path / name, [b"one", b"two"])
    command = Penstock(tmp_path, daemon.socket)
    spec = tmp_path / "spec.textproto"
    spec.write_text('name: "odd" stage { tfrecord { files: "a*b" } } stage { parse_example { feature { key: "n" int64 {} } } } '
                    'stage { batch { batch_size: 1 } }')
    assert command("create", spec).code == 0
    eventually(lambda: "failed" in command("list").out)
    shown = set()
    for words in (["where", spec, "--step", "0", "--row", "0"], ["verify", name], ["list"], ["get", "odd"], ["explain", "odd"]):
        words = command.command(*words)
        options = {"cwd": tmp_path, "env": command.environment}
        drawn = on_a_terminal(["sh", "-c", 'exec "$@" >&2', "sh", *words], **options)
        piped = subprocess.run(words, capture_output=True, text=True, **options)
        assert "\x1b[2J" not in drawn.stderr, words
        if name in piped.stdout:
            shown.add(words[3])
        if name in piped.stdout or words[3] == "verify":
            assert "a\\x1b[2Jb" in drawn.stderr, words
    assert shown >= {"where", "explain"}, shown
