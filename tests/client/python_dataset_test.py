"""penstock.Dataset over a private daemon: results against tf.data's, passes, resuming, lives and deaths."""

import copy
import gc
import itertools
import json
import os
import pathlib
import pickle
import re
import signal
import socket as socket_module
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

import penstock
from penstock._running import _daemon
from processes import forked_child, wait_until

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import dataset_cases  # noqa: E402

GOLDENS = json.loads((GOLDEN / "dataset.json").read_text())
RESULTS = GOLDENS["cases"]


def test_copies_and_pickles_of_datasets(tmp_path):
    numbers = np.arange(40_000)
    penstock.Dataset.range(5).save(str(tmp_path / "saved"))
    kinds = {
        "array": penstock.Dataset.from_tensor_slices(numbers).batch(1000),
        "shuffle": penstock.Dataset.range(50).shuffle(50, seed=3).batch(50),
        "drawn": penstock.Dataset.range(50).shuffle(50).batch(50),
        "loaded": penstock.Dataset.load(str(tmp_path / "saved")),
    }
    for name, dataset in kinds.items():
        twins = [copy.copy(dataset), copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset)), pickle.loads(pickle.dumps(dataset))]
        wanted = [x.tolist() for x in dataset]
        assert [[x.tolist() for x in twin] for twin in twins[1:]] == [wanted] * 3, name
    # What a copy stands on is not gone with what it was made of, and is not another one's then.
    copies = [copy.deepcopy(kinds["array"]), pickle.loads(pickle.dumps(kinds["array"]))]
    dataset = None
    del kinds, twins
    gc.collect()
    others = [penstock.Dataset.from_tensor_slices(-numbers) for _ in range(3)]
    assert all(np.concatenate(list(twin)).tolist() == numbers.tolist() for twin in copies) and len(others) == 3


def test_a_length_that_only_the_data_tells_is_asked_for():
    rows = penstock.Dataset.range(1, 9).flat_map(lambda x: penstock.Dataset.range(x).batch(10))
    with pytest.raises(penstock.TraceError, match=r"bucket_by_sequence_length returned None; .*np.shape\(x\)\[0\]"):
        rows.bucket_by_sequence_length(lambda x: x.shape[0], [3, 6], [2, 2, 2])
    buckets = rows.bucket_by_sequence_length(lambda x: np.shape(x)[0], [3, 6], [2, 2, 2])
    assert [x.shape for x in buckets] == [(2, 2), (2, 4), (2, 7), (1, 5), (1, 8)]


def test_integers_beyond_64_bits_are_refused_by_name():
    numbers = penstock.Dataset.range(3)
    for call, what in (
        (lambda: numbers.shuffle(3, seed=2**64), "seed"),
        (lambda: numbers.batch(2**63), "batch_size"),
        (lambda: numbers.take(-(2**63) - 1), "count"),
    ):
        with pytest.raises(ValueError, match=f"{what} is an integer of 64 bits, from -2\\*\\*63"):
            call()
    assert [int(x) for x in numbers.shuffle(1, seed=-(2**63)).take(2**63 - 1)] == [0, 1, 2]


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """What dataset_cases.py takes."""
    folder = tmp_path_factory.mktemp("cases")
    dataset_cases.write_files(folder)
    names = {name: getattr(penstock, name) for name in penstock.__all__}
    return types.SimpleNamespace(**names, np=np, folder=str(folder), length_of=lambda values: np.shape(values)[0], sizes_of=np.shape, to_number=penstock.io.string_to_number)


@pytest.fixture
def records(namespace):
    return dataset_cases.records(namespace)


def compare(found, expected, where, folder):
    if "dict" in expected:
        assert type(found) is dict and set(found) == set(expected["dict"]), where
        for key, value in expected["dict"].items():
            compare(found[key], value, f"{where}[{key!r}]", folder)
    elif "tuple" in expected:
        assert type(found) is tuple and len(found) == len(expected["tuple"]), where
        for i, value in enumerate(expected["tuple"]):
            compare(found[i], value, f"{where}[{i}]", folder)
    else:
        found = np.asarray(found)
        assert list(found.shape) == expected["shape"], where
        if expected["dtype"] == "string":
            plain = [value.replace(folder.encode(), b"FOLDER").hex() for value in found.ravel().tolist()]
            assert plain == expected["values"], where
        else:
            assert found.dtype.name == expected["dtype"], where
            wanted = np.array(expected["values"], found.dtype).reshape(found.shape)
            # TensorFlow's tanh is within 3 units in the last place of ours; all else is equal.
            np.testing.assert_allclose(found, wanted, rtol=4e-7 if found.dtype.kind == "f" else 0, err_msg=where)


@pytest.mark.parametrize("name", dataset_cases.CASES)
@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_elements_are_those_of_tf_data(namespace, name):
    dataset = dataset_cases.CASES[name](namespace)
    found = list(dataset)
    assert len(found) == len(RESULTS[name])
    for i, (element, expected) in enumerate(zip(found, RESULTS[name])):
        compare(element, expected, f"{name}, element {i}", namespace.folder)
    if dataset.cardinality() >= 0:
        assert len(dataset) == len(found)
    if found:
        check_spec(dataset.element_spec, found[0])


def check_spec(spec, element):
    if isinstance(element, dict):
        assert list(spec) == list(element)
        for key in element:
            check_spec(spec[key], element[key])
    elif isinstance(element, tuple):
        assert type(spec) is tuple and len(spec) == len(element)
        for inner_spec, inner in zip(spec, element):
            check_spec(inner_spec, inner)
    else:
        array = np.asarray(element)
        assert len(spec.shape) == array.ndim
        assert all(size in (None, found) for size, found in zip(spec.shape, array.shape))
        assert spec.dtype == (penstock.string if array.dtype == object else array.dtype)


