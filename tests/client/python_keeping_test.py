"""Elements that are kept: caches, snapshots, what is saved and loaded, and its shards."""

import os

import numpy as np
import pytest

import penstock


def test_a_cache_is_one_pass_of_what_stands_before():
    dataset = penstock.Dataset.range(40).shuffle(40, seed=1).cache().repeat(2).batch(40)
    first, second = [batch.tolist() for batch in dataset]
    assert first == second and sorted(first) == list(range(40)) != first


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_a_cache_in_a_file_is_for_later_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for keep in (lambda d: d.cache("kept"), lambda d: d.snapshot("shot")):
        dataset = keep(penstock.Dataset.range(40).shuffle(40, seed=1)).batch(40)
        first, second = [list(dataset)[0].tolist() for _ in range(2)]
        assert first == second and sorted(first) == list(range(40)) != first
    for folder in ("kept", "shot"):
        (path,) = (tmp_path / folder).iterdir()
        assert path.suffix == ".penstock-elements"
    limited = penstock.Dataset.range(40).cache(tmp_path / "limited", max_bytes=0)
    assert list(limited) == list(range(40)) and not list((tmp_path / "limited").iterdir())
    with pytest.raises(penstock.UnimplementedError, match="compressed snapshot"):
        penstock.Dataset.range(3).snapshot("folder", compression="GZIP")
    with pytest.raises(penstock.UnimplementedError, match="shard_func"):
        penstock.Dataset.range(3).snapshot("folder", shard_func=lambda x: x)


def test_a_dataset_is_saved_and_loaded(tmp_path):
    dataset = penstock.Dataset.range(30).map(lambda x: {"x": (x, np.float32(2) * x), "y": x > 5})
    assert dataset.save(tmp_path / "saved") is None
    loaded = penstock.Dataset.load(tmp_path / "saved")
    assert loaded.element_spec == dataset.element_spec and len(loaded) == 30
    assert [int(element["x"][0]) for element in loaded] == list(range(30))
    shuffled = [int(element["x"][0]) for element in loaded.global_shuffle(seed=1)]
    assert sorted(shuffled) == list(range(30)) != shuffled
    ragged = penstock.Dataset.range(10).batch(4)
    ragged.save(str(tmp_path / "saved"))
    assert [batch.tolist() for batch in penstock.Dataset.load(str(tmp_path / "saved"))] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(penstock.NotFoundError, match="elements.penstock-elements"):
        list(penstock.Dataset.load(tmp_path / "nothing"))
    with pytest.raises(penstock.UnimplementedError, match="checkpoint_args"):
        dataset.save(tmp_path / "saved", checkpoint_args={"directory": "here"})


