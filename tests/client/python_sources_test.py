"""Sources and conditions of penstock.Dataset beyond what the goldens hold, and the manual's examples."""

import array
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import penstock
from penstock import _epochs
from penstock._running import _daemon

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import dataset_cases  # noqa: E402
import tfrecord_files  # noqa: E402


def elements(dataset):
    """All elements of a dataset of numbers, as lists."""
    return [np.asarray(element).tolist() for element in dataset]


pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_none_keep_their_signs(dtype):
    array = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)
    (found,) = penstock.Dataset.from_tensors(array)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
@pytest.mark.parametrize("rows", [3, 20_000], ids=["in the spec", "in a memory file"])
def test_arrays_of_every_type(dtype, rows):
    values = np.arange(rows * 2).reshape(rows, 2) % 100
    array = (values % 2).astype(bool) if dtype == "bool" else values.astype(dtype)
    if dtype == "uint64":
        array[0, 0] = 2**64 - 1
    dataset = penstock.Dataset.from_tensor_slices(array)
    assert len(dataset) == rows and dataset.element_spec == penstock.TensorSpec((2,), np.dtype(dtype))
    found = np.concatenate([np.array(batch) for batch in dataset.batch(1000)])
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_an_array_that_a_file_holds_is_read_from_it(tmp_path):
    array = np.random.default_rng(1).normal(size=(5000, 3)).astype(np.float32)
    np.save(tmp_path / "table.npy", array)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    dataset = penstock.Dataset.from_tensor_slices({"x": mapped, "i": np.arange(5000)})
    assert f'npy: "{tmp_path}/table.npy"' in dataset.spec_text()
    batch = next(iter(dataset.shuffle(5000, seed=1).batch(5000)))
    np.testing.assert_array_equal(batch["x"], array[batch["i"]])
    # A part of it is not the file.
    part = penstock.Dataset.from_tensor_slices(mapped[10:])
    assert "table.npy" not in part.spec_text()
    np.testing.assert_array_equal(next(iter(part)), array[10])


def test_what_is_written_into_a_private_map_is_seen(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(3))
    mapped = np.load(tmp_path / "table.npy", mmap_mode="c")
    mapped[:] = 7
    assert elements(penstock.Dataset.from_tensor_slices(mapped)) == [7, 7, 7]


def test_many_strings_lie_in_a_memory_file(tmp_path):
    make = penstock.Dataset.from_tensor_slices
    paths = [f"/data/images/of/some/length/that/paths/have/{i:06}.jpeg" for i in range(30_000)]
    wanted = [path.encode() for path in paths]
    for array in (paths, np.array(paths), np.array(paths, object), np.array(wanted)):
        dataset = make({"path": array, "i": np.arange(len(paths))})
        assert len(dataset.spec_text()) < 1000
        batch = next(iter(dataset.batch(len(paths))))
        assert batch["path"].tolist() == wanted and batch["i"][-1] == len(paths) - 1
    table = next(iter(make(np.array(["\u00e9", ""] * 100_000).reshape(-1, 2)).batch(100_000)))
    assert table.shape == (100_000, 2) and table[-1].tolist() == ["\u00e9".encode(), b""]
    # They are paths to readers still.
    lines = [tmp_path / f"{'name' * 40}{i:06}" for i in range(900)]
    for path in lines[:2]:
        path.write_text(path.name[-1])
    assert "list_files" in make([str(path) for path in lines]).flat_map(penstock.TextLineDataset).spec_text()
    # Zeros at the end are no part of strings of one length.
    assert next(iter(make([b"\0"] * 30_000).batch(30_000))).tolist() == [b"\0"] * 30_000
    with pytest.raises(ValueError, match="more strings than a spec may, some with zeros at the end; write them to a TFRecord"):
        make([b"\0"] * 400_000)
    with pytest.raises(ValueError, match="holds 20001 strings of up to 200000 bytes"):
        make([b"x" * 200_000] + [b""] * 20_000)


@pytest.mark.parametrize("value", [b"x" * 100_000, b"x" * 99_999 + b"\0"], ids=["string", "zero at the end"])
def test_a_long_string_keeps_its_shape(value):
    dataset = penstock.Dataset.from_tensors({"value": value})
    assert dataset.element_spec["value"].shape == ()
    (element,) = dataset
    assert element["value"].shape == () and element["value"].item() == value


def test_strings_of_nested_lists_keep_zeros_at_the_end():
    make = penstock.Dataset.from_tensor_slices
    rows = [[b"a\0", b"b"], [b"c\0", b"d\0\0"]]
    assert elements(make(rows)) == rows
    assert [element["x"].tolist() for element in make({"x": rows})] == rows
    assert elements(penstock.Dataset.from_tensors((["x\0"], 1)).map(lambda x, _: x)) == [[b"x\0"]]
    with pytest.raises(TypeError, match=r"the int 1 among strings at \[0, 0\]"):
        make([[1, b"a"]])