# Where TensorFlow knows how many elements there are, and Penstock does not before it has read something; and the other way round.
NOT_COUNTED = (
    "list_files", "read_file_of_listed", "save_shards_in_turns", "save_shards_in_few_turns", "save_shards_in_blocks", "save_shards_gzip",
    "window_map_value",
)  # fmt: skip
COUNTED = (
    "sample_of_one_kind", "sample_by_weights_of_one", "skip_all_of_no_end", "unbatch", "unbatch_of_tuple", "unbatch_and_batch", "rebatch",
    "rebatch_sizes", "experimental_unbatch", "unbatch_in_front_of_an_unlike_row",
)  # fmt: skip


def plain_spec(spec):
    """As make_dataset_goldens.py writes it."""
    if isinstance(spec, dict):
        return {"dict": {key: plain_spec(part) for key, part in spec.items()}}
    if isinstance(spec, tuple):
        return {"tuple": [plain_spec(part) for part in spec]}
    return ["string" if spec.dtype is penstock.string else np.dtype(spec.dtype).name, list(spec.shape)]


@pytest.mark.parametrize("name", dataset_cases.CASES)
def test_what_is_known_beforehand_is_what_tf_data_knows(namespace, name):
    dataset = dataset_cases.CASES[name](namespace)
    expected = GOLDENS["specs"][name]
    assert plain_spec(dataset.element_spec) == expected["spec"]
    if name in NOT_COUNTED:
        assert dataset.cardinality() == penstock.UNKNOWN_CARDINALITY
    elif name in COUNTED:
        assert expected["cardinality"] < 0 <= dataset.cardinality()
    else:
        assert dataset.cardinality() == expected["cardinality"]


# What TensorFlow's errors are here: ValueError and TypeError of arguments that Python sees, TraceError of functions, InvalidArgumentError of
# what the daemon sees, and DataLossError where the data is to blame.
KINDS = {
    "InvalidArgumentError": (ValueError, penstock.InvalidArgumentError, penstock.DataLossError, penstock.TraceError),
    "InternalError": penstock.InvalidArgumentError,
    "ValueError": (ValueError, TypeError, penstock.InvalidArgumentError, penstock.TraceError),
    "TypeError": (TypeError, penstock.InvalidArgumentError, penstock.TraceError),
    "AttributeError": penstock.TraceError,
    "NotFoundError": penstock.NotFoundError,
    "DataLossError": penstock.DataLossError,
    "FailedPreconditionError": penstock.FailedPreconditionError,
}


@pytest.mark.parametrize("name", dataset_cases.MISTAKES)
def test_mistakes_are_errors_as_in_tf_data(namespace, name):
    kinds = penstock.NotFoundError if name == "list_files, none" else KINDS[GOLDENS["mistakes"][name]]
    with pytest.raises(kinds):
        list(itertools.islice(iter(dataset_cases.MISTAKES[name](namespace)), 100))


def test_every_case_has_a_golden():
    assert set(RESULTS) == set(GOLDENS["specs"]) == set(dataset_cases.CASES)
    assert set(GOLDENS["mistakes"]) == set(dataset_cases.MISTAKES)


# --- passes and orders ---


def values(dataset):
    return [int(x) for x in dataset]


def batched(dataset):
    """The values of a dataset of numbers, in batches, so that none is held."""
    return np.concatenate([np.array(batch) for batch in dataset.batch(64)]).tolist()


def test_each_for_is_a_pass_of_its_own():
    dataset = penstock.Dataset.range(100).map(lambda x: x * 3)
    first, second = iter(dataset), iter(dataset)
    assert int(next(first)) == 0 and int(next(first)) == 3
    assert int(next(second)) == 0
    assert int(next(first)) == 6
    assert batched(dataset) == batched(dataset) == list(range(0, 300, 3))


def test_passes_over_a_shuffle_differ_and_are_the_same_in_every_process():
    script = "import penstock\nd = penstock.Dataset.range(50).shuffle(20, seed=7).batch(50)\n"
    script += "print([next(iter(d)).tolist() for _ in range(3)])"
    run = [subprocess.check_output([sys.executable, "-c", script]) for _ in range(2)]
    assert run[0] == run[1]
    passes = json.loads(run[0])
    assert all(sorted(order) == list(range(50)) for order in passes)
    assert len({tuple(order) for order in passes}) == 3
    # The first pass is that of the spec itself, which every daemon runs.
    dataset = penstock.Dataset.range(50).shuffle(20, seed=7).batch(50)
    with dataset.loader(socket=_daemon.private_socket()) as served:
        assert next(served).tolist() == passes[0]


def test_a_shuffle_that_is_not_reshuffled():
    dataset = penstock.Dataset.range(50).shuffle(50, seed=3, reshuffle_each_iteration=False)
    assert batched(dataset) == batched(dataset) != list(range(50))
    twice = batched(dataset.repeat(2))
    assert twice[:50] == twice[50:]
    unseeded = penstock.Dataset.range(50).shuffle(50, reshuffle_each_iteration=False)
    assert batched(unseeded) == batched(unseeded)


def test_without_a_seed_orders_differ():
    orders = {tuple(batched(penstock.Dataset.range(50).shuffle(50))) for _ in range(3)}
    assert len(orders) == 3
    dataset = penstock.Dataset.range(50).shuffle(50)
    assert batched(dataset) != batched(dataset)


