"""What is left out is told: as a warning, and by skipped() and stats()."""

import warnings

import penstock
import pytest
from penstock._running import _daemon
from penstock._epochs import EpochLoader

D = penstock.Dataset


def numbers(texts=("1", "x", "3", "y")):
    return D.from_tensor_slices(list(texts)).map(penstock.strings.to_number).ignore_errors()


def test_a_pass_warns_once_with_the_count_and_the_first_place():
    dataset = numbers()
    with pytest.warns(RuntimeWarning, match=r"left out \(ignore_errors, on_damage\): 2 elements, first of all: .*found \"x\"") as warned:
        assert [float(x) for x in dataset] == [1, 3]
        assert [float(x) for x in dataset] == [1, 3]
    assert len(warned) == 1 and warned[0].filename == __file__
    found = dataset.skipped()
    assert found.count == 2 and ['found "x"' in place["reason"] for place in found.places] == [True, False]
    assert [place["offset"] for place in found.places] == [1, 3]


def test_one_that_leaves_nothing_out_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dataset in (numbers("12"), D.range(3)):
            iterator = iter(dataset)
            list(iterator)
            assert iterator.skipped() == dataset.skipped() == (0, [])
        assert "left_out" not in iterator.stats()


@pytest.mark.filterwarnings("ignore:what was left out")
def test_an_iterator_tells_at_any_time():
    with iter(numbers()) as iterator:
        assert iterator.skipped().count in (0, 1, 2)
        list(iterator)
        assert iterator.skipped().count == iterator.stats()["left_out"] == 2
    assert iterator.skipped().count == iterator.stats()["left_out"] == 2


def test_a_loop_that_is_left_early_warns_too():
    dataset = numbers("x" * 50 + "1" + "y" * 3)
    with pytest.warns(RuntimeWarning, match="5[0-3] elements"):
        for _ in dataset:
            break


@pytest.mark.filterwarnings("ignore:what was left out")
def test_loaders_tell():
    loader = EpochLoader(numbers().batch(2), lambda array: array.tolist(), {})
    assert loader.skipped() == (0, [])
    assert [x for x in loader] == [[1, 3]]
    assert loader.skipped().count == 2
    path = _daemon.private_socket()
    with numbers().batch(2).loader(socket=path, name="skipping") as made:
        next(made)
        with penstock.attach("skipping", path) as attached:
            assert attached.skipped().count == 2
        served = EpochLoader("skipping", lambda array: array, {"socket": path})
        assert served.skipped().count == 2
        served.close()
    penstock._control.delete(path, "skipping")


def test_damage_is_told_with_its_file(tmp_path):
    with penstock.io.TFRecordWriter(tmp_path / "a") as writer:
        for i in range(3):
            writer.write(bytes([i]) * 10)
    data = bytearray((tmp_path / "a").read_bytes())
    data[26 + 12] ^= 1
    (tmp_path / "a").write_bytes(data)
    dataset = penstock.TFRecordDataset(tmp_path / "a", on_damage="skip_record")
    with pytest.warns(RuntimeWarning, match=rf"1 element, first of all: .* \({tmp_path}/a, offset 26\)"):
        assert len(list(dataset)) == 2
    ((_, (place,)),) = [dataset.skipped()]
    assert (place["file"], place["offset"], place["length"], place["epoch"]) == (str(tmp_path / "a"), 26, 26, 0)
