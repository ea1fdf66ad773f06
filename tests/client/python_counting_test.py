"""How many elements there are: known, stated, filled up to."""

import numpy as np
import pytest

import penstock


@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize("remainder", [None, "drop", "pad", "wrap"])
def test_the_elements_of_batches_are_counted(remainder, size):
    for count in (0, 7, 12):
        batches = penstock.Dataset.range(count).batch(size, remainder=remainder)
        for dataset in (
            batches.unbatch(), batches.unbatch().batch(3), batches.rebatch(3), batches.rebatch([1, 3]),
            batches.rebatch([1, 3], drop_remainder=True), batches.rebatch(2, drop_remainder=True),
        ):  # fmt: skip
            assert len(dataset) == sum(1 for _ in dataset), dataset
    numbers = penstock.Dataset.range(9)
    assert numbers.repeat().batch(2).unbatch().cardinality() == penstock.INFINITE_CARDINALITY
    assert numbers.filter(lambda x: x > 1).batch(2).unbatch().cardinality() == penstock.UNKNOWN_CARDINALITY
    assert numbers.map(lambda x: x * np.ones(2)).take(0).unbatch().cardinality() == 0
    assert numbers.batch(2).take(2).unbatch().cardinality() == penstock.UNKNOWN_CARDINALITY


def test_cardinality_can_be_stated():
    kept = penstock.Dataset.range(10).filter(lambda x: x % 2 == 0)
    assert len(kept.assert_cardinality(5)) == 5 and len(list(kept.assert_cardinality(5))) == 5
    with pytest.raises(penstock.FailedPreconditionError, match="expected 6 elements, found 5"):
        list(kept.assert_cardinality(6))
    with pytest.raises(penstock.FailedPreconditionError, match="expected 4 elements, found more"):
        list(kept.apply(penstock.experimental.assert_cardinality(4)))
    padded = kept.map(lambda x: {"x": x}).pad_to_cardinality(7)
    assert [bool(element["valid"]) for element in padded] == [True] * 5 + [False] * 2
    with pytest.raises(ValueError, match="the dataset has 3 elements, more than 2"):
        penstock.Dataset.range(3).pad_to_cardinality(2)
    with pytest.raises(penstock.InvalidArgumentError, match="one element, found more"):
        kept.get_single_element()


def test_a_length_that_is_not_known_says_why(tmp_path):
    rows = penstock.Dataset.range(9)
    for dataset, why in [
        (rows.filter(lambda x: x > 3), "behind filter only the elements tell how many there are"),
        (rows.map(lambda x: x * 2).take_while(lambda x: x < 3).batch(2), "behind take_while only the elements tell"),
        (penstock.TextLineDataset(tmp_path / "a").map(lambda x: x), "its files would have to be read"),
    ]:
        with pytest.raises(TypeError, match=f"the dataset's length is unknown: {why}"):
            len(dataset)
