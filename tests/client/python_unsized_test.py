"""Tensors whose sizes only the data tells, in traced functions: what NumPy makes of the same arrays by the same function, one after another."""

import pathlib
import struct
import sys
import zlib

import numpy as np
import pytest

import penstock
from penstock import functions, io

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
import tfrecord_files  # noqa: E402

DICE = np.random.default_rng(7)
LENGTHS = [5, 1, 8, 0, 13, 2]
LISTS = [DICE.integers(-50, 50, n) for n in LENGTHS]
IMAGES = [DICE.integers(0, 256, (n + 4, 2 * n + 3, 3)).astype(np.uint8) for n in LENGTHS]
WORDS = [[b"w" * (i % 4) + b"%d" % n for i in range(n + 2)] for n in LENGTHS]


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    records = []
    for x, image, words, n in zip(LISTS, IMAGES, WORDS, LENGTHS, strict=True):
        features = {"image": png(image), "words": words, "n": n}
        if n:
            features["list"] = [int(value) for value in x]
        records.append(tfrecord_files.example(**features))
    path = tfrecord_files.write(tmp_path_factory.mktemp("unsized") / "data.tfrecord", records)
    many = {"allow_missing": True}
    features = {
        "list": io.FixedLenSequenceFeature([], penstock.int64, **many),
        "words": io.FixedLenSequenceFeature([], penstock.string, **many),
        "image": io.FixedLenFeature([], penstock.string),
        "n": io.FixedLenFeature([], penstock.int64),
    }
    return penstock.TFRecordDataset(str(path)).parse_example(features)


def check(dataset, wanted):
    """Values and shapes, whatever is None of them in `element_spec`."""
    found = list(dataset)
    assert len(found) == len(wanted)
    spec = dataset.element_spec
    for ours, theirs in zip(found, wanted, strict=True):
        theirs = np.asarray(theirs, object if isinstance(theirs, bytes) else None)
        assert ours.shape == theirs.shape
        assert len(spec.shape) == theirs.ndim
        assert all(size in (None, real) for size, real in zip(spec.shape, theirs.shape, strict=True))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


