"""How many elements there are: known, stated, filled up to."""

import gzip
import os
import subprocess

import numpy as np
import pytest

import penstock


@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize("remainder", [None, "drop", "pad", "wrap"])
def test_the_elements_of_batches_are_counted(remainder, size):
    for count in (0, 7, 12):
        batches = penstock.Dataset.range(count).batch(size, remainder=remainder)
        for dataset in (
            batches.unbatch(), batches.unbatch().batch(3), batches.rebatch(3), batches.rebatch([1, 3]),
            batches.rebatch([1, 3], drop_remainder=True), batches.rebatch(2, drop_remainder=True),
        ):  # fmt: skip
            assert len(dataset) == sum(1 for _ in dataset), dataset
    numbers = penstock.Dataset.range(9)
    assert numbers.repeat().batch(2).unbatch().cardinality() == penstock.INFINITE_CARDINALITY
    assert numbers.filter(lambda x: x > 1).batch(2).unbatch().cardinality() == penstock.UNKNOWN_CARDINALITY
    assert numbers.map(lambda x: x * np.ones(2)).take(0).unbatch().cardinality() == 0
    assert numbers.batch(2).take(2).unbatch().cardinality() == penstock.UNKNOWN_CARDINALITY


def test_cardinality_can_be_stated():
    kept = penstock.Dataset.range(10).filter(lambda x: x % 2 == 0)
    assert len(kept.assert_cardinality(5)) == 5 and len(list(kept.assert_cardinality(5))) == 5
    with pytest.raises(penstock.FailedPreconditionError, match="expected 6 elements, found 5"):
        list(kept.assert_cardinality(6))
    with pytest.raises(penstock.FailedPreconditionError, match="expected 4 elements, found more"):
        list(kept.apply(penstock.experimental.assert_cardinality(4)))
    padded = kept.map(lambda x: {"x": x}).pad_to_cardinality(7)
    assert [bool(element["valid"]) for element in padded] == [True] * 5 + [False] * 2
    with pytest.raises(ValueError, match="the dataset has 3 elements, more than 2"):
        penstock.Dataset.range(3).pad_to_cardinality(2)
    with pytest.raises(penstock.InvalidArgumentError, match="one element, found more"):
        kept.get_single_element()


def test_a_length_that_is_not_known_says_why(tmp_path):
    rows = penstock.Dataset.range(9)
    (tmp_path / "a").write_text("a line\n")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a line\n"))
    for dataset, why in [
        (rows.filter(lambda x: x > 3), "behind filter only the elements tell how many there are"),
        (rows.map(lambda x: x * 2).take_while(lambda x: x < 3).batch(2), "behind take_while only the elements tell"),
        (penstock.TextLineDataset(tmp_path / "a").map(lambda x: x), "the records have not been counted: `penstock index` "),
        (penstock.TextLineDataset(tmp_path / "a.gz", "GZIP").map(lambda x: x), "only reading tells: its files are compressed"),
    ]:
        with pytest.raises(TypeError, match=f"the dataset's length is unknown: {why}"):
            len(dataset)


def records(path, count):
    with penstock.io.TFRecordWriter(path) as writer:
        for i in range(count):
            writer.write(penstock.io.serialize_example({"x": i}))


def test_files_are_counted(tmp_path):
    for i in range(7):
        (tmp_path / f"{i}.bin").write_bytes(b"x")
    files = penstock.FilesDataset(tmp_path / "*.bin")
    assert len(files) == len(list(files)) == 7
    assert files.cardinality() == penstock.UNKNOWN_CARDINALITY  # as in tf.data, which asks nobody
    assert len(files.map(lambda x: x["bytes"]).batch(2)) == 4 and len(files.batch(2, drop_remainder=True).repeat(3)) == 9
    assert len(penstock.FilesDataset([tmp_path / "{1,3,x}.bin", tmp_path / "[5-9].bin"])) == 4
    assert len(penstock.Dataset.list_files(str(tmp_path / "*"), shuffle=False).take(5)) == 5
    with pytest.raises(penstock.NotFoundError, match="no file matches"):
        len(penstock.FilesDataset(tmp_path / "*.nothing"))


def test_records_are_counted_by_indices_that_are_there(tmp_path):
    for i in range(2):
        records(tmp_path / f"{i}.tfrecord", 10 + i)
    dataset = penstock.TFRecordDataset(tmp_path / "*.tfrecord").batch(4)
    with pytest.raises(TypeError, match=r"the records have not been counted: `penstock index` .*no index of .*; assert_cardinality\(n\) states it"):
        len(dataset)
    assert len(dataset.assert_cardinality(6)) == len(list(dataset)) == 6
    subprocess.run([os.path.join(os.environ["PENSTOCK_BIN"], "penstock"), "index", tmp_path / "0.tfrecord", tmp_path / "1.tfrecord"], check=True, stdout=subprocess.DEVNULL)
    assert len(dataset) == len(list(dataset)) == 6


def test_lines_are_counted_by_indices_and_records_of_one_length_without(tmp_path):
    (tmp_path / "lines").write_text("".join(f"line {i}\n" for i in range(30)))
    lines = penstock.TextLineDataset(tmp_path / "lines")
    command = [os.path.join(os.environ["PENSTOCK_BIN"], "penstock"), "index", "--format", "text_line", tmp_path / "lines"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert len(lines.batch(4)) == len(list(lines.batch(4))) == 8
    shuffled = [bytes(line) for line in lines.global_shuffle(seed=5)]
    assert sorted(shuffled) == sorted(bytes(line) for line in lines) and shuffled != [bytes(line) for line in lines]
    (tmp_path / "pieces").write_bytes(b"head" + bytes(range(100)))
    pieces = penstock.FixedLengthRecordDataset(tmp_path / "pieces", 10, header_bytes=4)
    assert len(pieces) == 10
    assert sorted(bytes(piece) for piece in pieces.global_shuffle(seed=6)) == [bytes(range(i, i + 10)) for i in range(0, 100, 10)]


def test_what_wants_a_length_has_it(tmp_path):
    """As tqdm and torch's OneCycleLR ask for one."""
    from penstock._epochs import EpochLoader

    for i in range(5):
        (tmp_path / f"{i}").write_bytes(b"x")
    loader = EpochLoader(penstock.FilesDataset(tmp_path / "*").map(lambda x: x["bytes"]).batch(2), lambda array: array, {})
    assert len(loader) == sum(1 for _ in loader) == 3

    def total_of(iterable):  # tqdm's
        try:
            return len(iterable)
        except (TypeError, AttributeError):
            return None

    assert total_of(loader) == 3
    assert total_of(penstock.TextLineDataset(tmp_path / "0")) is None