def test_strings_that_are_none_or_none_at_all():
    for empty in (np.array([], object), np.array([], "S3"), np.zeros((0, 2), object)):
        spec = penstock.Dataset.from_tensor_slices(empty).element_spec
        assert spec == penstock.TensorSpec(empty.shape[1:], penstock.string), spec
    with pytest.raises(TypeError, match=r"the NoneType None among strings at \[1\]"):
        penstock.Dataset.from_tensor_slices(np.array([b"a", None], object))


@pytest.mark.parametrize("rows", [3, 20_000], ids=["in the spec", "in a memory file"])
def test_arrays_of_the_other_byte_order(tmp_path, rows):
    array = np.arange(rows, dtype=">i4")
    np.save(tmp_path / "big.npy", array)
    for given in (array, np.load(tmp_path / "big.npy", mmap_mode="r")):
        found = next(iter(penstock.Dataset.from_tensor_slices(given).batch(rows)))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, array)


def test_an_array_lives_as_long_as_its_dataset_and_no_longer():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    next(iter(penstock.Dataset.range(1)))
    before = descriptors()
    for _ in range(20):
        dataset = penstock.Dataset.from_tensor_slices(np.arange(10_000))
        derived = dataset.map(lambda x: x + 1).batch(4)
        del dataset
        assert next(iter(derived)).tolist() == [1, 2, 3, 4]
    del derived
    assert descriptors() <= before


def test_arrays_that_do_not_fit():
    make = penstock.Dataset.from_tensor_slices
    cases = [
        (lambda: make((np.arange(3), np.arange(4))), ValueError, r"first axes have one size: 0 \(3,\), 1 \(4,\)"),
        (lambda: make(np.int64(3)), ValueError, "first axes"),
        (lambda: make(np.array([1 + 2j])), TypeError, "complex128"),
        (lambda: make({"a": np.array([b"x", 3], object)}), TypeError, r"from_tensor_slices: a is .* the int 3 among strings at \[1\]"),
        (lambda: make([2**64, 1]), TypeError, r"the int 18446744073709551616 at \[0\]; tensors hold integers of at most 64 bits"),
        (lambda: make([None, 1]), TypeError, r"the NoneType None at \[0\]; a tensor has no missing"),
        (lambda: make([[1, 2], [3]]), ValueError, "from_tensor_slices's argument holds lists of different lengths.*pad them"),
        (lambda: make({"a": [[1, 2], [3]]}), ValueError, "from_tensor_slices: a holds lists of different lengths"),
        (lambda: make(()), TypeError, "holds no tensor"),
        (lambda: make({object: np.arange(3)}), TypeError, "a key of type type"),
    ]
    for function, kind, message in cases:
        with pytest.raises(kind, match=message):
            function()


def test_a_range_has_numbers_that_its_type_holds():
    assert elements(penstock.Dataset.range(254, 256, output_type=np.uint8)) == [254, 255]
    assert elements(penstock.Dataset.range(1, -10, -3, output_type=np.int8)) == [1, -2, -5, -8]
    assert elements(penstock.Dataset.range(300, 300, output_type=np.uint8)) == []
    assert elements(penstock.Dataset.range(254, 260, output_type=np.float32)) == [254, 255, 256, 257, 258, 259]
    for bounds, dtype, number in (
        ((254, 260), np.uint8, 259),
        ((254, 260, 2), "uint8", 258),
        ((-1, 2), np.uint64, -1),
        ((0, -131, -10), np.int8, -130),
        ((2**31 + 1,), np.int32, 2**31),
    ):
        with pytest.raises(ValueError, match=f"range has {number}, which {np.dtype(dtype)} does not hold"):
            penstock.Dataset.range(*bounds, output_type=dtype)


def test_conditions_are_traced():
    numbers = penstock.Dataset.range(10)
    text = numbers.filter(lambda x: (x * x > 9) & (np.sqrt(x * x) < 7)).spec_text()
    assert 'filter { predicate: "((value * value) > 9) & (sqrt(value * value) < 7)" }' in text
    table = np.array([1, 0, 0, 1], bool)
    assert elements(numbers.filter(lambda x: (table & (x > 2))[0])) == [3, 4, 5, 6, 7, 8, 9]
    assert elements(numbers.shuffle(10, seed=1).filter(lambda x: x < 0)) == []
    assert numbers.filter(lambda x: x > 3).cardinality() == penstock.UNKNOWN_CARDINALITY
    for function, message in [
        (lambda x: x > 2 and x < 5, "truth of a traced value"),
        (lambda x: None, "the function given to filter returned None; it returns one bool"),
        (lambda x: (x > 2,), "of type tuple"),
        (lambda x: penstock.io.parse_single_example(x, FEATURES)["n"] > 2, "parse in a map before it"),
    ]:
        with pytest.raises(penstock.TraceError, match=message):
            numbers.filter(function)
    with pytest.raises(penstock.InvalidArgumentError, match=r"was made at .*python_sources_test.py:\d+: numbers.filter"):
        numbers.filter(lambda x: x + 1).element_spec


