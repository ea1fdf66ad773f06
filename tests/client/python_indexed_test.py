"""Dataset.from_python: objects that have a length and can be indexed."""

import collections
import dataclasses
import os
import sys
import types

import numpy as np
import penstock
import pytest

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Example:
    image: np.ndarray
    label: int
    parts: list


class Source:
    """`make` of each index."""

    def __init__(self, count, make):
        self.count = count
        self.make = make

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        assert type(index) is int
        return self.make(index)


def square(index):
    return index * index


def nested(index):
    return {"point": Point(np.float32(index), [np.zeros(2), np.full(3, index)]), "example": Example(np.full((2, 2), index), index, [np.int8(1), "text"]), "pair": (index, True)}


def as_numbers(elements):
    return [int(element) for element in elements]


def test_elements_in_order():
    dataset = penstock.Dataset.from_python(Source(30, square))
    assert len(dataset) == 30 and as_numbers(dataset) == [index * index for index in range(30)]
    assert dataset.element_spec.dtype == np.int64 and dataset.element_spec.shape == ()


@pytest.mark.parametrize("source", [[3, 1, 2], (3, 1, 2), np.array([3, 1, 2]), range(3, 9, 2)], ids=lambda source: type(source).__name__)
def test_what_python_can_index(source):
    assert as_numbers(penstock.Dataset.from_python(source)) == list(source)


def test_a_memmap_is_mapped_again(tmp_path):
    path = str(tmp_path / "rows.npy")
    np.save(path, np.arange(400_000, dtype=np.int32).reshape(1000, 400))
    rows = np.load(path, mmap_mode="r")
    dataset = penstock.Dataset.from_python(rows).skip(10).take(2)
    assert [row.tolist() for row in dataset] == rows[10:12].tolist()
    from penstock._loading import _parcel

    assert len(_parcel.pack(source=rows).text) < 1000 and not _parcel.pack(source=rows).beside
    # A part of one, and what was written privately, travel by value.
    copied = np.load(path, mmap_mode="c")
    copied[5] = 7
    (row,) = penstock.Dataset.from_python(copied[5:]).take(1)
    assert set(row.tolist()) == {7}


def test_order_is_that_of_indices():
    dataset = penstock.Dataset.from_python(Source(100, square))
    indices = penstock.Dataset.range(100)
    for change in (
        lambda d: d.shuffle(20, seed=3),
        lambda d: d.shard(3, 1).repeat(2),
        lambda d: d.skip(5).take(50).shuffle(10, seed=1),
        lambda d: d.shuffle(100, seed=2).repeat(2),
    ):
        assert as_numbers(change(dataset)) == [index * index for index in as_numbers(change(indices))]
        assert len(change(dataset)) == len(change(indices))
    assert sorted(as_numbers(dataset.global_shuffle(seed=1))) == as_numbers(dataset)
    assert as_numbers(dataset.global_shuffle(seed=1)) != as_numbers(dataset.global_shuffle(seed=2))
    with pytest.raises(ValueError, match="block_size"):
        dataset.global_shuffle(block_size=3)


def refuse_all_but_one(index):
    if index not in (0, 50, 99, 7):
        raise AssertionError("nobody is to ask")
    return index


def test_what_is_left_out_is_not_computed():
    dataset = penstock.Dataset.from_python(Source(100, refuse_all_but_one))
    assert as_numbers(dataset.skip(7).take(1)) == [7]
    assert sorted(as_numbers(dataset.shard(50, 0).shuffle(2, seed=1))) == [0, 50]


def test_structures_come_back():
    dataset = penstock.Dataset.from_python(Source(8, nested))
    for elements, rows in ((dataset, None), (dataset.shuffle(8, seed=1).batch(4), 4)):
        for element in elements:
            point, example = element["point"], element["example"]
            assert type(element) is dict and type(point) is Point and type(example) is Example and type(element["pair"]) is tuple
            assert type(point.y) is list and point.y[1].dtype == np.int64 and point.y[1].shape == ((3,) if rows is None else (rows, 3))
            assert type(example.parts) is list and (example.image[..., 0, 0] == example.label).all()
    numbers = dataset.map(lambda element: element["example"]["label"] + element["point"][0])
    assert [float(number) for number in numbers] == [2.0 * index for index in range(8)]


def ragged(index):
    return {"ids": list(range(index)), "image": np.zeros((index + 1, 2), np.uint8), "text": "a" * index, "raw": b"\0" * index}


def test_sizes_that_differ():
    dataset = penstock.Dataset.from_python(Source(6, ragged))
    spec = dataset.element_spec
    assert spec["ids"].shape == (None,) and spec["image"].shape == (None, 2)
    elements = list(dataset)
    assert [element["ids"].tolist() for element in elements] == [list(range(index)) for index in range(6)]
    assert [element["text"].item() for element in elements] == [b"a" * index for index in range(6)]
    (batch,) = dataset.padded_batch(6)
    assert batch["image"].shape == (6, 6, 2)


def test_declared_outputs_ask_nobody():
    dataset = penstock.Dataset.from_python(Source(0, square), output=penstock.TensorSpec((), np.int64))
    assert list(dataset) == []
    with pytest.raises(ValueError, match="output="):
        penstock.Dataset.from_python(Source(0, square))


def none_inside(index):
    return {"a": (index, None)}