# Of a list and a number that stands beside it.
OF_LISTS = [
    lambda x, n: x[:3],
    lambda x, n: x[2:],
    lambda x, n: x[:-1],
    lambda x, n: x[-3:],
    lambda x, n: x[::-1],
    lambda x, n: x[6:1:-2],
    lambda x, n: x[-2:100:3],
    lambda x, n: x[2 ** 62 :: 2**62],
    lambda x, n: x[:, None],
    lambda x, n: x[None, ..., None],
    lambda x, n: x[...],
    lambda x, n: np.flip(x, 0),
    lambda x, n: np.expand_dims(x, 0).T,
    lambda x, n: np.reshape(x, (1, -1)),
    lambda x, n: np.concatenate([np.array([101]), x[:4], np.array([102])]),
    lambda x, n: np.concatenate([x, x[::-1], x[:1], x, x[1:]]),
    lambda x, n: np.stack([x, x * 2]),
    lambda x, n: np.stack([x, x, -x], axis=-1),
    lambda x, n: x[1:] - x[:-1],
    lambda x, n: x + n,
    lambda x, n: n - x * 2,
    lambda x, n: x * np.stack([n, n + 1, n + 2])[:, None],
    lambda x, n: np.where(x > n, x, n),
    lambda x, n: np.where(n > 2, x, -x),
    lambda x, n: (x[:, None] * np.array([[1, 2]]))[:, ::-1],
    lambda x, n: x[:, None] + np.stack([n, n * 2]),
    lambda x, n: x[:, None] * x,
    lambda x, n: np.stack([x, x, x]) - np.stack([n, 1 - n, n])[:, None],
    lambda x, n: np.where(x[:, None] > x[None, 1:], x[0:1, None], -1),
    lambda x, n: (x - np.sum(x)).astype(np.float32) / (n + 1).astype(np.float32),
    lambda x, n: np.pad(x[:4], (1, 2))[1:],
    lambda x, n: x.astype(np.int16)[::2].astype(np.float64),
    lambda x, n: np.pad(x[:6], (0, 6 - len_of(x[:6]))),
    lambda x, n: np.pad(x[:6], [[6 - len_of(x[:6]), n]], constant_values=-1),
    lambda x, n: np.pad(x, n),
    lambda x, n: np.pad(np.stack([x, x]), n, mode="constant", constant_values=7),
    lambda x, n: np.pad(np.stack([x, -x]), (1, n)),
    lambda x, n: np.pad(np.stack([x, -x], axis=-1), [[0, 20 - len_of(x)], [2, 1]]),
    lambda x, n: np.pad(np.stack([n, n + 1, n * 2]), (n % 3, 1), mode="edge"),
    lambda x, n: np.pad(np.stack([n, n + 1, n * 2]), [(0, n)], mode="wrap"),
    lambda x, n: np.maximum.accumulate(x),
    lambda x, n: np.minimum.accumulate(np.stack([x, x[::-1]]), axis=1),
    lambda x, n: np.reshape(x, (len_of(x), 1)),
    lambda x, n: x.reshape(1, len_of(x)),
    lambda x, n: np.reshape(np.stack([x, -x], axis=-1), (2, len_of(x))),
    lambda x, n: np.reshape(np.arange(12) * n, (2 - n % 2, -1)),
    lambda x, n: np.broadcast_to(n, np.shape(x)),
    lambda x, n: np.broadcast_to(x, (n % 3 + 1, len_of(x))),
    lambda x, n: np.broadcast_to(x[:, None], (len_of(x), 3)),
    lambda x, n: np.broadcast_to(x[None, :, None], (2, len_of(x), n)),
    lambda x, n: np.repeat(x, n % 3),
    lambda x, n: np.repeat(x, abs(x) % 3),
    lambda x, n: np.repeat(np.stack([x, -x]), abs(x) % 4, axis=1),
    lambda x, n: np.repeat(np.stack([n, n + 1, n + 2]), np.stack([n, n * 0, n % 2])),
    lambda x, n: np.argwhere(np.stack([x, x * 2, n - x]) > n),
    lambda x, n: np.nonzero(np.stack([x, x * 2, n - x], axis=-1) % 2)[1],
    lambda x, n: np.take_along_axis(np.stack([x, -x], axis=-1), np.argsort(np.stack([x, -x], axis=-1), axis=1), axis=1),
    lambda x, n: np.take_along_axis(np.stack([x, -x, x * n]), np.argmax(np.stack([x, -x, x * n]), axis=0)[None], axis=0),
    lambda x, n: np.unpackbits((x & 31).astype(np.uint8)),
    lambda x, n: np.unpackbits((x & 31).astype(np.uint8), bitorder="little"),
    lambda x, n: np.unpackbits((np.stack([x, x * n]) & 31).astype(np.uint8), axis=0, bitorder="little"),
    lambda x, n: np.unpackbits((np.stack([x, x * n]) & 31).astype(np.uint8), axis=1, count=20),
    lambda x, n: np.packbits(x > n),
    lambda x, n: np.packbits(x > n, bitorder="little"),
    lambda x, n: np.packbits(np.stack([x > n, x < 0, x > 9], axis=1), axis=0, bitorder="little"),
    lambda x, n: np.packbits((x[:, None] > x), axis=-1, bitorder="little"),
    lambda x, n: np.max(x, initial=3),
    lambda x, n: np.min(x, initial=2.75),
    lambda x, n: np.max(x > 3, initial=0),
    lambda x, n: np.dot(x[:4] * 0.5, x[:4]),
    lambda x, n: np.min(np.stack([x, -x]), axis=1, initial=-5),
    lambda x, n: np.max(x.astype(np.float32)[:, None] + x.astype(np.float32), axis=(0, 1), initial=-np.inf, keepdims=True),
    lambda x, n: np.max(x[:, None] * np.array([1, 2]), axis=0, initial=0),
    lambda x, n: np.stack(np.meshgrid(x, np.array([1, 2]))),
    lambda x, n: np.stack(np.meshgrid(x[1:], x, indexing="ij")),
]  # fmt: skip


def len_of(x):
    return np.shape(x)[0]


