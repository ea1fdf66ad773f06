"""Tensors of every kind, and structures, in Python (tests/support/all_kinds.h says the content)."""

import copy
import gc
import itertools
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import penstock
from penstock import _epochs

NAMES = "x half id name note words crop ids boxes tokens tags paths".split()

# Of this environment, which may have no ml_dtypes.
pytestmark = pytest.mark.filterwarnings("ignore:bfloat16 tensors")


def rows_of(values, splits):
    return [values[first:last] for first, last in zip(splits[:-1], splits[1:])]


def splits_of(lengths):
    return [0, *itertools.accumulate(lengths)]


def strings(count, prefix):
    return [b"%s%d" % (prefix, i) for i in range(count)]


def expected(step, rows):
    """Everything as nested lists, and the shapes."""
    columns, width = step % 3, 1 + step % 4
    row = np.arange(rows)
    ids = splits_of((step + i) % 4 for i in range(rows))
    boxes = splits_of(i % 3 for i in range(rows))
    tokens = splits_of(i % 2 + 1 for i in range(boxes[-1]))
    tags = splits_of((step + i) % 3 for i in range(rows))
    box_values = (step + np.arange(2 * boxes[-1])).reshape(-1, 2).tolist()
    crop = ((step + np.arange(rows * width * 3)) % 251).reshape(rows, width, 3)
    return {
        "x": (10 * step + row[:, None] + [0, 100]).tolist(),
        "half": (0x3F80 + row).tolist(),
        "id": step,
        "name": [b"%d/%d" % (step, i) * i for i in range(rows)],
        "note": b"note %d" % step,
        "words": rows_of(strings(rows * columns, b"w"), range(0, rows * columns + 1, columns))
        if columns
        else [[]] * rows,
        "crop": crop.tolist(),
        "ids": rows_of(list(range(100 * step, 100 * step + ids[-1])), ids),
        "boxes": rows_of(box_values, boxes),
        "tokens": rows_of(rows_of(list(range(step, step + tokens[-1])), tokens), boxes),
        "tags": rows_of(strings(tags[-1], b"t"), tags),
        "paths": rows_of(rows_of(strings(tokens[-1], b"p"), tokens), boxes),
    }


def to_list(tensor):
    if isinstance(tensor, penstock.RaggedTensor):
        return tensor.to_list()
    return (tensor.view(np.uint16) if tensor.dtype.itemsize == 2 else tensor).tolist()


def check(batch, step, rows=5):
    want = expected(step, rows)
    assert list(batch) == NAMES
    for name in NAMES:
        assert to_list(batch[name]) == want[name], name


def test_every_kind(start_kinds):
    loader = start_kinds("--steps", 40, "--last-rows", 2).attach()
    for batch in loader:
        check(batch, loader.step, 2 if loader.step == 39 else 5)
    assert loader.step == 39
    assert loader.stats()["copies"] == 0


def test_dtypes_and_shapes(start_kinds):
    loader = start_kinds().attach()
    next(loader)
    batch = next(loader)
    described = {name: (tensor.dtype.name, tensor.shape) for name, tensor in batch.items()}
    assert described.pop("half") in [("bfloat16", (5,)), ("uint16", (5,))]
    assert described == {
        "x": ("float32", (5, 2)),
        "id": ("uint64", ()),
        "name": ("object", (5,)),
        "note": ("object", ()),
        "words": ("object", (5, 1)),
        "crop": ("uint8", (5, 2, 3)),
        "ids": ("int64", (5, None)),
        "boxes": ("float32", (5, None, 2)),
        "tokens": ("int32", (5, None, None)),
        "tags": ("object", (5, None)),
        "paths": ("object", (5, None, None)),
    }
    assert type(batch["name"][1]) is bytes
    with pytest.raises(ValueError):
        batch["crop"][0, 0, 0] = 1
    with pytest.raises(ValueError):
        batch["ids"].values[0] = 1


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_copies_are_like_batches_in_place(start_kinds):
    loader = start_kinds("--steps", 8).attach()
    batches = list(loader)
    assert loader.stats()["copies"] == 6
    loader.close()
    for step, batch in enumerate(batches):
        check(batch, step)