def _drawing(dataset):
    """Functions that draw, each with a seed of its own but for those that are alike."""
    draw = penstock.functions.random_uniform
    normal = penstock.functions.random_normal
    return dataset.map(lambda x: (draw(), draw(), draw(seed=3) + normal(None, 0, 1, "float32", 4), normal([2], seed=None)))


def test_random_functions_without_a_seed_draw_anew_in_each_pass():
    dataset = _drawing(penstock.Dataset.range(50))
    first, second = (np.array([np.hstack(element) for element in dataset]) for _ in range(2))
    assert (first[:, 2] == second[:, 2]).all() and (first[:, 0] != first[:, 1]).all()
    assert (first[:, [0, 1, 3, 4]] != second[:, [0, 1, 3, 4]]).all()
    # Who asks for the text alone leaves them to the daemon, as those of shuffles.
    assert dataset.spec_text().count("seed=") == 2


def test_each_copy_of_an_element_draws_for_itself():
    D, draw = penstock.Dataset, penstock.functions.random_uniform
    images = np.arange(8 * 16 * 16 * 3, dtype=np.uint8).reshape(8, 16, 16, 3)
    two = D.from_tensor_slices(images).map(lambda x: (x, draw())).flat_map(lambda x, a: D.from_tensors((x, a)).repeat(2))
    views = list(two.map(lambda x, a: (penstock.image.random_crop(x, [4, 4, 3], seed=1), a)).as_numpy_iterator())
    assert len(views) == 16
    for (first, a), (second, b) in zip(views[::2], views[1::2]):
        assert (first != second).any() and a == b
    windows = D.range(30).window(5, 1, drop_remainder=True).flat_map(lambda window: window).map(lambda x: draw())
    assert len({float(x) for x in windows}) == 26 * 5


def test_a_pass_with_random_functions_without_a_seed_goes_on_from_its_state():
    dataset = _drawing(penstock.Dataset.range(60).filter(lambda x: penstock.functions.random_uniform() < 0.7).shuffle(9))
    dataset = dataset.scan(np.float32(0), lambda total, x: (total + x[0], (total, x)))
    iterator = iter(dataset)
    head = [next(iterator)[0].tolist() for _ in range(7)]
    state = iterator.state_dict()
    tail = [[np.hstack((total, *x)).tolist()] for total, x in iterator]
    assert len(head) + len(tail) < 60
    for again in (dataset, pickle.loads(pickle.dumps(dataset))):
        resumed = iter(again)
        resumed.load_state_dict(state)
        assert [[np.hstack((total, *x)).tolist()] for total, x in resumed] == tail


def test_what_a_file_keeps_is_drawn_once(tmp_path):
    dataset = penstock.Dataset.range(20).map(lambda x: penstock.functions.random_uniform()).cache(str(tmp_path / "kept"))
    first, second = ([float(x) for x in dataset] for _ in range(2))
    assert first == second


def test_datasets_made_of_one_another_count_passes_together():
    dataset = penstock.Dataset.range(50).shuffle(50, seed=1)
    assert len({tuple(batched(dataset.take(50))) for _ in range(3)}) == 3


@pytest.mark.filterwarnings("ignore:this trainer holds")
@pytest.mark.parametrize("made", [
    lambda numbers, name: numbers.shuffle(8, seed=1),
    lambda numbers, name: numbers.shuffle(50, seed=1, name=name),
    lambda numbers, name: penstock.Dataset.sample_from_datasets([numbers, numbers.map(lambda x: x + 100)], [0.3, 0.7], seed=1),
    lambda numbers, name: penstock.Dataset.zip(numbers, penstock.Dataset.random(seed=1)).map(lambda x, drawn: x * 1000 + drawn % 1000),
])
def test_what_is_drawn_by_one_seed_stays_paired(made):
    # Behind another one, so that the stages' own names have other numbers.
    behind = [penstock.Dataset.range(50).shuffle(50, seed=2), penstock.Dataset.random(seed=2)]
    pair = [made(penstock.Dataset.range(50), name) for name in ("left", None)]
    rows = [tuple(int(x) for x in row[2:]) for row in penstock.Dataset.zip(*behind, *pair)]
    assert len(rows) == 50 and all(left == right for left, right in rows)
    assert [left for left, _ in rows] != list(range(50))