def test_padding_by_the_data_keeps_sizes_that_are_known(records):
    boxes = records.map(lambda e: np.pad(np.stack([e["list"], e["list"]], axis=-1), [[0, 20 - len_of(e["list"])], [1, 1]]))
    assert boxes.element_spec.shape == (None, 4)
    with pytest.raises(penstock.DataLossError, match="pad_width: expected 0 to .*, found -"):
        list(records.map(lambda e: np.pad(e["list"], (0, 4 - len_of(e["list"])))))
    with pytest.raises(penstock.InvalidArgumentError, match="pad_width: expected a number, a list"):
        list(records.map(lambda e: np.pad(e["list"], (0.5, e["n"]))))


def test_padding_by_the_data_behind_a_batch(records):
    rows = records.map(lambda e: np.stack([e["n"], e["n"]])).batch(3).map(lambda x: np.pad(x, [[0, 0], [0, np.max(x)]]))
    wanted = [np.array(LENGTHS[i : i + 3])[:, None] * np.array([1, 1]) for i in (0, 3)]
    for found, lengths in zip(rows, wanted, strict=True):
        np.testing.assert_array_equal(found, np.pad(lengths, [[0, 0], [0, lengths.max()]]))


@pytest.mark.parametrize("case", range(len(OF_LISTS)))
def test_of_lists(records, case):
    function = OF_LISTS[case]
    check(records.map(lambda e: function(e["list"], e["n"])), [function(x, np.int64(n)) for x, n in zip(LISTS, LENGTHS, strict=True)])


OF_IMAGES = [
    lambda x, n: x[1:4, 2:],
    lambda x, n: x[:3, :3],
    lambda x, n: x[:, ::-1],
    lambda x, n: x[::2, ::3, ::-1],
    lambda x, n: x[2],
    lambda x, n: x[-1, :, 1],
    lambda x, n: x[0, 0],
    lambda x, n: x[3, -1, 2] + x[0, 0, 0],
    lambda x, n: x[[0, 3, 3]],
    lambda x, n: x[..., [2, 0]],
    lambda x, n: x[:, [0, -1]][:, :, None],
    lambda x, n: x[50:],
    lambda x, n: np.transpose(x, (2, 0, 1)),
    lambda x, n: x.T,
    lambda x, n: np.swapaxes(x, 0, 1)[1:],
    lambda x, n: np.reshape(x, (-1, 3)),
    lambda x, n: x.reshape(-1),
    lambda x, n: x[:2, :2].reshape(2, 2, 3)[..., 1] * np.uint8(2),
    lambda x, n: x[:3, :3].astype(np.float32) / np.float32(255),
    lambda x, n: x * np.array([1, 2, 3], np.uint8) + x[0, 0],
    lambda x, n: x[:4] - x[3:0:-1].reshape(3, -1, 3)[0],
    lambda x, n: x - x[:, :1],
    lambda x, n: np.concatenate([x, x[:, ::-1]], axis=1),
    lambda x, n: np.concatenate([x, x[:2]], axis=0),
    lambda x, n: np.stack([x[..., 0], x[..., 2]], axis=0),
    lambda x, n: np.reshape(x, (len_of(x), np.shape(x)[1] * 3)),
    lambda x, n: np.transpose(np.reshape(x, (len_of(x), np.shape(x)[1], 1, 3)), (2, 0, 1, 3)),
    lambda x, n: np.argwhere(x > 200),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(OF_IMAGES)))
def test_of_images(records, case):
    function = OF_IMAGES[case]
    dataset = records.map(lambda e: function(io.decode_png(e["image"], channels=3), e["n"]))
    check(dataset, [function(x, np.int64(n)) for x, n in zip(IMAGES, LENGTHS, strict=True)])


OF_WORDS = [
    lambda x: x[0],
    lambda x: x[-1],
    lambda x: x[1:],
    lambda x: x[::-1],
    lambda x: x[[1, 1, 0]],
    lambda x: x[:, None],
    lambda x: x[100:],
]


@pytest.mark.parametrize("case", range(len(OF_WORDS)))
def test_of_strings(records, case):
    function = OF_WORDS[case]
    check(records.map(lambda e: function(e["words"])), [function(np.array(words, object)) for words in WORDS])


def test_strings_of_known_sizes():
    table = np.array([[b"a", b"", b"ccc"], [b"d", b"ee", b"f"]], object)
    rows = penstock.Dataset.from_tensor_slices(np.array(table, "S"))
    first, others = next(iter(rows.map(lambda x: (x[0], x[:0:-1])).batch(2)))
    assert first.tolist() == [b"a", b"d"]
    assert others.tolist() == [[b"ccc", b""], [b"f", b"ee"]]