FEATURES = {"n": penstock.io.FixedLenFeature([], penstock.int64)}


def test_errors_are_ignored_on_demand(tmp_path):
    good = [tfrecord_files.example(n=i) for i in range(6)]
    good[2] = good[4] = b"\xff\xff"
    tfrecord_files.write(tmp_path / "some.tfrecord", good)
    parsed = penstock.TFRecordDataset(tmp_path / "some.tfrecord").parse_example(FEATURES)
    with pytest.raises(penstock.DataLossError):
        list(parsed)
    assert [int(e["n"]) for e in parsed.ignore_errors()] == [0, 1, 3, 5]
    with pytest.raises(penstock.Error, match="max_skipped|than the limit|more than"):
        list(parsed.ignore_errors(max_skipped=1))


TEXTS = [b"1", b"x", b"3", b"4", b"y", b"6", b"7"]


def _numbers(texts):
    return penstock.Dataset.from_tensor_slices(texts).map(lambda x: penstock.io.string_to_number(x, penstock.int64))


@pytest.mark.parametrize("batched", [
    lambda ds: ds.batch(2),
    lambda ds: ds.padded_batch(2),
    lambda ds: ds.batch(3).rebatch([2]),
    lambda ds: ds.window(2).flat_map(lambda window: window.batch(2)),
    lambda ds: ds.filter(lambda x: x > 0).batch(2).prefetch(2),
])
def test_what_fails_is_left_out_of_its_batch_alone(batched):
    # tf.data loses the batch, or what of it came before, as its optimizer decides.
    batches = [batch.tolist() for batch in batched(_numbers(TEXTS)).ignore_errors()]
    assert batches == [[1, 3], [4, 6], [7]]


@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("texts", [TEXTS, [b"bad", *TEXTS, b"bad"]])
def test_take_and_skip_part_what_does_not_fail(texts, count):
    whole = [int(value) for value in _numbers(texts).ignore_errors()]
    assert [int(value) for value in _numbers(texts).take(count).ignore_errors()] == whole[:count]
    skipped = _numbers(texts).skip(count).ignore_errors()
    assert [int(value) for value in skipped] == whole[count:]
    assert [row for batch in _numbers(texts).ragged_batch(1).skip(1).ignore_errors() for row in batch.tolist()] == whole[1:]


def test_limits_count_what_fails_in_front_of_a_batch():
    assert len(list(_numbers(TEXTS).batch(2).ignore_errors(max_skipped=2))) == 3
    with pytest.raises(penstock.DataLossError, match="stage ignore_errors: too many damaged places: 2 > 1"):
        list(_numbers(TEXTS).batch(2).ignore_errors(max_skipped=1))


def test_rows_that_do_not_fit_cost_their_batch():
    rows = penstock.Dataset.from_tensor_slices([b"a", b"b", b"cc", b"d", b"e", b"f"]).map(lambda x: penstock.io.decode_raw(x, np.uint8))
    batches = [batch.tolist() for batch in rows.padded_batch(2, padded_shapes=[1]).ignore_errors()]
    assert batches == [[[97], [98]], [[101], [102]]]


def test_inputs_of_zip_stay_in_step():
    # Of a tuple that fails all is left out; behind a filter nobody knows its partner any more.
    pairs = penstock.Dataset.zip((_numbers(TEXTS), penstock.Dataset.range(7)))
    assert [(int(a), int(b)) for a, b in pairs.ignore_errors()] == [(1, 0), (3, 2), (4, 3), (6, 5), (7, 6)]
    cut = penstock.Dataset.zip((_numbers(TEXTS).filter(lambda x: x > 0), penstock.Dataset.range(7)))
    with pytest.raises(penstock.DataLossError, match="found \"x\""):
        list(cut.ignore_errors())


def contents(dataset):
    return [element.item() for element in dataset.map(lambda path: penstock.io.read_file(path))]


