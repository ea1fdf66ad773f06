"""Dataset.from_huggingface, over data sets that the package datasets itself has made: the same rows, in place where that is promised."""

import warnings

import datasets
import numpy as np
import pytest

import penstock

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")

COUNT = 2500  # more than a record batch of 1,000 rows


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A data set of three files, with columns of many types."""
    features = datasets.Features({
        "id": datasets.Value("int64"),
        "text": datasets.Value("string"),
        "score": datasets.Value("float32"),
        "good": datasets.Value("bool"),
        "label": datasets.ClassLabel(names=["a", "b", "c"]),
        "tokens": datasets.List(datasets.Value("int32")),
        "pair": datasets.List(datasets.Value("float64"), length=2),
        "grid": datasets.Array2D((2, 3), "int16"),
        "nested": datasets.List(datasets.List(datasets.Value("string"))),
        "person": {"name": datasets.Value("large_string"), "ages": datasets.List(datasets.Value("uint8"))},
        "when": datasets.Value("timestamp[us]"),
    })  # fmt: skip
    rows = [
        {"id": i, "text": f"täxt {i}" * (i % 4), "score": i / 8, "good": i % 3 == 0, "label": i % 3, "tokens": list(range(i % 5)), "pair": [i, -i],
         "grid": [[i % 100, 1, 2], [3, 4, 5]], "nested": [["a" * (i % 3)] * (i % 2), ["b"]], "person": {"name": f"n{i}", "ages": [i % 200] * (i % 3)},
         "when": i}
        for i in range(COUNT)
    ]  # fmt: skip
    folder = str(tmp_path_factory.mktemp("hf") / "saved")
    datasets.Dataset.from_list(rows, features=features).save_to_disk(folder, num_shards=3)
    return folder


@pytest.fixture
def ds(saved):
    return datasets.load_from_disk(saved)


def in_place(ds, *args, **options):
    """The data set, without the warning that comes where it is not read in place."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return penstock.Dataset.from_huggingface(ds, *args, **options)


def ids(dataset):
    return [int(row["id"]) for row in dataset]


def plain(value):
    if hasattr(value, "to_list"):
        value = value.to_list()
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.encode() if isinstance(value, str) else value


def test_rows_are_those_of_the_package(ds):
    dataset = in_place(ds)
    assert len(dataset) == COUNT
    expected = ds.select([0, 1, 999, 1000, COUNT - 1]).flatten()
    for place, row in zip((0, 1, 999, 1000, COUNT - 1), expected):
        (found,) = dataset.skip(place).take(1)
        assert set(found) == set(row)
        row["when"] = place
        assert {key: plain(value) for key, value in found.items()} == {key: plain(value) for key, value in row.items()}
    spec = dataset.element_spec
    assert spec["grid"].shape == (2, 3) and spec["pair"].shape == (2,) and spec["tokens"].shape == (None,)
    assert spec["label"].dtype == np.int64 and spec["grid"].dtype == np.int16


@pytest.mark.parametrize("change", [
    lambda ds: ds.shuffle(seed=3),
    lambda ds: ds.select(range(5, 2000)),
    lambda ds: ds.select([7, 7, 2499, 0]),
    lambda ds: ds.shuffle(seed=3).select(range(100)),
    lambda ds: ds.sort("score", reverse=True),
    lambda ds: ds.shard(7, 3),
    lambda ds: ds.shard(7, 3, contiguous=True),
    lambda ds: ds.train_test_split(test_size=0.2, seed=1)["test"],
    lambda ds: datasets.concatenate_datasets([ds.select(range(10)), ds, ds.select(range(990, 1010))]),
    lambda ds: datasets.concatenate_datasets([ds.select(range(10)), ds]).shuffle(seed=5),
    lambda ds: ds.filter(lambda row: row["id"] % 100 == 7),
    lambda ds: ds.rename_column("text", "body").remove_columns("grid").select_columns(["body", "id"]),
    lambda ds: ds.with_format("numpy", columns=["id", "score"]),
    lambda ds: ds.with_format("torch"),
])  # fmt: skip
def test_what_a_data_set_was_made_by(ds, change):
    changed = change(ds)
    dataset = in_place(changed)
    assert ids(dataset) == [int(i) for i in changed.with_format(None)["id"]]
    assert len(dataset) == len(changed)
    first = next(iter(dataset))
    # A concatenated data set's own flatten() leaves structs as they are.
    nested = {"person": {"person.name", "person.ages"}}
    columns = changed._format_columns or changed.column_names
    assert set(first) == set().union(*(nested.get(column, {column}) for column in columns))
    shuffled = dataset.global_shuffle(seed=1)
    assert sorted(ids(shuffled)) == sorted(ids(dataset))