def test_sizes_that_are_known_by_what_they_meet(records):
    longer = records.filter(lambda e: e["n"] > 3)
    found = longer.map(lambda e: e["list"][:4] * np.array([1, 10, 100, 1000]) + e["list"][-1:]).batch(3)
    assert found.element_spec.shape == (None, 4)
    wanted = [x[:4] * np.array([1, 10, 100, 1000]) + x[-1:] for x in LISTS if len(x) > 3]
    np.testing.assert_array_equal(next(iter(found)), wanted)


def test_batches(records):
    shortened = records.filter(lambda e: e["n"] > 1).map(lambda e: e["list"][:4])
    wanted = [x[:4] for x in LISTS if len(x) > 1]
    rows = np.zeros((len(wanted), 4), np.int64)
    for row, x in zip(rows, wanted, strict=True):
        row[: len(x)] = x
    np.testing.assert_array_equal(next(iter(shortened.padded_batch(4))), rows)
    # Behind a batch that was padded, of the batch as a whole.
    batches = shortened.padded_batch(4)
    np.testing.assert_array_equal(next(iter(batches.map(lambda x: x[:, 1:3]))), rows[:, 1:3])
    np.testing.assert_array_equal(next(iter(batches.map(lambda x: x[::-1].T))), rows[::-1].T)
    np.testing.assert_array_equal(next(iter(batches.map(lambda x: x[1]))), rows[1])
    # A constant shape makes sizes known.
    found = records.filter(lambda e: e["n"] > 3).map(lambda e: functions.ensure_shape(e["list"][:4], [4])).batch(3)
    assert found.element_spec.shape == (None, 4)
    np.testing.assert_array_equal(next(iter(found)), [x[:4] for x in LISTS if len(x) > 3])