def test_read_file_in_the_commonest_pipeline(tmp_path):
    """As in dataset_cases.py, whose elements are TensorFlow's, with a shuffle that shuffles."""
    t = types.SimpleNamespace(**{name: getattr(penstock, name) for name in penstock.__all__}, folder=str(tmp_path))
    dataset_cases.write_files(tmp_path)
    results = json.loads((ROOT / "tests/golden/dataset.json").read_text())["cases"]["read_file_decoded"]
    wanted = {
        label["values"][0]: np.array(image["values"], np.uint8).reshape(image["shape"])
        for image, label in (element["tuple"] for element in results)
    }
    assert len({image.shape for image in wanted.values()}) > 1
    dataset = dataset_cases.photos(t).shuffle(4, seed=5).map(lambda path, label: dataset_cases.decoded(t, path, label))
    orders = []
    for _ in range(2):
        found = [(np.array(image), int(label)) for image, label in dataset.repeat(3)]
        assert len(found) == 12
        for image, label in found:
            np.testing.assert_array_equal(image, wanted[label])
        orders.append([label for _, label in found])
    passes = [orders[0][i : i + 4] for i in (0, 4, 8)]
    assert all(sorted(one) == [0, 1, 2, 3] for one in passes) and len({tuple(one) for one in passes}) > 1
    # A resume reads what is left.
    iterator = iter(dataset.repeat(3))
    for _ in range(5):
        next(iterator)
    again = iter(dataset.repeat(3))
    again.load_state_dict(iterator.state_dict())
    assert [int(label) for _, label in again] == [int(label) for _, label in iterator]


def test_read_file_reads_anew_in_each_pass(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"first")
    dataset = penstock.Dataset.from_tensor_slices([str(path)])
    assert contents(dataset) == [b"first"]
    path.write_bytes(b"")
    assert contents(dataset) == [b""]
    path.write_bytes(bytes(range(256)) * 10_000)
    assert contents(dataset) == [bytes(range(256)) * 10_000]
    # A tensor of paths, and of none.
    (tmp_path / "other").write_bytes(b"another")
    path.write_bytes(b"one")
    pair = penstock.Dataset.from_tensors(np.array([[str(path), str(tmp_path / "other")]], object))
    (found,) = pair.map(penstock.io.read_file)
    assert found.tolist() == [[b"one", b"another"]]
    batches = penstock.Dataset.from_tensor_slices([str(path), str(tmp_path / "other"), str(path)]).batch(2).map(penstock.io.read_file)
    assert [batch.tolist() for batch in batches] == [[b"one", b"another"], [b"one"]]


def test_read_file_names_the_file_that_it_cannot_read(tmp_path):
    good = tmp_path / "good"
    good.write_bytes(b"good")
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "large", "wb") as file:
        file.truncate((256 << 20) + 1)
    cases = [
        (f"{tmp_path}/missing", penstock.NotFoundError, "missing"),
        (str(tmp_path), penstock.Error, str(tmp_path)),
        (f"{tmp_path}/fifo", penstock.PermissionDeniedError, "fifo"),
        ("/proc/self/environ", penstock.PermissionDeniedError, "/proc/self/environ"),
        (f"{tmp_path}/large", penstock.Error, r"longer than a record may be: 268435457 > 268435456 bytes \(.*large\)"),
        (f"{good}\0.jpg", penstock.Error, f"zero byte at {len(str(good))} of {len(str(good)) + 5}"),
        ("", penstock.Error, "the empty string"),
    ]
    for name, kind, message in cases:
        paths = penstock.Dataset.from_tensor_slices([str(good), name, str(good)])
        with pytest.raises(kind, match=message) as caught:
            contents(paths)
        assert 'stage "map"' in str(caught.value) and "python_sources_test.py" in str(caught.value), name
        # It is no damaged record: nothing hides it.
        with pytest.raises(kind, match=message):
            list(paths.map(lambda path: penstock.io.read_file(path)).ignore_errors())