def test_lists_of_files_that_are_shuffled_by_one_seed_stay_paired(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
        for number in range(20):
            (tmp_path / folder / f"{number:02}").write_bytes(b"")
    images, masks = (penstock.Dataset.list_files(f"{tmp_path}/{folder}/*", seed=3) for folder in ("images", "masks"))
    names = [tuple(path.item().decode()[-2:] for path in row) for row in penstock.Dataset.zip(images, masks)]
    assert all(image == mask for image, mask in names) and names != sorted(names)


def test_a_shuffle_in_two_places_counts_a_pass_once():
    shuffled = penstock.Dataset.range(8).shuffle(8, seed=1)
    pairs = penstock.Dataset.zip(shuffled, shuffled)

    def listed(iterator):
        return [tuple(map(int, pair)) for pair in iterator]

    first, second = (listed(penstock.DatasetIterator(pairs, number=number)) for number in range(2))
    assert listed(pairs) == first != second
    iterator = iter(pairs)
    head = listed(itertools.islice(iterator, 3))
    state = iterator.state_dict()
    assert head + listed(iterator) == second
    # The first pass is that of the spec itself, and a state has the seeds of its pass.
    with pairs.loader(_daemon.private_socket()) as served:
        assert listed(served) == first
    resumed = iter(pairs)
    resumed.load_state_dict(state)
    assert head + listed(resumed) == second


def test_a_global_shuffle(records):
    first = [bytes(r.item()) for r in itertools.islice(records.global_shuffle(seed=5), 12)]
    assert sorted(first) == sorted(bytes(r.item()) for r in itertools.islice(records, 12))
    again = [bytes(r.item()) for r in itertools.islice(records.global_shuffle(seed=5), 12)]
    assert first == again
    blocks = records.global_shuffle(seed=5, block_size=3, buffer_size=6, read_first=True)
    assert sorted(bytes(r.item()) for r in itertools.islice(blocks, 12)) == sorted(first)
    with pytest.raises(penstock.InvalidArgumentError, match=r'"shuffle" was made at .*python_dataset_test.py:\d+'):
        next(iter(records.batch(2).global_shuffle()))


def test_two_datasets_at_once_share_one_daemon():
    one, two = iter(penstock.Dataset.range(1000)), iter(penstock.Dataset.range(5000, 6000).batch(2))
    for i in range(200):
        assert int(next(one)) == i
        assert next(two).tolist() == [5000 + 2 * i, 5001 + 2 * i]
    threads = [threading.Thread(target=lambda: results.append(sum(batched(penstock.Dataset.range(500))))) for _ in range(4)]
    results = []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [sum(range(500))] * 4


def test_messages_quote_any_bytes_and_end_with_a_whole_character(tmp_path):
    broken = np.empty(1, object)
    broken[0] = b'{"features": {"feature": {"\xff": 3}}}'
    with pytest.raises(penstock.DataLossError, match=r"\\xff"):
        next(iter(penstock.Dataset.from_tensor_slices(broken).map(penstock.io.decode_json_example)))
    # What is longer than a ring's message is cut.
    for begin in ("", "x"):
        path = "/".join([begin, *(["ü" * 100] * 8)])
        with pytest.raises(penstock.Error, match="üü"):
            next(iter(penstock.Dataset.from_tensor_slices([str(tmp_path) + path]).map(penstock.io.read_file)))


# --- resuming ---


def test_a_pass_goes_on_from_its_state():
    dataset = penstock.Dataset.range(1000).shuffle(100).repeat().batch(16)
    iterator = iter(dataset)
    fresh = iterator.state_dict()
    head = [next(iterator).tolist() for _ in range(40)]
    state = iterator.state_dict()
    assert state["step"] == 39 and len(state["cursor"]) <= 1024
    tail = [next(iterator).tolist() for _ in range(40)]

    resumed = iter(dataset)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert [next(resumed).tolist() for _ in range(40)] == tail
    # The one that is read now goes back, also to the beginning.
    iterator.load_state_dict(state)
    assert [next(iterator).tolist() for _ in range(40)] == tail
    iterator.load_state_dict(fresh)
    assert [next(iterator).tolist() for _ in range(40)] == head


def test_a_state_goes_into_json_and_back():
    dataset = penstock.Dataset.range(1000).shuffle(100, seed=3).batch(16)
    iterator = iter(dataset)
    for _ in range(20):
        next(iterator)
    state = iterator.state_dict()
    text = json.dumps(state, default=bytes.hex)
    resumed = iter(dataset)
    resumed.load_state_dict(json.loads(text))
    assert resumed.state_dict() == state
    assert next(resumed).tolist() == next(iterator).tolist()
    for wrong in ("no hex", state["cursor"].hex()[1:], 7, None):
        with pytest.raises(penstock.InvalidArgumentError, match=r"a cursor is bytes, or their hex text \(bytes.hex\)"):
            resumed.load_state_dict({**state, "cursor": wrong})


def test_a_state_goes_into_another_process():
    make = "penstock.Dataset.range(500).shuffle(100).batch(10)"
    iterator = iter(eval(make))
    for _ in range(20):
        next(iterator)
    script = f"import penstock\ni = iter({make})\ni.load_state_dict({iterator.state_dict()!r})\nprint([b.tolist() for b in i])"
    # Held batches beyond the ring's share are copies; the warning of that is not the subject.
    tail = json.loads(subprocess.check_output([sys.executable, "-W", "ignore", "-c", script]))
    assert tail == [np.array(batch).tolist() for batch in iterator]
    assert len(tail) == 30


def test_passes_behind_a_resumed_one_are_those_that_would_have_followed():
    make = "penstock.Dataset.zip(penstock.Dataset.range(20).shuffle(20, seed=3), penstock.Dataset.range(20).shuffle(20, seed=4))"
    dataset = eval(make)
    for _ in range(2):
        list(dataset)
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    state = iterator.state_dict()
    passes = [[list(map(int, pair)) for pair in rest] for rest in (iterator, dataset, dataset)]
    script = f"import json, penstock\nd = {make}\ni = iter(d)\ni.load_state_dict(json.loads({json.dumps(state, default=bytes.hex)!r}))\n"
    script += "print([[list(map(int, pair)) for pair in rest] for rest in (i, d, d)])"
    assert json.loads(subprocess.check_output([sys.executable, "-W", "ignore", "-c", script])) == passes
    # In the process that has gone on, too: and what holds no numbers of passes leaves those as they are.
    again = iter(dataset)
    again.load_state_dict(state)
    assert [[list(map(int, pair)) for pair in rest] for rest in (again, dataset)] == passes[:2]
    del state["passes"]
    again = iter(dataset)
    again.load_state_dict(state)
    assert [[list(map(int, pair)) for pair in rest] for rest in (again, dataset)] == [passes[0], passes[2]]


def test_a_state_of_another_dataset_is_refused():
    iterator = iter(penstock.Dataset.range(500).shuffle(100, seed=1).batch(10))
    next(iterator)
    other = iter(penstock.Dataset.range(500).shuffle(50, seed=1).batch(10))
    other.load_state_dict(iterator.state_dict())
    with pytest.raises(penstock.Error, match="cursor"):
        next(other)
    with pytest.raises(penstock.InvalidArgumentError, match="cursor, seeds"):
        other.load_state_dict({"step": 3})


# --- errors ---


def test_an_error_names_the_line_that_made_the_stage(tmp_path):
    dataset = penstock.TFRecordDataset(str(tmp_path / "nothing-*"))
    dataset = dataset.batch(3)
    with pytest.raises(penstock.NotFoundError) as error:
        next(iter(dataset))
    assert 'stage "tfrecord" was made at' in str(error.value)
    assert 'dataset = penstock.TFRecordDataset(str(tmp_path / "nothing-*"))' in str(error.value)
    with pytest.raises(penstock.NotFoundError, match="was made at"):
        dataset.element_spec


def test_stages_are_named_as_the_daemon_names_them():
    number = penstock.Dataset.range(4)
    number = number.map(lambda x: x + 1)
    pair = penstock.Dataset.zip((number, number.map(lambda x: x + 2)))
    bad = pair.map(lambda a, b: a.reshape(3))  # the bad one
    with pytest.raises(penstock.InvalidArgumentError, match=r"# the bad one"):
        bad.element_spec
    nested = number.map(lambda x: x.reshape(5))  # inside
    with pytest.raises(penstock.InvalidArgumentError, match=r"# inside"):
        penstock.Dataset.zip((number, nested)).element_spec


def test_errors_of_the_data_name_the_line_too(tmp_path):
    path = tmp_path / "bad.tfrecord"
    dataset_cases.tfrecord_files.write(path, [b"\xff\xff\xff"])
    dataset = penstock.TFRecordDataset(path).parse_example({"x": penstock.io.FixedLenFeature([], penstock.int64)})
    with pytest.raises(penstock.DataLossError, match=r"(?s)bad.tfrecord, record 0.*was made at"):
        next(iter(dataset))


def test_mistakes_are_told_before_anything_runs(namespace):
    numbers = penstock.Dataset.range(5)
    cases = [
        (lambda: numbers.batch(0), ValueError, "batch_size is at least 1: 0"),
        (lambda: numbers.batch(2.5), TypeError, "batch_size is an integer, not 2.5"),
        (lambda: numbers.take(True), TypeError, "count is an integer, not True"),
        (lambda: numbers.shard(3, 3), ValueError, "3 of 3"),
        (lambda: numbers.apply(lambda d: 3), TypeError, "gives a Dataset, not int"),
        (lambda: numbers.concatenate(3), TypeError, "takes a Dataset, not int"),
        (lambda: numbers.concatenate(numbers.enumerate()), TypeError, "one structure"),
        (lambda: penstock.Dataset.zip([numbers, 3]), TypeError, r"\[1\] is of type int"),
        (lambda: penstock.Dataset.range(1, 2, 0), ValueError, "step is not 0"),
        (lambda: penstock.Dataset.range(), TypeError, "1 to 3 integers"),
        (lambda: penstock.TFRecordDataset([]), ValueError, "the list is empty"),
        (lambda: penstock.TFRecordDataset("x", compression_type="LZ4"), ValueError, "GZIP"),
        (lambda: penstock.Dataset.from_generator(3), TypeError, "a function that returns an iterable"),
        (lambda: numbers.windo, AttributeError, "no attribute 'windo'"),
        (lambda: len(numbers.repeat()), TypeError, "infinite"),
        (lambda: len(dataset_cases.records(namespace)), TypeError, "unknown"),
        (lambda: penstock.io.FixedLenFeature([2], penstock.string, ["a", "b"])._parsed_fields("k"), ValueError, "'k'"),
        (lambda: numbers.parse_example({"k": penstock.io.FixedLenFeature([], np.int32)}), ValueError, "not int32"),
        (lambda: numbers.parse_example({"k": 3}), ValueError, "'k' is a int"),
        (lambda: numbers.parse_example({}), ValueError, "at least one"),
    ]
    for function, kind, message in cases:
        with pytest.raises(kind, match=message):
            function()


def test_damaged_records_are_skipped_on_demand(tmp_path):
    path = tmp_path / "damaged.tfrecord"
    dataset_cases.tfrecord_files.write(path, [b"one", b"two", b"three"])
    data = bytearray(path.read_bytes())
    data[19 + 12] ^= 1  # a byte of the second record's payload
    path.write_bytes(bytes(data))
    with pytest.raises(penstock.DataLossError):
        list(penstock.TFRecordDataset(path))
    kept = penstock.TFRecordDataset(path, on_damage="skip_record", max_skipped=1)
    assert [record.item() for record in itertools.islice(kept, 5)] == [b"one", b"three"]


# --- specs ---


def test_a_spec_runs_elsewhere(tmp_path, namespace):
    dataset = dataset_cases.CASES["subscripts"](namespace).shuffle(4, seed=9).batch(4)
    path = tmp_path / "mine.textproto"
    dataset.save_spec(path)
    assert path.read_text() == dataset.spec_text("mine") == dataset.to_textproto("mine")
    dataset.save_spec(tmp_path / "mine.train.textproto")
    assert (tmp_path / "mine.train.textproto").read_text() == dataset.spec_text("mine.train")
    program = _daemon.find_program()[: -len("penstockd")] + "penstock"
    out = tmp_path / "out"
    subprocess.run([program, "run", path, "--out", out], check=True, stdout=subprocess.DEVNULL)
    with np.load(sorted(out.iterdir())[0]) as arrays:
        found = {int(name): arrays[name] for name in arrays}
    first = next(iter(dataset))
    assert sorted(found) == list(range(5))
    for i, array in found.items():
        np.testing.assert_array_equal(array, first[i])


def test_a_served_pipeline(namespace):
    dataset = penstock.Dataset.range(40).batch(4)
    socket = _daemon.private_socket()
    with dataset.loader(socket, name="served") as loader:
        np.testing.assert_array_equal(next(loader), [0, 1, 2, 3])
        assert loader.stats()["batches"] == 1 and loader.step == 0
        with pytest.raises(penstock.AlreadyExistsError, match=r'penstock.attach\(.served.\)'):
            next(dataset.loader(socket, name="served"))
        with penstock.attach("served", socket, group="other") as other:
            # A newcomer begins with what the ring still has.
            assert next(other)[0] % 4 == 0
    # It stays until it is deleted.
    penstock._control.delete(socket, "served")
    with pytest.raises(penstock.NotFoundError):
        penstock.attach("served", socket)


def test_a_pipeline_that_has_a_name_goes_to_a_state():
    dataset = penstock.Dataset.range(40).shuffle(40, seed=1).batch(4)
    socket = pathlib.Path(_daemon.private_socket())
    with dataset.loader(socket, name="goes_on") as loader:
        start = loader.state_dict()
        loader.load_state_dict(start)
        batches = [next(loader).tolist() for _ in range(3)]
        state = loader.state_dict()
        following = next(loader).tolist()
        loader.load_state_dict(json.loads(json.dumps(state, default=bytes.hex)))
        assert loader.state_dict() == state
        assert next(loader).tolist() == following and following not in batches
        with pytest.raises(penstock.FailedPreconditionError, match="before its first element"):
            loader.load_state_dict(start)
        other = iter(penstock.Dataset.range(40).shuffle(40, seed=2).batch(4))
        next(other)
        with pytest.raises(penstock.FailedPreconditionError, match="another stream: its seeds differ"):
            loader.load_state_dict(other.state_dict())
        # It is the pipeline that others read.
        with penstock.attach("goes_on", socket, group="other") as reader:
            assert len(next(reader)) == 4
    penstock._control.delete(str(socket), "goes_on")


def test_a_daemon_that_does_not_answer_can_be_left(tmp_path):
    class Left(Exception):
        pass

    def leave(number, frame):
        raise Left

    with socket_module.socket(socket_module.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        before = signal.signal(signal.SIGALRM, leave)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(Left):
                next(penstock.Dataset.range(4).loader(str(tmp_path / "silent.sock"), name="never"))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def test_options():
    options = penstock.Options()
    options.experimental_deterministic = False
    options.autotune.enabled = True
    options.threading.private_threadpool_size = 3
    dataset = penstock.Dataset.range(9).with_options(options)
    assert "workers: 3" in dataset.spec_text()
    assert dataset.take(3).options().autotune.enabled is True
    assert "workers: 3" in penstock.Dataset.zip((penstock.Dataset.range(2), dataset)).spec_text()
    assert batched(dataset) == list(range(9))
    numpys = penstock.Options()
    numpys.threading.private_threadpool_size = np.int64(2)
    assert "workers: 2\n" in dataset.with_options(numpys).spec_text()
    # What is written behind this changes no dataset, nor one dataset another.
    options.threading.private_threadpool_size = 5
    dataset.options().threading.private_threadpool_size = 6
    more = penstock.Options()
    more.threading.max_intra_op_parallelism = 1
    later = dataset.with_options(more)
    later.options().threading.private_threadpool_size = 7
    assert "workers: 3" in dataset.spec_text() and "workers: 3" in later.spec_text()
    assert later.options().threading.max_intra_op_parallelism == 1


def test_repr_and_explain():
    dataset = penstock.Dataset.range(4).enumerate().map(lambda i, x: {"i": i, "both": (i, x)}).batch(2)
    assert repr(dataset) == "<Dataset range | enumerate | map | batch, elements {i, both: (a tensor, a tensor)}>"
    assert "map" in dataset.explain()
    assert repr(penstock.TFRecordDataset("x")) == "<TFRecordDataset tfrecord, elements a tensor>"


# --- lives and deaths ---


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def daemon_descriptors():
    return len(os.listdir(f"/proc/{_daemon.private_process()}/fd"))


def pipelines():
    """The names of the private daemon's pipelines."""
    program = _daemon.find_program()[: -len("penstockd")] + "penstock"
    out = subprocess.check_output([program, "--socket", _daemon.private_socket(), "list"], text=True)
    return [line.split()[0] for line in out.splitlines() if line.startswith("dataset_")]


def test_a_loop_that_is_left_early_leaves_nothing_behind():
    dataset = penstock.Dataset.range(10**9).batch(100)
    for batch in dataset:
        if batch[0] >= 1000:
            break
    gc.collect()
    wait_until(lambda: pipelines() == [])
    # What is still held stays readable.
    np.testing.assert_array_equal(batch, np.arange(1000, 1100))


def test_many_datasets_leak_no_descriptors():
    def cell():
        dataset = penstock.Dataset.range(1000).map(lambda x: x + 1).shuffle(10, seed=1).batch(8)
        dataset.element_spec
        for _ in itertools.islice(dataset, 3):
            pass

    cell()
    gc.collect()
    wait_until(lambda: pipelines() == [])
    before, daemon_before = descriptors(), daemon_descriptors()
    for _ in range(300):  # more than a daemon may have at a time
        cell()
    gc.collect()
    assert descriptors() <= before
    wait_until(lambda: pipelines() == [])
    wait_until(lambda: daemon_descriptors() <= daemon_before)


def test_close():
    iterator = iter(penstock.Dataset.range(10).batch(2))
    with iterator:
        first = next(iterator)
    for use in (lambda: next(iterator), lambda: iterator.rows):
        with pytest.raises(penstock.FailedPreconditionError, match="the iterator is closed"):
            use()
    assert iterator.closed and iterator.stats()["batches"] == 1
    np.testing.assert_array_equal(first, [0, 1])
    iterator.close()
    with pytest.raises(AttributeError):
        iterator.no_such_thing


def test_whether_an_iterator_is_closed_starts_nothing():
    iterator = iter(penstock.Dataset.range(10))
    assert not iterator.closed and iterator._loader is None
    iterator.close()
    assert iterator.closed and iterator.stats() == {} and iterator._loader is None


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


OWNER = """
import os, sys, penstock
from penstock._running import _daemon
iterator = iter(penstock.Dataset.range(10**9).batch(10))
next(iterator)
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        # It holds all of the owner's descriptors, and outlives it.
        sys.stdin.read()
        os._exit(0)
print(_daemon.private_process(), _daemon.private_socket(), flush=True)
if "end" not in sys.argv:
    sys.stdin.read()
"""


def start_owner(*arguments):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid, socket = owner.stdout.readline().split()
    return owner, int(pid), pathlib.Path(socket)


@pytest.mark.parametrize("how", ["end", "kill", "kill while a fork lives", "interrupt"])
def test_the_daemon_ends_with_its_owner(how):
    owner, pid, socket = start_owner("end" if how == "end" else "", "fork" if "fork" in how else "")
    if how == "interrupt":
        os.kill(owner.pid, signal.SIGINT)
    elif how != "end":
        owner.kill()
    owner.wait(30)
    wait_until(lambda: not is_alive(pid))
    wait_until(lambda: not socket.parent.exists())
    owner.stdin.close()
    owner.stdout.close()


def test_ctrl_c_of_a_terminal_does_not_reach_the_daemon():
    penstock.Dataset.range(1).element_spec
    assert os.getsid(_daemon.private_process()) != os.getsid(0)


def shuffled():
    return penstock.Dataset.range(40000).shuffle(100).map(lambda x: x * 3).batch(10)


def kill_daemon():
    os.kill(_daemon.private_process(), signal.SIGKILL)


def test_fault_48_an_iteration_goes_on_where_the_daemon_is_killed():
    dataset = shuffled()
    iterator, other = iter(dataset), iter(penstock.Dataset.range(10**9).batch(10))
    batches, held = [next(iterator).copy() for _ in range(20)], next(other)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            kill_daemon()
            batches += (batch.copy() for batch in itertools.islice(iterator, 20))
        batches += (batch.copy() for batch in iterator)
    assert len(told) == 3
    for warning in told:
        assert re.match("the private penstockd was killed, .* goes on behind step [0-9]+$", str(warning.message))
    again = iter(dataset)
    again.load_state_dict({**iterator.state_dict(), "cursor": b"", "step": -1})
    assert np.concatenate(batches).tolist() == np.concatenate(list(again)).tolist()
    assert iterator.step == 3999
    # One that was not asked for anything while daemons came and went.
    with pytest.warns(RuntimeWarning, match="behind step"):
        assert [int(batch[0]) for batch in itertools.islice(other, 20)] == list(range(10, 210, 10))
    assert held.tolist() == list(range(10))


def test_an_iteration_that_draws_without_a_seed_goes_on_where_the_daemon_is_killed():
    dataset = _drawing(penstock.Dataset.range(4000)).map(lambda a, b, c, d: a).batch(10)
    iterator = iter(dataset)
    batches = [next(iterator).copy() for _ in range(20)]
    kill_daemon()
    with pytest.warns(RuntimeWarning, match="behind step"):
        batches += (batch.copy() for batch in iterator)
    again = iter(dataset)
    again.load_state_dict({**iterator.state_dict(), "cursor": b"", "step": -1})
    assert np.concatenate(batches).tolist() == np.concatenate([batch.copy() for batch in again]).tolist()


def test_a_new_daemon_goes_on_behind_what_another_thread_is_being_given(monkeypatch):
    dataset = penstock.Dataset.range(10**9).batch(3).ragged_batch(2)
    iterator = iter(dataset)
    next(iterator)
    while iterator.stats()["published"] <= iterator.stats()["position"]:
        time.sleep(0.001)
    kill_daemon()
    assert _daemon.has_died(iterator._private_socket)
    # The last element but one of those that the dead daemon has left.
    stats = iterator.stats()
    for _ in range(stats["published"] - stats["position"] - 1):
        next(iterator)
    begun, go_on, taken = threading.Event(), threading.Event(), []
    construct = penstock.RaggedTensor.__init__

    def construct_late(self, *arguments):
        if threading.current_thread() is other:
            begun.set()
            go_on.wait()
        construct(self, *arguments)

    def sleep(seconds):
        go_on.set()
        time.sleep(seconds)

    monkeypatch.setattr(penstock.RaggedTensor, "__init__", construct_late)
    monkeypatch.setattr(penstock._running._iterator, "time", types.SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    other = threading.Thread(target=lambda: taken.append(next(iterator)))
    other.start()
    try:
        begun.wait()
        with pytest.warns(RuntimeWarning, match="behind step"):
            taken.append(next(iterator))
    finally:
        go_on.set()
        other.join()
    assert sorted(int(one.values[0]) // 6 for one in taken) == [stats["published"] - 1, stats["published"]]


def test_a_daemon_that_dies_again_and_again_without_an_element_is_an_error():
    iterator = iter(penstock.Dataset.range(10**15).filter(lambda x: x < 0))
    iterator.state_dict()
    kill_daemon()
    ended = threading.Event()

    def kill_the_next():
        first = _daemon.private_process()
        while not ended.wait(0.05):
            pid = _daemon.private_process()
            if pid not in (None, first):
                time.sleep(0.3)
                return os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_next)
    killer.start()
    try:
        with pytest.warns(RuntimeWarning, match="behind step -1"):
            with pytest.raises(penstock.UnavailableError, match="gone away"):
                next(iterator)
    finally:
        ended.set()
        killer.join()


def test_a_daemon_that_was_stopped_is_an_error():
    iterator = iter(penstock.Dataset.range(10**9).batch(10))
    next(iterator)
    penstock.stop_private_daemon()
    with pytest.raises(penstock.UnavailableError) as caught:
        for _ in range(100):
            next(iterator)
    assert str(caught.value).count("start it again") == 1
    assert batched(penstock.Dataset.range(5)) == list(range(5))


def test_the_position_of_threads_that_share_an_iterator_is_that_of_the_last_batch():
    for _ in range(30):
        iterator = iter(penstock.Dataset.range(400).batch(10))
        threads = [threading.Thread(target=lambda: [None for _ in iterator]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert iterator.state_dict()["step"] == 39


def test_processes_of_equal_numbers_share_a_daemon(monkeypatch):
    # As those of two containers have, in which both are process 1.
    iterators = [iter(penstock.Dataset.range(3)) for _ in range(2)]
    for iterator in iterators:
        monkeypatch.setattr(penstock._running._iterator, "_numbers", itertools.count(1))
        assert int(next(iterator)) == 0
    assert [int(next(iterator)) for iterator in iterators] == [1, 1]


def test_threads_share_an_iterator():
    iterator = iter(penstock.Dataset.range(20000).batch(10))
    firsts = []

    def run():
        for batch in iterator:
            firsts.append(int(batch[0]))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(firsts) == list(range(0, 20000, 10))


def test_a_process_without_standard_streams():
    program = """
import os, sys
os.close(0)
os.close(2)
import penstock
print(sum(1 for _ in penstock.Dataset.range(100)))
"""
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True).stdout == "100\n"


def in_a_fork(function):
    """What `function` returns in a forked child, which ends as multiprocessing's do."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        result = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(result)


def test_a_forked_child_has_a_daemon_of_its_own():
    dataset = penstock.Dataset.range(10**9).batch(10)
    iterator = iter(dataset)
    next(iterator)
    parents = _daemon.private_process()

    def child():
        try:
            next(iterator)
            error = "none"
        except penstock.FailedPreconditionError as caught:
            error = str(caught)
        iterator.close()
        own = batched(penstock.Dataset.range(7))
        pid = _daemon.private_process()
        # os._exit runs no exit handlers: the daemon notices the death by itself.
        return [error, own, pid]

    error, own, pid = in_a_fork(child)
    assert "which forked this one" in error
    assert own == list(range(7))
    assert pid != parents
    wait_until(lambda: not is_alive(pid))
    # The parent's go on.
    assert next(iterator).tolist() == list(range(10, 20))
    assert batched(penstock.Dataset.range(3)) == [0, 1, 2]
    assert _daemon.private_process() == parents


def test_a_forked_child_does_not_keep_a_pipeline():
    iterator = iter(penstock.Dataset.range(10**9).batch(10))
    next(iterator)
    assert len(pipelines()) == 1
    # It holds the iterator's connection.
    with forked_child():
        iterator.close()
        wait_until(lambda: pipelines() == [])


def test_a_daemon_that_cannot_be_found_or_started(monkeypatch, tmp_path):
    penstock.stop_private_daemon()
    monkeypatch.setenv("PENSTOCKD", str(tmp_path / "nothing"))
    with pytest.raises(penstock.NotFoundError, match="PENSTOCKD is no program"):
        next(iter(penstock.Dataset.range(3)))
    program = tmp_path / "penstockd"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PENSTOCKD", str(program))
    before = descriptors()
    with pytest.raises(penstock.UnavailableError, match="exit status 3"):
        next(iter(penstock.Dataset.range(3)))
    assert descriptors() == before
    monkeypatch.delenv("PENSTOCKD")
    assert batched(penstock.Dataset.range(3)) == [0, 1, 2]


# --- NumPy ---


def test_numpys_iterator_gives_scalars():
    dataset = penstock.Dataset.from_tensor_slices({"a": [1, 2], "b": ([b"one", b"two"], np.zeros((2, 3)))})
    iterator = dataset.as_numpy_iterator()
    first = next(iterator)
    assert (type(first["a"]), first["a"]) == (np.int64, 1)
    assert (type(first["b"][0]), first["b"][0].decode()) == (bytes, "one")
    assert first["b"][1].shape == (3,)
    state = iterator.state_dict()
    again = dataset.as_numpy_iterator()
    again.load_state_dict(state)
    assert [element["b"][0] for element in again] == [b"two"]
    # Behind a batch everything has axes.
    assert next(dataset.batch(2).as_numpy_iterator())["a"].tolist() == [1, 2]
