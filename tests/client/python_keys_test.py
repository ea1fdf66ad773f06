"""Keys of elements that are no names: TensorFlow takes them too."""


import penstock
import pytest
from penstock import _structure

D = penstock.Dataset
KEYS = ["a", "", 3, -3, (1, "a"), (), b"x", 1.5, None, "#a", "#3", "#''", "a/b"]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_stays_what_it_is(key):
    text = _structure.key_text(key)
    found = _structure.key_of(text)
    assert found == key and type(found) is type(key)
    assert (text == key) == (key in ("a", "#a", "a/b"))
    dataset = D.range(4).map(lambda n: {key: n, "other": n * 2}).filter(lambda e: e[key] > 0).batch(3)
    (batch,) = dataset
    assert list(batch) == [key, "other"] and [type(name) for name in batch] == [type(key), str]
    assert batch[key].tolist() == [1, 2, 3] and batch["other"].tolist() == [2, 4, 6]
    assert list(dataset.element_spec) == [key, "other"]


def test_keys_of_arrays_and_of_nests():
    given = {3: [1, 2], "": [3, 4], "n": {(1, 2): [5, 6], "x": ([7, 8],)}}
    dataset = D.from_tensor_slices(given)
    assert [dict(e) for e in dataset.as_numpy_iterator()] == [
        {3: 1, "": 3, "n": {(1, 2): 5, "x": (7,)}},
        {3: 2, "": 4, "n": {(1, 2): 6, "x": (8,)}},
    ]
    assert [int(x) for x in dataset.map(lambda e: e[3] + e["n"][1, 2])] == [6, 8]
    padded = D.from_tensor_slices({3: [1, 2]}).map(lambda e: {3: penstock.functions.arange(e[3])}).padded_batch(2, {3: [4]}, {3: -1})
    assert next(iter(padded))[3].tolist() == [[0, -1, -1, -1], [0, 1, -1, -1]]
    with pytest.raises(KeyError, match="the element has no feature 4; it has 3"):
        dataset.map(lambda e: e[4])
    with pytest.raises(TypeError, match="a key of type object"):
        D.range(1).map(lambda n: {object(): n})
    with pytest.raises(TypeError, match="a slash in a key that more keys follow"):
        D.range(1).map(lambda n: {("a/b",): (n,)})


def test_who_attaches_sees_the_same_keys():
    path = penstock._running._daemon.private_socket()
    with D.range(4).map(lambda n: {3: n, "": (n,)}).batch(2).loader(socket=path, name="keys") as made:
        next(made)
        with penstock.attach("keys", path) as loader:
            batch = next(loader)
            assert list(batch) == [3, ""] and batch[3].tolist() == batch[""][0].tolist()
    penstock._control.delete(path, "keys")


def test_a_column_without_a_name(tmp_path):
    # As DataFrame.to_csv writes its index.
    (tmp_path / "a.csv").write_text(",x,y\n0,1.5,1\n1,2.5,2\n")
    make = penstock.experimental.make_csv_dataset
    (batch,) = make(str(tmp_path / "a.csv"), 2, num_epochs=1, shuffle=False)
    assert {key: value.tolist() for key, value in batch.items()} == {"": [0, 1], "x": [1.5, 2.5], "y": [1, 2]}
    ((batch, label),) = make(str(tmp_path / "a.csv"), 2, num_epochs=1, shuffle=False, label_name="")
    assert list(batch) == ["x", "y"] and label.tolist() == [0, 1]