def test_relative_paths_are_those_of_the_folder_that_the_process_is_in(tmp_path):
    (tmp_path / "paths.txt").write_text("data.bin\n")
    (tmp_path / "data.bin").write_bytes(b"some bytes")
    program = """
import penstock

paths = penstock.TextLineDataset("paths.txt")
for dataset in (paths, penstock.Dataset.list_files("*.bin", shuffle=False), penstock.Dataset.from_tensor_slices(["data.bin"])):
    print([element.item() for element in dataset.map(penstock.io.read_file)])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(pathlib.Path(penstock.__file__).parents[1]), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[b'some bytes']"] * 3


def test_read_file_keeps_to_the_data_roots(tmp_path):
    roots = tmp_path / "roots"
    roots.mkdir()
    (roots / "file").write_bytes(b"inside")
    (tmp_path / "other").write_bytes(b"outside")
    (roots / "link").symlink_to(tmp_path / "other")
    (tmp_path / "config").write_text(f'data_roots: "{roots}"\n')
    socket = str(tmp_path / "socket")
    ready, end = os.pipe()
    command = [_daemon.find_program(), "--socket", socket, "--config", str(tmp_path / "config"), "--ready-fd", str(end)]
    daemon = subprocess.Popen(command, pass_fds=(end,), stderr=subprocess.DEVNULL)
    os.close(end)
    try:
        assert os.read(ready, 1) == b"\n"
        for number, path in enumerate([roots / "file", tmp_path / "other", f"{roots}/../other", roots / "link", "/proc/self/environ"]):
            dataset = penstock.Dataset.from_tensor_slices([str(path)]).map(lambda path: penstock.io.read_file(path))
            with dataset.loader(socket, name=f"reads-{number}") as loader:
                if number == 0:
                    assert next(loader).item() == b"inside"
                    continue
                with pytest.raises(penstock.PermissionDeniedError, match=re.escape(str(path))):
                    next(loader)
    finally:
        daemon.terminate()
        daemon.wait()
        os.close(ready)


def test_lists_of_files(tmp_path):
    for name in "dcba":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    pattern = str(tmp_path / "*" / "x.txt")
    paths = [str(tmp_path / name / "x.txt").encode() for name in "abcd"]
    assert [path.item() for path in penstock.Dataset.list_files(pattern, shuffle=False)] == paths
    first = [path.item() for path in penstock.Dataset.list_files(pattern, seed=3)]
    assert sorted(first) == paths
    assert first == [path.item() for path in penstock.Dataset.list_files(pattern, seed=3)]
    files = penstock.FilesDataset(pattern, class_from_folder=True)
    found = [(e["bytes"].item(), int(e["label"]), e["class_name"].item()) for e in files]
    assert found == [(name.encode(), i, name.encode()) for i, name in enumerate("abcd")]
    assert list(files.element_spec) == ["path", "bytes", "label", "class_name"]
    assert set(next(iter(penstock.FilesDataset(pattern)))) == {"path", "bytes"}


def test_ragged_batches(tmp_path):
    payloads = [tfrecord_files.example(**({"n": list(range(i))} if i else {})) for i in range(5)]
    tfrecord_files.write(tmp_path / "lists.tfrecord", payloads)
    kinds = {"n": penstock.io.FixedLenSequenceFeature([], penstock.int64, allow_missing=True)}
    parsed = penstock.TFRecordDataset(tmp_path / "lists.tfrecord").parse_example(kinds)
    batches = [batch["n"].to_list() for batch in parsed.ragged_batch(2)]
    assert batches == [[[], [0]], [[0, 1], [0, 1, 2]], [[0, 1, 2, 3]]]
    assert parsed.ragged_batch(2).element_spec["n"].kind == "ragged"
    with pytest.raises(penstock.Error, match="(?s)ragged_batch.*was made at"):
        list(parsed.batch(2))


def test_last_batches():
    numbers = penstock.Dataset.range(1, 6)
    assert elements(numbers.batch(3, remainder="keep")) == [[1, 2, 3], [4, 5]]
    assert elements(numbers.batch(3, remainder="drop")) == [[1, 2, 3]]
    assert elements(numbers.batch(3, remainder="wrap")) == [[1, 2, 3], [4, 5, 1]]
    iterator = iter(numbers.batch(3, remainder="pad"))
    assert [(next(iterator).tolist(), iterator.valid) for _ in range(2)] == [([1, 2, 3], 3), ([4, 5, 0], 2)]
    assert len(numbers.batch(3, remainder="drop")) == 1 and len(numbers.batch(3, remainder="pad")) == 2
    for arguments in ({"remainder": "half"}, {"remainder": "pad", "drop_remainder": True}):
        with pytest.raises(ValueError, match="remainder"):
            numbers.batch(3, **arguments)


def test_arguments_of_padded_batch():
    pairs = penstock.Dataset.range(5).enumerate()
    cases = [
        (lambda: pairs.padded_batch(2, ([None],)), ValueError, "padded_shapes has another structure than the element at its top"),
        (lambda: pairs.padded_batch(2, ([None], {"a": []})), ValueError, "at 1"),
        (lambda: pairs.padded_batch(2, padding_values=(1, (2, 3))), ValueError, "padding_values has another structure"),
        (lambda: pairs.padded_batch(2, padding_values=(1, np.arange(2))), TypeError, "a number or a string is expected for 1"),
        (lambda: pairs.padded_batch(0), ValueError, "at least 1"),
    ]
    for function, kind, message in cases:
        with pytest.raises(kind, match=message):
            function()
    assert "padding_value { feature: \"1\" int64_value: 3 }" in pairs.padded_batch(2, padding_values=3).spec_text()


def test_functions_of_interleave(tmp_path):
    (tmp_path / "x").write_text("one\n")
    paths = penstock.Dataset.list_files(tmp_path / "x", shuffle=False)
    text = paths.interleave(lambda path: penstock.TextLineDataset(path).take(3)).spec_text()
    assert "interleave { input { stage { text_line {} } stage { take { count: 3 } } } cycle_length: 16 }" in text
    assert "cycle_length: 2 block_length: 4" in paths.interleave(penstock.TFRecordDataset, 2, 4).spec_text()
    (tmp_path / "y[1]").write_text("two\n")
    given = [str(tmp_path / "x"), str(tmp_path / "y[1]"), str(tmp_path / "y[1]")]
    dataset = penstock.Dataset.from_tensor_slices(given).shard(2, 0)
    text = dataset.interleave(penstock.TextLineDataset).spec_text()
    assert f'list_files {{ files: "{tmp_path}/x" files: "{tmp_path}/y[[]1]" files: "{tmp_path}/y[[]1]" shuffle: false }}' in text
    assert elements(dataset.interleave(penstock.TextLineDataset)) == [b"one", b"two"]
    assert elements(penstock.TextLineDataset(dataset)) == [b"one", b"two"]
    assert elements(penstock.Dataset.from_tensor_slices(given[::-1]).flat_map(penstock.TextLineDataset)) == [b"two", b"two", b"one"]


def test_stages_of_flat_map():
    rows = penstock.Dataset.range(6).batch(3)
    slices = penstock.Dataset.from_tensor_slices
    cases = [
        # What is done to slices one by one needs no datasets.
        (rows.flat_map(slices), "stage { unbatch {} }"),
        (rows.flat_map(lambda x: slices(x * 2).filter(lambda y: y > 0)), 'unbatch {} }\nstage { filter { predicate: "value > 0" } }'),
        (rows.interleave(lambda x: penstock.Dataset.from_tensors(x + 1)), 'map { out: "value = value + 1"'),
        (rows.flat_map(lambda x: slices(x).take(2)), "flat_map { input { stage { unbatch {} } stage { take { count: 2 } } } }"),
        (rows.interleave(slices, 3), "interleave { input { stage { unbatch {} } } cycle_length: 3 }"),
        (rows.flat_map(lambda x: slices(x).map(lambda y: y + x[0])), "zip { input { stage { window_part {} } stage { repeat {} } } }"),
    ]
    for dataset, text in cases:
        assert text in dataset.spec_text(), dataset.spec_text()


def test_the_element_itself_is_an_input():
    make = penstock.Dataset
    numbers = make.range(2)
    zipped = numbers.flat_map(lambda x: make.zip((make.from_tensors(x), make.range(2))))
    assert [(int(x), int(y)) for x, y in zipped] == [(0, 0), (1, 0)]
    rows = make.from_tensor_slices(np.arange(4).reshape(2, 2))
    assert elements(rows.interleave(lambda x: make.from_tensor_slices(x).concatenate(make.range(1)))) == [0, 2, 1, 3, 0, 0]
    assert elements(numbers.interleave(lambda x: make.from_tensors(x).concatenate(make.range(2)), 1)) == [0, 0, 1, 1, 0, 1]
    windows = make.range(4).window(2)
    assert elements(windows.flat_map(lambda w: w.concatenate(make.range(1)))) == [0, 1, 0, 2, 3, 0]
    zipped = windows.flat_map(lambda w: make.zip(w, make.range(5)))
    assert [(int(x), int(y)) for x, y in zipped] == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_what_flat_map_and_interleave_refuse():
    numbers = penstock.Dataset.range(3)
    kept = []
    numbers.map(lambda x: kept.append(x) or x)
    cases = [
        (lambda: numbers.interleave(lambda x: x), "returned a Tensor; it returns a Dataset: one that reads the path, or one of the"),
        (lambda: numbers.flat_map(lambda x: penstock.TFRecordDataset(x + 1)), "a path that is computed"),
        (lambda: numbers.flat_map(lambda x: numbers.take(x)), r"count is a traced value; it is a constant; enumerate\(\).take_while"),
        (lambda: numbers.flat_map(lambda x: numbers.shard(3, x)), "index is a traced value"),
        (lambda: numbers.flat_map(lambda x: penstock.Dataset.range(0, 9, x)), "the step of a range is a traced value"),
        (lambda: numbers.map(penstock.Dataset.from_tensors), "Dataset.from_tensors of a traced value; it makes a dataset in the function"),
        (lambda: numbers.flat_map(lambda x: numbers.map(lambda y: y + kept[0])), "a value of another function's call is used here"),
        (lambda: numbers.map(lambda y: y + kept[0]), "a value of another function's call is used here"),
    ]
    for function, message in cases:
        with pytest.raises(penstock.TraceError, match=message):
            function()
    with pytest.raises(penstock.InvalidArgumentError, match="expected 1 to 64 for datasets of an element's values, found 65"):
        next(iter(numbers.interleave(lambda x: penstock.Dataset.from_tensors(x).repeat(2), 65)))
    with pytest.raises(penstock.TraceError, match=r"a reader of paths that are elements of range \| map"):
        numbers.map(lambda x: x + 1).flat_map(penstock.TextLineDataset)


def test_the_manuals_example_runs():
    text = (ROOT / "docs/python.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "TFRecordDataset" in block)
    code = re.sub(r'"[^"]*flowers/\*\.tfrecord"', repr(str(ROOT / "tests/golden/flowers.tfrecord")), code)
    code = code.replace(".batch(64,", ".batch(4,")
    seen = []

    class Model:
        def step(self, x, y):
            assert x.shape == (4, 224, 224, 3) and x.dtype == np.float32 and -1 <= x.min() < x.max() <= 1
            seen.append(y.tolist())

    exec(code, {"model": Model(), "train": Model().step})
    # Eight records a pass, in another order each time.
    assert len(seen) == 6
    passes = [seen[i] + seen[i + 1] for i in (0, 2, 4)]
    assert all(sorted(labels) == list(range(8)) for labels in passes)
    assert len({tuple(labels) for labels in passes}) > 1


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_fields_of_comma_separated_values(tmp_path):
    (tmp_path / "a.csv").write_text('n,x,name\n1,0.5,one\n2,,"two, ""too"""\n-3,inf,"a\nb"\n')
    defaults = [np.int64, 7.5, penstock.string]
    rows = list(penstock.experimental.CsvDataset(str(tmp_path / "a.csv"), defaults, header=True))
    assert [(int(n), float(x), s.item() if hasattr(s, "item") else s) for n, x, s in rows] == [
        (1, 0.5, b"one"),
        (2, 7.5, b'two, "too"'),
        (-3, float("inf"), b"a\nb"),
    ]
    some = penstock.experimental.CsvDataset(str(tmp_path / "a.csv"), [penstock.string], header=True, select_cols=[2])
    assert len(list(some)) == 3
    rest = penstock.experimental.CsvDataset(str(tmp_path / "a.csv"), [penstock.string], header=True, exclude_cols=[0, 1])
    assert rest.spec_text() == some.spec_text()
    (tmp_path / "b.csv").write_text("1,2,x\n2,oops,y\n")
    bad = penstock.experimental.CsvDataset(str(tmp_path / "b.csv"), defaults)
    with pytest.raises(penstock.DataLossError, match=r'expected a value of float32, found "oops".*b\.csv.*offset 6'):
        list(bad)


