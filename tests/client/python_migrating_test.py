"""docs/migrating.md: the examples of what it is here run, one after another, in a folder with the files that they read."""

import pathlib
import re
import sys

import numpy as np
import pytest

import penstock
from penstock import _epochs

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import tfrecord_files  # noqa: E402


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    for shard in range(2):
        examples = [
            tfrecord_files.example(id=5 * shard + i, weights=[i + 0.5, -1.0, 2.0], tags=[b"a"] * (i + 1)) for i in range(5)
        ]
        tfrecord_files.write(data / f"part-{shard}.tfrecord", examples)
    tokens = [tfrecord_files.example(ids=list(range(1, 3 + 2 * i))) for i in range(4)]
    (data / "text").mkdir()
    tfrecord_files.write(data / "text/tokens.tfrecord", tokens)
    (data / "table.csv").write_text("name,x,y\na,0.5,1\nb,1.5,2\nc,2.5,3\n")
    np.save(data / "x.npy", np.arange(60, dtype=np.uint8).reshape(10, 6))
    for name in ("cat", "dog"):
        (data / "photos" / name).mkdir(parents=True)
        (data / "photos" / name / "1.bin").write_bytes(name.encode())
    for name in ("ant", "cat", "dog"):
        (data / "photos" / f"{name}.jpg").write_bytes((ROOT / "tests/golden/images/rgb_420.jpg").read_bytes())
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_the_examples_run(folder):
    text = (ROOT / "docs/migrating.md").read_text()
    examples = re.findall(r"^```python is\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(examples) >= 10
    names = {}
    for example in examples:
        # The page's own line numbers, for tracing and for errors.
        first = text[: text.index(example)].count("\n")
        exec(compile("\n" * first + example, str(ROOT / "docs/migrating.md"), "exec"), names)  # noqa: S102


def test_a_column_that_never_changes_is_normalized_as_keras_does():
    """The row of Normalization. Keras' result of these is [0, 1] and [5e6, -1]."""
    (written,) = re.findall(r"^\| `Normalization\(.*` \| `(.*)` \|$", (ROOT / "docs/migrating.md").read_text(), flags=re.MULTILINE)
    names = {"np": np, "m": np.float32([1, 1.5]), "v": np.float32([0, 0.25])}
    rows = penstock.Dataset.from_tensor_slices(np.float32([[1, 2], [1.5, 1]])).map(lambda x: eval(written, {**names, "x": x}))
    np.testing.assert_allclose(np.stack(list(rows)), [[0, 1], [5e6, -1]], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_the_parts_of_a_split_are_disjoint_behind_other_shuffles():
    """The row of random_split: its dataset, and its parts."""
    (row,) = re.findall(r"^\| `random_split.*$", (ROOT / "docs/migrating.md").read_text(), flags=re.MULTILINE)
    made, train, held_out = re.findall(r"`(d = .*?|d\.\w+\(\w\))`", row)
    names = {"dataset": penstock.Dataset.range(10), "n": 7, "m": 3}
    exec(made, names)  # noqa: S102
    train, held_out = eval(train, names), eval(held_out, names)  # noqa: S307
    mixed = penstock.Dataset.zip(penstock.Dataset.range(7).shuffle(3, seed=5), train).map(lambda other, x: x)
    assert sorted(int(x) for part in (mixed, held_out) for x in part) == list(range(10))
    # Both parts in one dataset are of one order, too.
    assert sorted(int(x) for x in train.concatenate(held_out)) == list(range(10))


def test_the_arguments_of_a_data_loader_say_what_stands_for_them():
    options = dict(batch_size=4, shuffle=True, num_workers=2, drop_last=True, collate_fn=list, pin_memory=True, sampler=None)
    with pytest.raises(TypeError, match="arguments of torch's DataLoader") as error:
        _epochs.EpochLoader(penstock.Dataset.range(8), lambda array: array, dict(options))
    _, *rows = str(error.value).split("\n  ")
    assert [row.partition(":")[0] for row in rows] == list(options)
    assert rows[0] == "batch_size: dataset.batch(4)" and rows[1].startswith("shuffle: dataset.shuffle(n)") and "daemon's threads" in rows[2]
    # A pipeline's batches are taken in another size.
    with pytest.raises(TypeError, match="DataLoader; here .*:\n  shuffle: [^\n]*$"):
        _epochs.EpochLoader("numbers", lambda array: array, {"batch_size": 4, "shuffle": True, "socket": "none"})
    with pytest.raises(TypeError, match="arguments of penstock.attach, which a dataset does not take: replica"):
        _epochs.EpochLoader(penstock.Dataset.range(8), lambda array: array, {"replica": 1})
