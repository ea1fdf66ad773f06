"""Dataset.json_lines and decode_json: values beside those of Python's json on drawn documents, damage, and what is refused."""

import gzip
import json
import math
import pathlib
import sys

import numpy as np
import pytest

import penstock

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import json_cases  # noqa: E402

FEATURES = {name: penstock.JsonFeature(dtype, shape, path) for name, (dtype, shape, path) in json_cases.FEATURES.items()}


def write(path, lines):
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines) + b"\n"
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def nested(value):
    """Lists of what a feature is."""
    if isinstance(value, penstock.RaggedTensor):
        return value.to_list()
    return value.tolist()


def same(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(same(one, other) for one, other in zip(found, expected))
    if isinstance(expected, float):
        return np.float64(found).tobytes() == np.float64(expected).tobytes() or math.isnan(found) and math.isnan(expected)
    return found == expected


def expected(name, document):
    try:
        return json_cases.value_of(name, json_cases.parsed(document))
    except (ValueError, json_cases.Error):
        return None


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_pythons_json(seed):
    draw = json_cases.Draw(1000 + seed)
    documents = [draw.document() for _ in range(150)]
    texts = penstock.Dataset.from_tensor_slices(documents)
    for name in FEATURES:
        wanted = [(number, value) for number, value in enumerate(expected(name, document) for document in documents) if value is not None]
        numbered = texts.map(lambda text: penstock.decode_json(text, {name: FEATURES[name]})).ignore_errors()
        found = [nested(element[name]) for element in numbered]
        assert len(found) == len(wanted), name
        for value, (number, other) in zip(found, wanted):
            assert same(value, other), (name, documents[number])


def test_lines_of_files(tmp_path):
    rows = [{"id": n, "text": "line\n" * (n % 4), "tags": [f"t{i}" for i in range(n % 3)], "user": {"name": "é" * n}} for n in range(50)]
    plain = write(tmp_path / "a.jsonl", [*rows[:20], b"", b" \t", *rows[20:30]])
    packed = write(tmp_path / "b.jsonl.gz", rows[30:])
    features = {"id": penstock.int64, "text": penstock.string, "user.name": str, "tags": penstock.JsonFeature(str, [None])}

    def taken(dataset):
        return [(int(e["id"]), e["text"].item().decode(), e["tags"].tolist(), e["user.name"].item().decode()) for e in dataset]

    wanted = [(row["id"], row["text"], [tag.encode() for tag in row["tags"]], row["user"]["name"]) for row in rows]
    assert taken(penstock.Dataset.json_lines(plain, features)) == wanted[:30]
    assert taken(penstock.Dataset.json_lines(packed, features)) == wanted[30:]
    assert taken(penstock.Dataset.json_lines(penstock.Dataset.list_files(plain, shuffle=False), features)) == wanted[:30]
    lines = penstock.Dataset.json_lines([packed])
    assert [json.loads(line.item()) for line in lines] == rows[30:]
    assert taken(lines.map(lambda line: penstock.decode_json(line, features))) == wanted[30:]
    assert taken(lines.decode_json(features)) == wanted[30:]


def test_batches(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"l": list(range(n)), "v": [n, n + 0.5], "m": [{"t": [n] * i} for i in range(n)]} for n in range(4)])
    lines = penstock.Dataset.json_lines(path).batch(4)
    (batch,) = lines.decode_json({"l": penstock.JsonFeature(penstock.int32, [None]), "v": penstock.io.FixedLenFeature([2], np.float32)})
    assert batch["l"].to_list() == [[], [0], [0, 1], [0, 1, 2]]
    assert batch["v"].dtype == np.float32 and batch["v"].tolist() == [[0, 0.5], [1, 1.5], [2, 2.5], [3, 3.5]]
    (batch,) = lines.decode_json({"l": penstock.io.FixedLenSequenceFeature([], penstock.int64, default_value=-1)})
    assert batch["l"].tolist() == [[-1, -1, -1], [0, -1, -1], [0, 1, -1], [0, 1, 2]]
    (batch,) = lines.decode_json({"l": penstock.io.VarLenFeature(penstock.int64), "x": penstock.io.RaggedFeature(penstock.int64)})
    assert batch["l"].dense_shape.tolist() == [4, 3] and batch["l"].values.tolist() == [0, 0, 1, 0, 1, 2]
    assert batch["x"].to_list() == [[], [], [], []]
    (batch,) = lines.decode_json({"t": penstock.JsonFeature(int, [None, None], "m[].t")})
    assert batch["t"].to_list() == [[], [[]], [[], [2]], [[], [3], [3, 3]]]


def test_damage(tmp_path):
    good = [{"n": n} for n in range(6)]
    path = write(tmp_path / "a.jsonl", [*good[:2], b'{"n": ', good[2], b"", b"\xff", good[3], {"m": 1}, *good[4:]])
    with open(path, "ab") as file:
        file.write(b'{"n": 1')  # torn
    features = {"n": penstock.int64}
    with pytest.raises(penstock.DataLossError, match=r"not JSON: expected a value, found the end \(byte 6 of the text\).*a\.jsonl, record 2, offset 18"):
        list(penstock.Dataset.json_lines(path, features))
    skipping = penstock.Dataset.json_lines(path, features, on_damage="skip_record")
    with pytest.raises(penstock.DataLossError, match=r'feature "n" \(n\): missing, and there is no default_value'):
        list(skipping)
    whole = skipping.ignore_errors()
    assert [int(e["n"]) for e in whole] == [0, 1, 2, 3, 4, 5]
    assert whole.skipped().count == 4
    assert [int(e["n"]) for e in penstock.Dataset.json_lines(path, features, on_damage="skip_shard")] == [0, 1]
    with pytest.raises(penstock.DataLossError, match="too many damaged places: 3 > 2"):
        list(penstock.Dataset.json_lines(path, {"n": penstock.JsonFeature(int, default_value=0)}, on_damage="skip_record", max_skipped=2))