class Elements:
    """What torch calls a dataset: Python for each element, without an end that NumPy could see."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index


def test_a_dataset_of_torch_is_no_array():
    for function in penstock.Dataset.from_tensor_slices, penstock.Dataset.from_tensors:
        with pytest.raises(TypeError, match=r"is a python_sources_test.Elements, which is neither an array nor a list; .*docs/migrating.md"):
            function(Elements())
    with pytest.raises(TypeError, match=r"the source is a python_sources_test.Elements; it is a penstock.Dataset or the name of a pipeline"):
        _epochs.EpochLoader(Elements(), np.asarray, {})


def test_sequences_are_arrays():
    for values in range(2, 5), array.array("i", [2, 3, 4]), memoryview(np.arange(2, 5)), [2, 3, 4]:
        assert [int(x) for x in penstock.Dataset.from_tensor_slices(values)] == [2, 3, 4]


def test_elements_of_a_list_may_have_another_order_of_keys():
    pairs = penstock.experimental.from_list([{"a": 1, "b": {"x": 2, "y": 3}}, {"b": {"y": 30, "x": 20}, "a": 10}])
    assert list(pairs) == [{"a": 1, "b": {"x": 2, "y": 3}}, {"a": 10, "b": {"x": 20, "y": 30}}]


def test_two_tensors_of_one_path_are_refused():
    for function in penstock.Dataset.from_tensor_slices, penstock.Dataset.from_tensors:
        with pytest.raises(ValueError, match=r"takes tensors of different paths; two are 'a/b'"):
            function({"a": {"b": [1]}, "a/b": [2]})


def test_ready_made_datasets_take_paths(tmp_path):
    csv = tmp_path / "a.csv"
    csv.write_text("x,y\n1,2\n3,4\n")
    for given in csv, [csv], tmp_path / "*.csv", os.fsencode(csv):
        (batch,) = penstock.experimental.make_csv_dataset(given, 2, num_epochs=1, shuffle=False)
        assert (batch["x"].tolist(), batch["y"].tolist()) == ([1, 3], [2, 4])
    records = tmp_path / "a.tfrecord"
    tfrecord_files.write(records, [tfrecord_files.example(id=7)])
    features = {"id": penstock.io.FixedLenFeature([], penstock.int64)}
    (batch,) = penstock.experimental.make_batched_features_dataset(records, 1, features, num_epochs=1)
    assert batch["id"].tolist() == [7]


@pytest.mark.parametrize("num_parallel_reads", [None, 2])
def test_names_that_ready_made_datasets_have_found_are_no_globs(tmp_path, num_parallel_reads):
    for number, name in enumerate(["d1", "d[1]", "d?"]):
        (tmp_path / f"{name}.csv").write_text(f"x\n{number}\n")
        tfrecord_files.write(tmp_path / f"{name}.tfrecord", [tfrecord_files.example(id=number)])
    make, given = penstock.experimental.make_csv_dataset, str(tmp_path / "*.csv")
    (batch,) = make(given, 9, num_epochs=1, shuffle=False, num_parallel_reads=num_parallel_reads)
    assert sorted(batch["x"].tolist()) == [0, 1, 2]
    features = {"id": penstock.io.FixedLenFeature([], penstock.int64)}
    make, given = penstock.experimental.make_batched_features_dataset, str(tmp_path / "*.tfrecord")
    (batch,) = make(given, 9, features, num_epochs=1, shuffle=False)
    assert sorted(batch["id"].tolist()) == [0, 1, 2]


def test_a_path_that_is_no_text(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"a\xff.txt")
    with open(path, "wb") as file:
        file.write(b"line\n")
    for given in path, os.fsdecode(path), [path]:
        for make in penstock.TextLineDataset, penstock.TFRecordDataset, penstock.Dataset.list_files, lambda path: penstock.experimental.CsvDataset(path, [""]):
            with pytest.raises(penstock.InvalidArgumentError, match=r"the path b'.*a\\xff.txt' is no text in UTF-8, .* take a glob that matches it"):
                make(given)
    assert [line.item() for line in penstock.TextLineDataset(tmp_path / "*.txt")] == [b"line"]


def test_a_mapped_array_whose_file_is_another_one_by_now(tmp_path):
    path, rows = str(tmp_path / "rows.npy"), np.arange(3000.0).reshape(100, 30)
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    assert [row.tolist() for row in penstock.Dataset.from_tensor_slices(mapped)] == rows.tolist()
    message = r"rows.npy, which has been deleted or replaced since: np.load maps what is there now, and np.array\(array\) copies what was"
    np.save(tmp_path / "other.npy", rows + 1)
    os.replace(tmp_path / "other.npy", path)
    with pytest.raises(penstock.FailedPreconditionError, match=message):
        penstock.Dataset.from_tensor_slices(mapped)
    os.remove(path)
    with pytest.raises(penstock.FailedPreconditionError, match=message):
        penstock.Dataset.from_tensor_slices(mapped)
    assert [row.tolist() for row in penstock.Dataset.from_tensor_slices(np.array(mapped))] == rows.tolist()


@pytest.mark.parametrize("count", [4, 10_000])
def test_a_mask_is_not_lost(count):
    values = np.ma.array(np.arange(count), mask=np.arange(count) == 2)
    for make in penstock.Dataset.from_tensor_slices, penstock.Dataset.from_tensors:
        with pytest.raises(TypeError, match=r": x is a masked array, and tensors have no masks: give array.filled\(value\)"):
            make({"x": values})
    whole = np.ma.array(np.arange(count), mask=False)
    assert [int(value) for value in penstock.Dataset.from_tensor_slices(whole)] == list(range(count))


def test_a_list_of_files_keeps_its_order_and_names_files_before_globs(tmp_path):
    for name in ("a", "b", "c[1]", "c1"):
        (tmp_path / name).write_text(name.upper() + "\n")
    paths = [str(tmp_path / name) for name in ("b", "c[1]", "a")]
    labels = penstock.Dataset.from_tensor_slices(["B", "C[1]", "A"])
    for made in (penstock.TextLineDataset, lambda files: penstock.Dataset.from_tensor_slices(files).flat_map(penstock.TextLineDataset)):
        assert [(bytes(x), bytes(y)) for x, y in penstock.Dataset.zip((made(paths), labels))] == [(b"B", b"B"), (b"C[1]", b"C[1]"), (b"A", b"A")]
    # tf.data's list_files sorts.
    assert elements(penstock.Dataset.list_files(paths[::-1], shuffle=False)) == [os.fsencode(path) for path in sorted(paths)]
    files = penstock.FilesDataset(paths).map(lambda x: x["bytes"])
    assert elements(files) == [b"B\n", b"C[1]\n", b"A\n"]
    (tmp_path / "d[1].csv").write_text("x\n1\n")
    (tmp_path / "d1.csv").write_text("x\n2\n")
    (batch,) = penstock.experimental.make_csv_dataset(str(tmp_path / "d[1].csv"), 2, num_epochs=1, shuffle=False)
    assert batch["x"].tolist() == [1]