def test_columns_and_defaults(tmp_path):
    rows = {"x": [1, None, 3], "s": ["a", None, "c"], "l": [[1], None, [2, 3]]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "d"))
    ds = datasets.load_from_disk(str(tmp_path / "d"))
    found = list(in_place(ds, defaults={"x": -1, "s": "-", "l": []}))
    assert [(int(row["x"]), row["s"].item(), row["l"].tolist()) for row in found] == [(1, b"a", [1]), (-1, b"-", []), (3, b"c", [2, 3])]
    assert set(next(iter(in_place(ds, ["s"])))) == {"s"}
    with pytest.raises(penstock.DataLossError, match="it is null.*row 1 of the file"):
        list(in_place(ds, ["x"]))
    with pytest.raises(ValueError, match="no column 'y'"):
        in_place(ds, ["y"])
    with pytest.raises(ValueError, match="a default for 'y'"):
        in_place(ds, defaults={"y": 1})


def test_images_are_their_bytes(tmp_path):
    picture = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    image = pytest.importorskip("PIL.Image").fromarray(picture)
    data = {"image": [image] * 3, "label": [0, 1, 2]}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    datasets.Dataset.from_dict(data, features=features).save_to_disk(str(tmp_path / "d"))
    dataset = in_place(datasets.load_from_disk(str(tmp_path / "d")))
    decoded = dataset.map(lambda row: penstock.image.decode_png(row["image.bytes"], channels=3))
    for found in decoded:
        np.testing.assert_array_equal(found, picture)
    assert next(iter(dataset))["image.path"].item() in (b"", b"image.png")


def test_a_resume_goes_on_with_the_next_batch(ds):
    dataset = in_place(ds.shuffle(seed=9), ["id"]).global_shuffle(seed=2, reshuffle_each_iteration=False).batch(64)
    whole = [batch["id"].tolist() for batch in dataset]
    assert sorted(sum(whole, [])) == list(range(COUNT))
    assert [batch["id"].tolist() for batch in dataset.skip(20)] == whole[20:]


@pytest.mark.parametrize("change, reason", [
    (lambda ds: datasets.Dataset.from_dict({"id": [1, 2, 3]}), "it is in memory"),
    (lambda ds: ds.select_columns(["id"]).with_transform(lambda batch: batch), "it has a transform"),
    (lambda ds: ds.select_columns(["id"]).add_column("more", list(range(COUNT))), "columns side by side"),
])  # fmt: skip
def test_what_is_not_in_place_says_so_and_is_indexed(ds, change, reason):
    changed = change(ds)
    with pytest.warns(UserWarning, match=reason):
        dataset = penstock.Dataset.from_huggingface(changed)
    assert ids(dataset.take(3)) == [int(changed[i]["id"]) for i in range(3)]
    assert len(dataset) == len(changed)


def test_what_is_no_data_set_is_refused(ds):
    with pytest.raises(TypeError, match="one split of a DatasetDict, such as dataset\\['train'\\]"):
        penstock.Dataset.from_huggingface(datasets.DatasetDict({"train": ds}))
    with pytest.raises(TypeError, match="takes a datasets.Dataset, not a builtins.list"):
        penstock.Dataset.from_huggingface([1, 2])
    with pytest.raises(TypeError, match="from_generator"):
        penstock.Dataset.from_huggingface(ds.to_iterable_dataset())