def check_parts(batches, size, steps, last_rows, last_valid):
    """(step, valid rows, batch) of each batch of `size` rows, made of steps of 6 rows."""
    found = iter(batches)
    for step in range(steps):
        last = step == steps - 1
        rows, valid_rows = (last_rows, last_valid) if last else (6, 6)
        want = expected(step, rows)
        for part, first in enumerate(range(0, valid_rows, size)):
            number, valid, batch = next(found)
            assert number == step * (6 // size) + part
            assert valid == min(size, valid_rows - first)
            for name in NAMES:
                rows_only = want[name] if name in ("id", "note") else want[name][first : first + size]
                assert to_list(batch[name]) == rows_only, (name, step, part)
    assert next(found, None) is None


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("last", [(6, 6), (4, 4), (5, 3), (1, 1)])
def test_batches_of_fewer_rows(start_kinds, size, last):
    server = start_kinds("--rows", 6, "--steps", 20, "--last-rows", last[0], "--last-valid", last[1])
    loader = server.attach(batch_size=size)
    check_parts(((loader.step, loader.valid, batch) for batch in loader), size, 20, *last)
    assert loader.stats()["copies"] == 0


@pytest.mark.filterwarnings("ignore:this trainer holds")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_copies_of_fewer_rows(start_kinds, size):
    loader = start_kinds("--rows", 6, "--steps", 20, "--last-rows", 4).attach(batch_size=size)
    batches = [(loader.step, loader.valid, batch) for batch in loader]
    assert 0 < loader.stats()["copies"] < len(batches)
    loader.close()
    check_parts(batches, size, 20, 4, 4)


STRUCTURES = {
    "flat": (None, lambda t: dict(zip(NAMES, t))),
    "tuple": ("[" + ",".join(["null"] * 12) + "]", tuple),
    "order": (
        '{"z":null,"a":[null,[null,{"é/\\"":null}],null],"m":{"e":{},"t":[]},"b":[%s]}'
        % ",".join(["null"] * 7),
        lambda t: {
            "z": t[0],
            "a": (t[1], (t[2], {'é/"': t[3]}), t[4]),
            "m": {"e": {}, "t": ()},
            "b": tuple(t[5:]),
        },
    ),
}


def compare(have, want):
    assert type(have) is type(want)
    if isinstance(want, dict):
        assert list(have) == list(want)
        for key in want:
            compare(have[key], want[key])
    elif isinstance(want, tuple):
        assert len(have) == len(want)
        for one, other in zip(have, want):
            compare(one, other)
    else:
        assert to_list(have) == to_list(want)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_batch_has_the_structure_of_the_element(start_kinds, name):
    structure, build = STRUCTURES[name]
    options = ("--structure", structure) if structure else ()
    flat = next(start_kinds().attach())
    batch = next(start_kinds(*options).attach())
    compare(batch, build([flat[tensor] for tensor in NAMES]))


@pytest.mark.parametrize(
    "structure, message",
    [
        ("null", "1 places for 12"),
        ("[" + ",".join(["null"] * 13) + "]", "13 places for 12"),
        ("[1]", "other parts"),
        ("[null", "Expecting"),
        ("[" * 30000 + "]" * 30000, "recursion"),
    ],
)
def test_a_malformed_structure_is_refused(start_kinds, structure, message):
    with pytest.raises((ValueError, RecursionError), match=message):
        start_kinds("--structure", structure).attach()


def test_ragged_rows_hold_the_batch_as_arrays_do(start_kinds):
    server = start_kinds()
    loader = server.attach()
    next(loader)
    tokens = next(loader)["tokens"]
    assert loader.stats()["leases"] == 1
    row = tokens[2]
    want = expected(1, 5)["tokens"][2]
    del tokens
    gc.collect()
    assert loader.stats()["leases"] == 1
    for _ in range(50):
        next(loader)
    values = row.values
    assert row.to_list() == want
    del row
    gc.collect()
    assert loader.stats()["leases"] == 1
    loader.close()
    server.kill()
    assert values.tolist() == sum(want, [])


def test_strings_outlive_everything_and_hold_nothing(start_kinds):
    server = start_kinds()
    loader = server.attach()
    batch = next(loader)
    kept = [batch["name"], batch["words"], batch["tags"].values]
    del batch
    gc.collect()
    assert loader.stats()["leases"] == 0
    loader.close()
    server.kill()
    assert kept[0].tolist() == expected(0, 5)["name"]


def test_batches_of_every_kind_leave_no_memory_behind(start_kinds):
    structure = '{"a":[null,null,null,null],"b":{"c":[%s]}}' % ",".join(["null"] * 8)
    loader = start_kinds("--structure", structure).attach()

    def objects_after(steps):
        for _ in itertools.islice(loader, steps):
            pass
        gc.collect()
        return sys.getallocatedblocks()

    objects_after(120)
    before = objects_after(120)
    assert objects_after(1200) - before < 50


def test_the_state_is_that_of_the_batch_taken_last(start_kinds):
    server = start_kinds("--steps", 21)
    loader = server.attach()
    assert loader.state_dict() == {"cursor": b"", "step": -1}
    for batch in loader:
        step = int(batch["id"])
        assert loader.step == step and loader.epoch == step // 10
        assert loader.cursor == b"cursor-%d" % step
        assert loader.state_dict() == {"cursor": b"cursor-%d" % step, "step": step}
    # The end moves nothing, nor does closing.
    loader.close()
    assert loader.state_dict() == {"cursor": b"cursor-20", "step": 20}


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_a_cursor_is_bytes_or_their_hex_text(start_kinds):
    server = start_kinds("--steps", 21)
    loader = server.attach()
    next(loader)
    loader.load_state_dict(json.loads(json.dumps(loader.state_dict(), default=bytes.hex)))
    assert loader.cursor == b"cursor-0"
    assert server.attach(cursor=b"cursor-3".hex()).cursor == b"cursor-3"
    for wrong in ("cursor-3", 3):
        with pytest.raises(penstock.InvalidArgumentError, match="or their hex text"):
            server.attach(cursor=wrong)
        with pytest.raises(penstock.InvalidArgumentError, match="or their hex text"):
            loader.load_state_dict({"cursor": wrong})


def test_a_copy_has_its_cursor(start_kinds):
    loader = start_kinds().attach()
    kept = [next(loader) for _ in range(6)]
    assert loader.stats()["copies"] > 0
    assert loader.cursor == b"cursor-5"
    assert len(kept) == 6


def ragged():
    inner = penstock.RaggedTensor(np.arange(6), np.array([0, 2, 2, 5, 6]))
    return penstock.RaggedTensor(inner, np.array([0, 3, 3, 4]))


def test_a_ragged_tensor():
    tensor = ragged()
    assert tensor.to_list() == [[[0, 1], [], [2, 3, 4]], [], [[5]]]
    assert tensor.shape == (3, None, None) and tensor.ragged_rank == 2 and len(tensor) == 3
    outer, inner = tensor.nested_row_splits
    assert outer.tolist() == [0, 3, 3, 4] and inner.tolist() == [0, 2, 2, 5, 6]
    assert tensor.flat_values.tolist() == [0, 1, 2, 3, 4, 5]
    assert tensor.row_lengths().tolist() == [3, 0, 1]
    assert tensor[0].to_list() == [[0, 1], [], [2, 3, 4]]
    assert tensor[-1].to_list() == [[5]] and tensor[np.int64(1)].to_list() == []
    assert tensor[0][2].tolist() == [2, 3, 4]
    assert np.shares_memory(tensor[0][2], tensor.flat_values)
    assert [row.to_list() for row in tensor] == tensor.to_list()
    for part in (slice(1, 3), slice(None), slice(2, 1), slice(-1, None), slice(3, 9)):
        assert tensor[part].to_list() == tensor.to_list()[part]
    assert repr(tensor) == (
        "RaggedTensor(shape=(3, None, None), dtype=int64: [[[0, 1], [], [2, 3, 4]], [], [[5]]])"
    )
    assert len(repr(penstock.RaggedTensor(np.arange(10**5), np.array([0, 10**5])))) < 300


def test_a_ragged_tensor_is_frozen():
    tensor = ragged()
    with pytest.raises(AttributeError, match="frozen"):
        tensor.values = 1
    with pytest.raises(AttributeError, match="frozen"):
        del tensor.values
    with pytest.raises(AttributeError):
        tensor.other = 1
    for twin in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert twin.to_list() == tensor.to_list()


@pytest.mark.parametrize("index", [3, -4, slice(0, 3, 2), slice(None, None, -1)])
def test_rows_that_a_ragged_tensor_has_not(index):
    with pytest.raises(IndexError):
        ragged()[index]


@pytest.mark.parametrize("splits", [[], [1, 3], [0, 2], [0, 4], [[0, 3]]])
def test_row_splits_that_do_not_fit(splits):
    with pytest.raises(ValueError, match="row_splits"):
        penstock.RaggedTensor(np.arange(3), np.array(splits))


class OnADevice:
    """What penstock.cuda.DeviceArray tells, which has neither a length nor elements."""

    def __init__(self, array):
        self.shape, self.dtype, self.on_host = array.shape, array.dtype, array


def test_a_ragged_tensor_of_arrays_on_a_device():
    rows = penstock.Dataset.range(1, 7).map(lambda n: penstock.functions.arange(n)).ragged_batch(3)
    (first, _) = _epochs.EpochLoader(rows, OnADevice, {})
    assert isinstance(first, penstock.RaggedTensor) and isinstance(first.values, OnADevice)
    assert first.values.on_host.tolist() == [0, 0, 1, 0, 1, 2] and first.row_splits.on_host.tolist() == [0, 1, 3, 6]
    assert len(first) == 3 and first.shape == (3, None) and repr(first) == "RaggedTensor(shape=(3, None), dtype=int64)"
    assert ragged()._converted(OnADevice).ragged_rank == 2


WITHOUT_ML_DTYPES = """
import sys, warnings
sys.modules["ml_dtypes"] = None
import penstock
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    loaders = [penstock.attach("kinds", sys.argv[1]) for _ in range(2)]
print(next(loaders[0])["half"].dtype, len(caught), caught[0].category.__name__)
"""

WITH_ML_DTYPES = """
import sys, types, numpy
module = types.ModuleType("ml_dtypes")
module.bfloat16 = numpy.dtype("V2")
sys.modules["ml_dtypes"] = module
import penstock
print(next(penstock.attach("kinds", sys.argv[1]))["half"].dtype)
"""


@pytest.mark.parametrize(
    "code, printed",
    [(WITHOUT_ML_DTYPES, "uint16 1 RuntimeWarning\n"), (WITH_ML_DTYPES, "|V2\n")],
)
def test_bfloat16(start_kinds, code, printed):
    command = [sys.executable, "-c", code, start_kinds().socket]
    assert subprocess.check_output(command, text=True) == printed


def test_the_package_imports_little():
    code = (
        "import numpy, sys; before = set(sys.modules); import penstock;"
        "print(*sorted(set(sys.modules) - before))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    modules = set(printed.split())
    assert {"penstock", "penstock._core"} <= modules
    # Not socket, json, subprocess, tempfile: what a private daemon needs is imported with the first one. What is needed for one kind of
    # dataset only waits too.
    others = {name for name in modules if not name.startswith("penstock")}
    assert others <= {"__future__", "_weakrefset", "atexit", "threading"}
    assert not modules & {"penstock._spec._arrays", "penstock._numpy._dispatch", "penstock._dataset._padding"}