def objects_inside(index):
    return {"a": types.SimpleNamespace()}


def other_structure(index):
    return {"a": index} if index < 2 else {"b": index}


def test_what_is_refused():
    for make, text in ((none_inside, "element part 'a/1' is a NoneType"), (objects_inside, "element part 'a' is a SimpleNamespace"), (other_structure, "different structures")):
        with pytest.raises(TypeError, match=text):
            penstock.Dataset.from_python(Source(3, make))
    with pytest.raises(TypeError, match="no __len__"):
        penstock.Dataset.from_python(iter([1]))
    source = Source(3, square)
    source.file = {"log": open(os.devnull)}
    with pytest.raises(TypeError, match=r"source\.file\['log'\] is a _io\.TextIOWrapper, which cannot be given to worker processes"):
        penstock.Dataset.from_python(source)


class Blocks:
    """Tells how many elements were asked for together."""

    def __init__(self, fails_at=None, draws=False):
        self.fails_at = fails_at
        self.draws = draws

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if index == self.fails_at:
            raise ValueError("this one")
        return index, 1, np.random.random() if self.draws else 0.0

    def __getitems__(self, indices):
        if self.fails_at in indices:
            raise ValueError("one of these")
        return [(index, len(indices), self[index][2]) for index in indices]


def test_getitems_fetches_blocks():
    elements = list(penstock.Dataset.from_python(Blocks()).batch(500))
    assert np.concatenate([index for index, *_ in elements]).tolist() == list(range(4000))
    assert max(together.max() for _, together, _ in elements) > 1
    left = list(penstock.Dataset.from_python(Blocks(fails_at=2001)).ignore_errors().batch(500))
    assert np.concatenate([index for index, *_ in left]).tolist() == [index for index in range(4000) if index != 2001]


def test_blocks_never_decide_what_is_drawn():
    def drawn(workers):
        return [float(draw) for _, _, draw in penstock.Dataset.from_python(Blocks(draws=True), seed=3, workers=workers).take(500)]

    assert drawn(1) == drawn(2) and len(set(drawn(1))) == 500


def fails(index):
    if index == 4:
        raise KeyError("no such thing")
    return index


def test_errors_are_the_elements():
    dataset = penstock.Dataset.from_python(Source(10, fails))
    with pytest.raises(penstock.DataLossError, match="KeyError: 'no such thing'"):
        list(dataset)
    assert as_numbers(dataset.ignore_errors()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


class Draws:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return np.random.random()


def test_draws_depend_on_no_number_of_workers():
    def drawn(workers):
        return [float(value) for value in penstock.Dataset.from_python(Draws(), seed=5, workers=workers).repeat(2)]

    assert drawn(1) == drawn(3) and len(set(drawn(1))) == 24


def test_a_pass_goes_on():
    dataset = penstock.Dataset.from_python(Source(200, square)).global_shuffle(seed=4).repeat(2).batch(7)
    whole = [batch.tolist() for batch in dataset]
    for count in (1, 20, 50):
        iterator = iter(penstock.Dataset.from_python(Source(200, square)).global_shuffle(seed=4).repeat(2).batch(7))
        for _ in range(count):
            next(iterator)
        other = iter(penstock.Dataset.from_python(Source(200, square), workers=1).global_shuffle(seed=4).repeat(2).batch(7))
        other.load_state_dict(iterator.state_dict())
        assert [batch.tolist() for batch in other] == whole[count:]


class Asked:
    """Writes a byte to a file for each element that it is asked for."""

    def __init__(self, path):
        self.path = str(path)

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b".")
        os.close(file)
        return index


@pytest.mark.parametrize("order", [lambda x: x, lambda x: x.shuffle(500, seed=3), lambda x: x.global_shuffle(seed=3)], ids=["in order", "shuffle", "global_shuffle"])
def test_a_resume_asks_for_no_element_in_front_of_it(order, tmp_path):
    dataset = order(penstock.Dataset.from_python(Asked(tmp_path / "asked"), workers=1)).batch(10)
    with iter(dataset) as iterator:
        for _ in range(1000):
            next(iterator)
        state = iterator.state_dict()
        expected = next(iterator).tolist()
    assert os.path.getsize(tmp_path / "asked") >= 10_010
    os.remove(tmp_path / "asked")
    with iter(dataset) as iterator:
        iterator.load_state_dict(state)
        assert next(iterator).tolist() == expected
    # What lies ready besides.
    assert 10 <= os.path.getsize(tmp_path / "asked") < 2000


class Lazy:
    file = None

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(__file__, "rb")
        self.file.seek(index)
        return self.file.read(1)


def test_a_handle_is_opened_by_who_needs_it():
    source = Lazy()
    dataset = penstock.Dataset.from_python(source)
    assert source.file is None
    assert b"".join(element.item() for element in dataset) == b'"""D'


class Private:
    def __init__(self):
        self.array = np.ones(8 << 20)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with open("/proc/self/smaps_rollup") as file:
            private = next(int(line.split()[1]) for line in file if line.startswith("Anonymous"))
        return np.array([self.array.sum(), private])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_arrays_are_in_memory_once():
    for total, private in penstock.Dataset.from_python(Private(), workers=2):
        assert total == 8 << 20 and private < 48_000, "64 MiB are not to be a worker's own"