def test_numbers_are_counted_as_far_as_the_data_tells(records):
    counted = records.map(lambda e: (functions.arange(e["n"]), functions.arange(2, e["n"], 3), functions.arange(e["n"], -4, -2)))
    assert [spec.shape for spec in counted.element_spec] == [(None,)] * 3
    for found, n in zip(counted, LENGTHS, strict=True):
        for ours, theirs in zip(found, (np.arange(n), np.arange(2, n, 3), np.arange(n, -4, -2)), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    # Behind a batch: of the batch.
    for found, lengths in zip(records.map(lambda e: e["n"]).batch(4).map(lambda n: n + 10 * functions.arange(np.shape(n)[0])), (LENGTHS[:4], LENGTHS[4:]), strict=True):
        np.testing.assert_array_equal(found, lengths + 10 * np.arange(len(lengths)))


def test_as_much_is_drawn_as_the_data_tells(records):
    draws = records.map(lambda e: {
        "like": functions.random_normal(np.shape(e["list"])),
        "pairs": functions.random_uniform([e["n"], 2], seed=1),
        "place": functions.random_uniform([8], 0, e["n"] + 1, dtype="int64"),
        "above": functions.random_uniform([8], e["n"] / 2, e["n"] + 0.5),
    })  # fmt: skip
    assert draws.element_spec["pairs"].shape == (None, None)
    for found, n in zip(draws, LENGTHS, strict=True):
        assert found["like"].shape == (n,) and found["pairs"].shape == (n, 2)
        assert found["place"].min() >= 0 and found["place"].max() <= n
        assert found["above"].min() >= n / 2 and found["above"].max() < n + 0.5
    # Rows of a batch have bounds of their own.
    for found in records.map(lambda e: e["n"]).batch(6).map(lambda n: (n, functions.random_uniform(minval=n, maxval=n + 2, dtype="int64", seed=4))):
        assert set((found[1] - found[0]).tolist()) <= {0, 1}


def test_windows():
    windows = penstock.Dataset.range(10).window(5, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(5))
    inputs, target = next(iter(windows.map(lambda w: (w[:-1], w[-1:])).batch(3)))
    assert inputs.tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
    assert target.tolist() == [[4], [6], [8]]


BROADCASTS = [
    lambda x: x[:1] - x,
    lambda x: x[:1] <= x,
    lambda x: x[-1:] * x + x[:1],
    lambda x: np.maximum(x[:1], x),
    lambda x: np.where(x[:1] > 1, x, x * 2),
    lambda x: np.where(x > 1, x[:1], x[-1:]),
    lambda x: x[:1] + x[None, :],
]


@pytest.mark.parametrize("broadcast", BROADCASTS, ids=range(len(BROADCASTS)))
def test_lists_of_one_broadcast_in_any_order(records, broadcast):
    check(records.map(lambda e: broadcast(e["list"])), [broadcast(x) for x in LISTS])


ERRORS = [
    (lambda e: e["list"][4], r"index 4 is out of axis 0 of \(1,\).*record 1,"),
    (lambda e: e["list"][-2], r"index -2 is out of axis 0 of \(1,\).*record 1,"),
    (lambda e: e["list"].reshape(5, 1), r"reshape: 1 elements of shape \(1,\) are none of shape \(5, 1\).*record 1,"),
    (lambda e: e["list"][:4].reshape(2, -1), r"reshape: 1 elements of shape \(1,\) are none of shape \(2, \?\).*record 1,"),
    (lambda e: functions.ensure_shape(e["list"], [5]), r"ensure_shape: expected \(5,\), found \(1,\).*record 1,"),
    (lambda e: e["list"] + e["list"][1:], r"shapes do not broadcast: \(4,\) to \(5,\).*record 0,"),
    (lambda e: e["list"][None, :] + np.stack([e["n"], e["n"]])[:, None] + e["list"][1:, None], r"shapes do not broadcast: \(4, 1\) to \(2, 5\).*record 0,"),
    (lambda e: e["list"][1:] * np.arange(1, 6), r"shapes do not broadcast: \(5,\) to \(4,\).*record 0,"),
    (lambda e: np.stack([e["list"], e["list"][1:]]), r"tensors of shapes \(5,\) and \(4,\) do not join.*record 0,"),
    (lambda e: e["words"][6], r"index 6 is out of axis 0 of \(3,\).*record 1,"),
    (lambda e: e["list"].reshape(e["n"] + 1, 1), r"reshape: 5 elements of shape \(5,\) are none of shape \(6, 1\).*record 0,"),
    (lambda e: e["list"].reshape(e["n"] - 7, 1), r"reshape: a size: expected -1 to .*, found -2.*record 0,"),
    (lambda e: np.broadcast_to(e["list"], (3, e["n"] + 1)), r"shapes do not broadcast: \(1, 6\) to \(3, 5\).*record 0,"),
    (lambda e: np.broadcast_to(e["list"][:2], (e["n"] % 4,)), r"2 elements of shape \(2,\) are none of shape \(1,\).*record 0,"),
    (lambda e: functions.arange(0, 9, e["n"] - 5), r"arange: expected a step that is not 0.*record 0,"),
    (lambda e: np.repeat(e["list"], 4 - e["n"]), r"result larger than limit.*record 0,"),
    (lambda e: np.repeat(e["list"], e["list"] * 0 - 1), r"result larger than limit.*record 0,"),
    (lambda e: functions.arange(e["n"] << 40), r"result larger than limit.*record 0,"),
    (lambda e: functions.random_uniform([], 3, e["n"], dtype="int64"), r"random_uniform: expected a maxval above minval, 3, found 1.*record 1,"),
    (lambda e: functions.random_uniform([2], 3, e["n"] * 0.5), r"random_uniform: expected a maxval above minval, 3, found 2.5.*record 0,"),
    (lambda e: functions.random_normal([e["n"] - 2, 3]), r"shape: expected 0 to .*, found -1.*record 1,"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_a_row_that_does_not_fit_is_named(records, case):
    function, message = ERRORS[case]
    iterator = iter(records.map(function))
    with pytest.raises(penstock.DataLossError, match=message):
        list(iterator)


REFUSED = [
    (lambda e: e["list"][:, 0], "expected at most 1 indices, found 2"),
    (lambda e: e["list"][::0], "step other than 0"),
    (lambda e: e["list"].reshape(-1, -1), "one of them -1 at most"),
    (lambda e: e["list"].reshape(2, 0), "sizes of at least 1"),
    (lambda e: np.stack([e["list"][i] for i in range(e["list"].shape[0])]), r"in x.shape a size that only the data tells is None; np.shape\(x\)\[0\]"),
    (lambda e: np.pad(e["list"], (0, 8 - e["list"].shape[0])), "in x.shape a size that only the data tells is None"),
    (lambda e: penstock.strings.ngrams(e["words"], 0), "widths of at least 1"),
    (lambda e: functions.ensure_shape(e["list"], [2, 2]), r"expected a shape that fits \(\?,\)"),
    (lambda e: io.decode_png(e["image"], channels=3)[..., 3], "index 3 is out of an axis of 3"),
    (lambda e: np.transpose(e["list"], (0, 1)), "expected a list of 1 axes"),
    (lambda e: functions.concat(e["list"], e["n"]), "the number of axes of the first"),
    (lambda e: np.stack([io.decode_png(e["image"], channels=3), io.decode_png(e["image"], channels=1)]), "tensor 2: expected the shape of the first"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_cannot_fit_is_refused_before_anything_runs(records, case):
    function, message = REFUSED[case]
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        print(records.map(function).element_spec)


def test_a_large_tensor_is_sliced_and_turned():
    # More elements than a view may list.
    values = np.arange((1 << 24) + 8).astype(np.uint8)
    rows = penstock.Dataset.from_tensor_slices(values[None])
    found = next(iter(rows.map(lambda x: (x[5:-2:3], x.reshape(-1, 2).T, x[-1]))))
    np.testing.assert_array_equal(found[0], values[5:-2:3])
    np.testing.assert_array_equal(found[1], values.reshape(-1, 2).T)
    assert found[2] == values[-1]


def test_batches_of_several_sizes_as_a_whole():
    values = np.arange(30).reshape(10, 3) % 7
    rows = penstock.Dataset.from_tensor_slices(values).batch(4)
    for function in [
        lambda x: np.ravel(x),
        lambda x: np.cumsum(x),
        lambda x: np.argmax(x),
        lambda x: np.sort(x, axis=None),
        lambda x: np.take(x, [2, 0]),
        lambda x: x - x.mean(axis=0),
        lambda x: x / np.sum(x),
        lambda x: x[x[:, 0] > 2],
    ]:
        for ours, theirs in zip(rows.map(function), (values[:4], values[4:8], values[8:]), strict=True):
            np.testing.assert_array_equal(ours, function(theirs))


def test_sizes_and_lists_that_only_the_data_tells():
    lists = penstock.Dataset.range(4).map(lambda n: np.compress(np.arange(6) < n, np.arange(6) * n))
    assert [int(n) for n in lists.map(lambda x: np.size(x))] == [0, 1, 2, 3]
    rows = lists.map(lambda x: x[:, None] + np.zeros((1, 2)))
    sizes = rows.map(lambda x: (np.size(x), np.size(x, 0), np.size(x, -1), np.size(x[0:1])))
    assert [tuple(map(int, element)) for element in sizes] == [(2 * n, n, 2, 2 * min(n, 1)) for n in range(4)]
    assert penstock.Dataset.range(2).map(lambda n: n + np.zeros((2, 3))).map(lambda x: (np.size(x) + np.size(x, 1)) * x[0, 0]).element_spec


def test_a_batch_is_reshaped_by_the_size_that_it_has():
    values = np.arange(60, dtype=np.int32).reshape(5, 3, 4)
    batches = penstock.Dataset.from_tensor_slices(values).batch(2)

    def found(function):
        return np.concatenate([*batches.map(function)])

    np.testing.assert_array_equal(found(lambda x: x.reshape(x.shape[0], -1)), values.reshape(5, -1))
    np.testing.assert_array_equal(found(lambda x: np.reshape(x, (x.shape[0], 12))), values.reshape(5, 12))
    np.testing.assert_array_equal(found(lambda x: x.reshape(x.shape[0], 2, -1)), values.reshape(5, 2, -1))
    np.testing.assert_array_equal(found(lambda x: x.reshape((x.shape[0],) + (2, 6))), values.reshape(5, 2, 6))
    for shape in ((None, 5, -1), (-1, None), (None, None)):
        with pytest.raises(penstock.TraceError, match="reshape"):
            batches.map(lambda x, shape=shape: x.reshape(*shape))