def test_a_resume_goes_on_behind_its_step(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"n": n} for n in range(40)])
    dataset = penstock.Dataset.json_lines(path, {"n": penstock.int64}).batch(4)
    iterator = iter(dataset)
    for _ in range(3):
        next(iterator)
    state = iterator.state_dict()
    resumed = iter(dataset)
    resumed.load_state_dict(state)
    assert next(resumed)["n"].tolist() == next(iterator)["n"].tolist() == [12, 13, 14, 15]


def test_plain_files_are_found_by_an_index(tmp_path):
    rows = [{"n": n, "text": "x" * (n % 50)} for n in range(300)]
    lines = [line for row in rows for line in ([row, b"", b"  "] if row["n"] % 7 == 0 else [row])]
    path = write(tmp_path / "a.jsonl", lines)
    dataset = penstock.Dataset.json_lines(path, {"n": penstock.int64})
    with pytest.raises(TypeError, match="have not been counted: `penstock index`"):
        len(dataset)
    assert [int(e["n"]) for e in dataset.shard(3, 1)] == list(range(1, 300, 3))
    lines_alone = penstock.Dataset.json_lines(path)
    shuffled = [int(e["n"]) for e in lines_alone.global_shuffle(seed=5).decode_json({"n": penstock.int64})]
    assert sorted(shuffled) == list(range(300)) and shuffled != list(range(300))
    # Its index is there now.
    assert len(penstock.Dataset.json_lines(path, {"n": penstock.int64})) == 300
    hurt = write(tmp_path / "hurt.jsonl", [*lines[:100], b'{"n": ', *lines[100:]])
    skipping = penstock.Dataset.json_lines(hurt, on_damage="skip_record").global_shuffle(seed=5).decode_json({"n": penstock.int64})
    assert sorted(int(e["n"]) for e in skipping) == list(range(300))


def test_a_large_document(tmp_path):
    text = "x" * (100 << 20)
    path = write(tmp_path / "a.jsonl", [{"other": text, "s": "\n" + text, "n": 5}, {"s": "", "n": 6}])
    dataset = penstock.Dataset.json_lines(path, {"n": penstock.int64, "s": penstock.string})
    assert [(int(e["n"]), len(e["s"].item())) for e in dataset] == [(5, len(text) + 1), (6, 0)]


def test_features_that_want_different_things_of_one_value():
    features = {"x": penstock.JsonFeature(int, [None], "a"), "b": penstock.JsonFeature(int, path="a.b"), "a": int}
    for value, error in (
        (b"[1]", r'feature "b" \(a\): expected an object, found a list'),
        (b'{"b": 1}', r'feature "x" \(a\): expected a list, found an object'),
        (b"1", r'feature "x" \(a\): expected a list, found 1'),
    ):
        with pytest.raises(penstock.DataLossError, match=error):
            list(penstock.Dataset.from_tensor_slices([b'{"a": ' + value + b"}"]).decode_json(features))


def test_what_is_replaced():
    texts = penstock.Dataset.from_tensor_slices([b'{"s": "a\xff\\ud800z"}'])
    (element,) = texts.decode_json({"s": str}, errors="replace")
    assert element["s"].item().decode() == "a\ufffd\ufffdz"
    with pytest.raises(penstock.DataLossError, match="expected UTF-8"):
        list(texts.decode_json({"s": str}))


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: penstock.JsonFeature(np.uint8), "not uint8"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {}), "with at least one"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": "no type"}), "feature 'a' is 'no type'; expected a dtype"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": penstock.JsonFeature(int, default_value=1.5)}), "1.5, which is no int64"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": penstock.JsonFeature(np.int32, default_value=2**31)}), "which int32 does not hold"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": penstock.JsonFeature(str, default_value=1)}), "1, which is no string"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": penstock.io.SparseFeature("i", "v", int, 5)}), "not for JSON"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", {"a": int}, errors="ignore"), "errors is 'strict' or 'replace'"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", on_damage="skip"), "on_damage is fail"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", max_skipped=3), "skips nothing"),
        (lambda: penstock.Dataset.json_lines("x.jsonl", compression_type="BZ2"), "compression_type is"),
    ],
)
def test_mistakes_of_json_are_told_before_anything_runs(make, error):
    with pytest.raises((ValueError, TypeError), match=error):
        make()


def test_it_works_on_traced_values_alone():
    with pytest.raises(penstock.TraceError, match="decode_json works on traced values"):
        penstock.decode_json(b"{}", {"a": int})
    assert repr(penstock.JsonFeature(int, [None], "a[]", allow_missing=True)) == "JsonFeature(dtype('int64'), [-1], path='a[]', allow_missing=True)"
