"""Tensors of every type and of any size, from tf.train.Example to a trainer, against tf.data's own (tests/golden/batch.json)."""

import json
import pathlib
import re

import numpy as np
import pytest

import penstock

GOLDEN = json.loads((pathlib.Path(__file__).resolve().parents[1] / "golden" / "batch.json").read_text())

# Of this environment, which may have no ml_dtypes.
pytestmark = pytest.mark.filterwarnings("ignore:bfloat16 tensors", "ignore:this trainer holds")

# The golden's stages, by what is seen in their text.
CASES = {
    "elements alone": r"^tfrecord[^|]*\| parse_example [^|]*'words'[^|]*$",
    "batches of strings": r"'names'.*\| batch \{ batch_size: 4 drop_remainder: false",
    "padded": r"padded_batch \{ batch_size: 4   drop_remainder: false",
    "padded with values": r"padded_batch .*<pad>",
    "ragged": r"'names'.*'words'[^|]*\| ragged_batch \{ batch_size: 4 drop_remainder: false",
    "images alone": r"channels=3\)' }$",
    "ragged images": r"channels=0\)' } \| ragged_batch",
    "every type alone": r"uint64 = uint64[^|]*$",
    "every type, padded": r"uint64 = uint64.*padded_batch",
    "every type, ragged": r"uint64 = uint64.*ragged_batch",
}


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % value


def flat(array, golden):
    if isinstance(golden, str):
        return fnv1a(array.tobytes())
    if array.dtype == object:
        return [value.hex() for value in array.reshape(-1)]
    if golden and isinstance(golden[0], str):  # the bytes of floats
        return [array.reshape(-1)[i : i + 1].tobytes().hex() for i in range(array.size)]
    return [int(value) for value in array.reshape(-1)]


def names_of(dtype):
    return {"string": ["object"], "bfloat16": ["bfloat16", "uint16"]}.get(dtype, [dtype])


def check(tensor, golden):
    if "splits" in golden:
        assert [splits.tolist() for splits in tensor.nested_row_splits] == golden["splits"]
        tensor = tensor.flat_values
        assert list(tensor.shape[1:]) == golden["inner"]
    else:
        assert list(tensor.shape) == golden["shape"]
    assert tensor.dtype.name in names_of(golden["dtype"])
    assert flat(tensor, golden["values"]) == golden["values"]


@pytest.fixture
def serve(remote, daemon, tmp_path):
    for name, digits in GOLDEN["files"].items():
        (tmp_path / name).write_bytes(bytes.fromhex(digits))

    def start(stages):
        text = 'name: "rows"\nring { slot_bytes: 1000000 }\n'
        text += "".join(f"stage {{ {stage} }}\n" for stage in stages.replace("FOLDER/", "").split(" | "))
        (tmp_path / "rows.textproto").write_text(text)
        created = remote("create", "rows.textproto")
        assert created.code == 0, created
        return penstock.attach("rows", socket=daemon.socket)

    return start


@pytest.mark.parametrize("name", CASES)
def test_a_trainer_gets_what_tensorflow_gives(serve, name):
    matching = [case for case in GOLDEN["cases"] if re.search(CASES[name], case["spec"])]
    assert len(matching) == 1, [case["spec"] for case in matching]
    steps = 0
    for batch, golden in zip(serve(matching[0]["spec"]), matching[0]["steps"], strict=True):
        assert sorted(batch) == sorted(golden)
        for key, tensor in batch.items():
            check(tensor, golden[key])
        steps += 1
    assert steps > 0


LISTS = "tfrecord { files: 'lists.tfrecord' } | parse_example { feature { key: 'id' int64 {} } "
LISTS += "feature { key: 'words' bytes { variable_length: true } } } | "


def test_valid_rows_of_a_batch_that_is_filled_up(serve):
    loader = serve(LISTS + "padded_batch { batch_size: 10 remainder: PAD padding_value { feature: 'id' int64_value: -1 } }")
    seen = []
    for batch in loader:
        assert batch["id"].shape == (10,) and len(batch["words"]) == 10
        assert loader.rows == 10
        assert batch["id"][loader.valid :].tolist() == [-1] * (10 - loader.valid)
        assert set(batch["words"][loader.valid :].reshape(-1).tolist()) <= {b""}
        seen += batch["id"][: loader.valid].tolist()
    assert loader.valid == 3
    assert seen == list(range(23))


def test_valid_rows_of_ragged_batches(serve):
    loader = serve(LISTS + "ragged_batch { batch_size: 15 remainder: PAD }")
    batches = [(batch["words"].row_lengths().tolist(), loader.rows, loader.valid) for batch in loader]
    assert [(rows, valid) for _, rows, valid in batches] == [(15, 15), (15, 8)]
    assert batches[1][0][8:] == [0] * 7


def test_the_last_batch_goes_on_with_the_first_rows(serve):
    loader = serve(LISTS + "ragged_batch { batch_size: 15 remainder: WRAP }")
    ids = [batch["id"].tolist() for batch in loader]
    assert ids == [list(range(15)), [*range(15, 23), *range(7)]]
    assert loader.valid == loader.rows == 15


def test_what_does_not_fit_a_batch_names_its_record(serve):
    with pytest.raises(penstock.InvalidArgumentError, match=r"rows of a batch have different shapes.*lists.tfrecord, record 1,"):
        list(serve(LISTS + "batch { batch_size: 4 }"))


def test_a_batch_larger_than_its_slot(serve):
    stages = LISTS + "map { out: 'words = words' } | padded_batch { batch_size: 20 padded_shape { feature: 'words' shape: 90000 } }"
    with pytest.raises(penstock.ResourceExhaustedError, match="raise ring { slot_bytes: N }"):
        list(serve(stages))


def test_signatures_and_the_command_line(serve, remote, tmp_path):
    serve(LISTS + "ragged_batch { batch_size: 10 }").close()
    shown = remote("validate", "rows.textproto")
    assert shown.code == 0, shown
    assert "words" in shown.out
    done = remote("run", "rows.textproto", "--out", "out")
    assert done.code == 0, done
    arrays = np.load(sorted((tmp_path / "out").glob("step-*.npz"))[0])
    assert arrays["words.row_splits_0"].tolist()[:3] == [0, 0, 1]
