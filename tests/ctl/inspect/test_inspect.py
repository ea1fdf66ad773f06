"""`penstock inspect`: what it finds in files that TensorFlow has written, and what reads them by its word (tests/golden/make_inspect_goldens.py)."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import penstock
import pytest

PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve() / "penstock"
GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
WANT = json.loads((GOLDEN / "inspect.json").read_text())


def inspect(*arguments, cwd=None):
    return subprocess.run([PENSTOCK, "inspect", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


def looked(*arguments):
    done = inspect(*arguments)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def only(want, have):
    """What is in `have` of the keys of `want`."""
    return {key: only(value, have[key]) if isinstance(value, dict) else have[key] for key, value in want.items()}


@pytest.mark.parametrize("name", ["table", "table_gzip", "sequences"])
def test_what_is_found_is_what_tensorflow_finds(name):
    found = json.loads(looked(GOLDEN / f"inspect_{name}.tfrecord", "--json"))
    assert found["compression"] == ("GZIP" if name == "table_gzip" else "")
    assert found["features"].keys() == WANT[name]["features"].keys()
    assert found.get("feature_lists", {}).keys() == WANT[name].get("feature_lists", {}).keys()
    assert only(WANT[name], found) == WANT[name]


def run_python(text):
    space = {}
    exec(compile(text, "inspected", "exec"), space)  # noqa: S102
    return space


def flat(value):
    value = value.to_dense() if isinstance(value, penstock.SparseTensor) else value
    return [item.hex() for item in value.ravel()] if value.dtype == object else value.ravel().tolist()


def test_a_table_of_forty_columns_is_read_without_typing_it():
    text = looked(GOLDEN / "inspect_table.tfrecord", "--python")
    assert len(WANT["parsed"]) == 40
    made = run_python(text.replace(".batch(64)", ".batch(60)"))
    (batch,) = made["dataset"]
    assert {key: flat(value) for key, value in batch.items()} == WANT["parsed"]
    compressed = run_python(looked(GOLDEN / "inspect_table_gzip.tfrecord", "--python"))["dataset"]
    (twin,) = compressed
    assert {key: flat(value) for key, value in twin.items()} == WANT["parsed"]


def test_a_spec_gives_the_same_batches(tmp_path):
    spec = tmp_path / "table.textproto"
    spec.write_text(looked(GOLDEN / "inspect_table.tfrecord", "--spec"))
    done = subprocess.run([PENSTOCK, "run", spec, "--steps", "1", "--out", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").iterdir()
    batch = np.load(written)
    for key in ("c05", "f07", "age", "embedding", "label"):
        assert batch[key].ravel().tolist() == WANT["parsed"][key]


def test_sequences_are_parsed_behind_their_batch():
    made = run_python(looked(GOLDEN / "inspect_sequences.tfrecord", "--python"))
    ((context, lists, lengths),) = made["dataset"]
    assert context["id"].tolist() == list(range(60))
    assert lists["rating"].shape == (60, 5) and lists["place"].shape == (60, 5, 2)
    assert lengths["rating"].tolist() == [1 + row % 5 for row in range(60)]
    spec = looked(GOLDEN / "inspect_sequences.tfrecord", "--spec")
    assert 'sequence { key: "place" sequence { dtype: "int64" shape: 2 } }' in spec


def test_the_table_says_what_is_where():
    lines = {line.split()[0]: " ".join(line.split()) for line in looked(GOLDEN / "inspect_table.tfrecord").splitlines()[2:]}
    age, tags = WANT["table"]["features"]["age"], WANT["table"]["features"]["tags"]
    assert lines["FEATURE"] == "FEATURE TYPE PRESENT VALUES RANGE"
    assert lines["age"] == f"age int64 66.7 % 1 {age['least']} to {age['most']}"
    assert lines["tags"] == f"tags bytes 100 % 0 to 3 text, {tags['most_bytes']} bytes each"
    assert lines["picture"].startswith("picture bytes 100 % 1 PNG, ")
    assert lines["raw"].startswith("raw bytes 100 % 1 bytes, 32 bytes each")


def test_only_the_first_records_are_looked_at_unless_all_are_wanted(tmp_path):
    for i in range(6):
        shutil.copy(GOLDEN / "inspect_table.tfrecord", tmp_path / f"t-{i}-of-6.tfrecord")
    part = inspect("t-*", "--records", "10", cwd=tmp_path)
    assert part.returncode == 0 and "only the first 10 records of each file" in part.stderr
    assert part.stdout.startswith("60 records looked at, of 6 files\n")
    whole = inspect("t-*", "--all", "--spec", cwd=tmp_path)
    # Of many files a glob.
    assert whole.stderr == "" and 'files: "t-*-of-6.tfrecord" ' in whole.stdout


def test_what_is_no_example_is_named(tmp_path):
    with penstock.io.TFRecordWriter(tmp_path / "a") as writer:
        writer.write(penstock.io.serialize_example({"x": 1}))
        writer.write(b"\x89PNG\r\n\x1a\n")
    done = inspect("a", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("penstock inspect: no tf.train.Example: it ") and "(a, record 1, offset " in done.stderr and "8 bytes of PNG)" in done.stderr
    for words, said in [(["b"], 'no file matches "b"'), (["a", "--spec", "--json"], "excludes")]:
        done = inspect(*words, cwd=tmp_path)
        assert done.returncode in (1, 2) and said in done.stderr
    (tmp_path / "empty").write_bytes(b"")
    assert "the files hold no record" in inspect("empty", cwd=tmp_path).stderr


def test_features_that_nothing_can_read_are_said_to_be_so(tmp_path):
    with penstock.io.TFRecordWriter(tmp_path / "a") as writer:
        for x in (1, 2.5):
            writer.write(penstock.io.serialize_example({'q"\n': x, "y": 3}))
    python, spec = inspect("a", "--python", cwd=tmp_path).stdout, inspect("a", "--spec", cwd=tmp_path).stdout
    for text in (python, spec):
        assert "# \"q\\\"\\n\" is of several types (bytes in 0, float32 in 1, int64 in 1 records)" in text
    assert list(run_python(python)["features"]) == ["y"]