def test_a_reader_func_makes_a_dataset_of_the_only_shard(tmp_path):
    penstock.Dataset.range(5).save(tmp_path / "saved")
    readers = {
        "in turns": (lambda d: d.shuffle(9).interleave(lambda x: x, num_parallel_calls=4), [0, 1, 2, 3, 4]),
        "flat": (lambda d: d.prefetch(1).flat_map(lambda x: x.take(2).repeat(2)), [0, 1, 0, 1]),
        "mapped": (lambda d: d.map(lambda x: x.skip(3)).flat_map(lambda x: x), [3, 4]),
    }
    for name, (reader, expected) in readers.items():
        assert list(penstock.Dataset.load(tmp_path / "saved", reader_func=reader)) == expected, name
        assert list(penstock.Dataset.range(5).snapshot(tmp_path / "shot", reader_func=reader)) == expected, name
    with pytest.raises(TypeError, match="reader_func returns a Dataset, not Shards"):
        penstock.Dataset.load(tmp_path / "saved", reader_func=lambda d: d.shuffle(2))
    with pytest.raises(TypeError, match="interleave or flat_map returns a Dataset, not int"):
        penstock.Dataset.load(tmp_path / "saved", reader_func=lambda d: d.interleave(lambda x: 3))
    with pytest.raises(AttributeError, match="shards have no 'batch'"):
        penstock.Dataset.load(tmp_path / "saved", reader_func=lambda d: d.batch(2))


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_shards_are_found_in_one_file(tmp_path):
    numbers = penstock.Dataset.range(100)
    numbers.save(tmp_path / "s", shard_func=lambda x: (x % 10) ** 2)
    load = penstock.Dataset.load
    # As they were saved, whatever their shards.
    assert [int(x) for x in load(tmp_path / "s")] == list(range(100)) and len(load(tmp_path / "s")) == 100
    seen = []
    whole = load(tmp_path / "s", reader_func=lambda shards: seen.append(shards.cardinality()) or shards.flat_map(lambda x: x))
    assert [int(x) for x in whole] == sorted(range(100), key=lambda x: (x % 10, x)) and seen == [10]
    assert len(whole) == 100
    shuffled = load(tmp_path / "s", reader_func=lambda shards: shards.shuffle(10, seed=1).flat_map(lambda x: x.shuffle(10, seed=2)))
    found = [int(x) for x in shuffled]
    assert sorted(found) == list(range(100)) and [x % 10 for x in found[::10]] != list(range(10))
    assert all(len({x % 10 for x in found[i : i + 10]}) == 1 for i in range(0, 100, 10))
    # Turns in blocks need lengths.
    turns = load(tmp_path / "s", reader_func=lambda s: s.interleave(lambda x: x.take(3), cycle_length=4, block_length=2))
    assert [int(x) for x in turns][:8] == [0, 10, 1, 11, 2, 12, 3, 13]
    with pytest.raises(ValueError, match="lengths are known"):
        load(tmp_path / "s", reader_func=lambda s: s.interleave(lambda x: x.filter(lambda y: y > 3), cycle_length=4))
    filtered = load(tmp_path / "s", reader_func=lambda s: s.interleave(lambda x: x.filter(lambda y: y > 89), cycle_length=10))
    assert [int(x) for x in filtered] == list(range(90, 100))
    # What one saves without shards has none, and the other way round.
    numbers.save(tmp_path / "s", compression="GZIP")
    assert [int(x) for x in load(tmp_path / "s", reader_func=lambda s: s.interleave(lambda x: x))] == list(range(100))
    for shard in (-1, 1 << 32):
        with pytest.raises(penstock.InvalidArgumentError, match=f"number of a shard: expected 0 to 4294967295, found {shard}"):
            numbers.save(tmp_path / "s", shard_func=lambda x, shard=shard: np.where(x < 50, x, shard))
    assert [int(x) for x in load(tmp_path / "s")] == list(range(100))
    numbers.take(0).save(tmp_path / "s", shard_func=lambda x: x)
    assert list(load(tmp_path / "s", reader_func=lambda s: s.flat_map(lambda x: x))) == []
    with pytest.raises(penstock.InvalidArgumentError, match="int64 scalar"):
        numbers.save(tmp_path / "s", shard_func=lambda x: x.astype(np.float32))


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_what_is_saved_compressed_is_smaller_and_the_same(tmp_path):
    dataset = penstock.Dataset.range(300).map(
        lambda x: {"x": np.zeros((100, 20), np.float32) + x, "s": x}
    )
    dataset.save(tmp_path / "plain")
    dataset.save(tmp_path / "packed", compression="GZIP")
    sizes = [os.path.getsize(tmp_path / name / "elements.penstock-elements") for name in ("plain", "packed")]
    assert sizes[1] < sizes[0] / 20
    loaded = penstock.Dataset.load(tmp_path / "packed")
    assert loaded.element_spec == dataset.element_spec and len(loaded) == 300
    for found, wanted in zip(loaded.batch(7), dataset.batch(7)):
        for key in wanted:
            np.testing.assert_array_equal(found[key], wanted[key])
    permuted = [int(element["s"]) for element in loaded.global_shuffle(seed=3)]
    assert sorted(permuted) == list(range(300)) != permuted
    iterator = iter(loaded.batch(10))
    next(iterator)
    again = iter(loaded.batch(10))
    again.load_state_dict(iterator.state_dict())
    assert next(again)["s"].tolist() == list(range(10, 20))
    with pytest.raises(penstock.UnimplementedError, match="SNAPPY"):
        dataset.save(tmp_path / "packed", compression="SNAPPY")
    with pytest.raises(penstock.UnimplementedError, match="SNAPPY"):
        penstock.Dataset.load(tmp_path / "packed", compression="SNAPPY")
    # Damage has an address.
    path = tmp_path / "packed" / "elements.penstock-elements"
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(penstock.DataLossError, match=r"elements.penstock-elements, element \d+, offset \d+"):
        list(loaded)
