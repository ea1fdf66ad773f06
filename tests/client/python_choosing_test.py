"""What chance decides: draws, choices among datasets, resampling; and states that go from element to element."""

import json
import re

import numpy as np
import pytest

import penstock


def values(dataset):
    return [int(x) for x in dataset]


def batched(dataset):
    """The values of a dataset of numbers, in batches, so that none is held."""
    return np.concatenate([np.array(batch) for batch in dataset.batch(64)]).tolist()


def test_draws_differ_from_pass_to_pass_where_they_should():
    same = penstock.Dataset.random(seed=3).take(5)
    assert values(same) == values(same)
    anew = penstock.Dataset.random(seed=3, rerandomize_each_iteration=True).take(5)
    assert values(anew) != values(anew)
    assert values(penstock.Dataset.random(seed=3).take(5)) == values(same)


def test_sampling_draws_by_weight():
    ranges = [penstock.Dataset.counter(start=1000000 * i) for i in range(3)]
    found = batched(penstock.Dataset.sample_from_datasets(ranges, [0.2, 0.0, 0.8], seed=1).take(5000))
    counts = np.bincount(np.array(found) // 1000000, minlength=3)
    assert counts[1] == 0 and abs(counts[0] - 1000) < 150
    with pytest.raises(ValueError, match="one for each dataset: 2 for 3"):
        penstock.Dataset.sample_from_datasets(ranges, [1, 2])
    with pytest.raises(TypeError, match="one structure"):
        penstock.Dataset.choose_from_datasets([ranges[0], ranges[1].enumerate()], ranges[2])
    finite = [penstock.Dataset.range(3), penstock.Dataset.range(4)]
    assert len(penstock.Dataset.sample_from_datasets(finite)) == 7


def weights_of(dataset):
    return json.loads(re.search(r" weight: (\[.*?\])", dataset.spec_text())[1])


def test_a_temperature_levels_weights_or_sizes():
    endless = [penstock.Dataset.counter(start=1000000 * i) for i in range(3)]
    sample = penstock.Dataset.sample_from_datasets
    assert weights_of(sample(endless, [8, 1, 0], seed=1, temperature=3)) == [1.0, 0.5, 0.0]
    assert weights_of(sample(endless, [3, 4, 1], seed=1, temperature=0.5)) == [0.5625, 1.0, 0.0625]
    assert weights_of(sample(endless, [1e300, 1e-300, 1e300], temperature=1e9)) == [1.0, 0.99999861845, 1.0]
    found = batched(sample(endless, [8, 1, 0], seed=1, temperature=3).take(3000))
    # 3,000 draws with a chance of 2/3 have a standard deviation of 26.
    assert abs(np.bincount(np.array(found) // 1000000)[0] - 2000) < 130
    # As mT5 has it: by the sizes.
    sizes = [penstock.Dataset.range(n).repeat() for n in (100, 25)]
    with pytest.raises(ValueError, match="known number of elements"):
        sample(sizes, temperature=2)
    assert weights_of(sample([penstock.Dataset.range(100), penstock.Dataset.range(25)], temperature=2)) == [1.0, 0.5]
    assert weights_of(sample(endless, [0, 0, 0], temperature=2)) == [0.0, 0.0, 0.0]
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature is a number above 0"):
            sample(endless, [1, 2, 3], temperature=wrong)
    with pytest.raises(ValueError, match="weights that are numbers"):
        sample(endless, penstock.Dataset.from_tensors(np.ones(3)).repeat(), temperature=2)


def test_weights_of_samples_may_be_a_dataset():
    parts = [penstock.Dataset.from_tensors(np.int64(i)).repeat() for i in range(3)]
    weights = penstock.Dataset.from_tensors(np.array([1.0, 0.0, 3.0])).repeat(4000)
    drawn = np.concatenate(list(penstock.Dataset.sample_from_datasets(parts, weights, seed=7).batch(1000)))
    counts = np.bincount(drawn, minlength=3)
    # 4,000 draws with a chance of 1/4 have a standard deviation of 27.
    assert counts[1] == 0 and abs(counts[0] - 1000) < 150 and counts.sum() == 4000
    again = penstock.Dataset.sample_from_datasets(parts, weights, seed=7)
    assert np.concatenate(list(again.batch(1000))).tolist() == drawn.tolist()
    other = penstock.Dataset.sample_from_datasets(parts, weights, seed=8)
    assert np.concatenate(list(other.batch(1000))).tolist() != drawn.tolist()
    with pytest.raises(ValueError, match="one for each dataset"):
        penstock.Dataset.sample_from_datasets(parts, penstock.Dataset.from_tensors(np.ones(2)))
    with pytest.raises(TypeError, match="one tensor each"):
        penstock.Dataset.sample_from_datasets(parts, penstock.Dataset.from_tensors({"w": np.ones(3)}))


def test_resampling_makes_classes_as_frequent_as_they_should_be():
    numbers = penstock.Dataset.random(seed=5).take(4000).map(lambda x: x % 10)
    pairs = numbers.rejection_resample(lambda x: (x >= 8).astype(np.int64), [0.5, 0.5], seed=2)
    classes = [int(kind) for kind, number in pairs]
    assert abs(sum(classes) / len(classes) - 0.5) < 0.08
    assert all(kind == (number >= 8) for kind, number in pairs.take(50))


def test_reduce_gives_the_state():
    numbers = penstock.Dataset.range(10)
    assert numbers.reduce(np.int64(0), lambda s, x: s + x) == 45
    found = numbers.reduce({"sum": np.int64(0), "n": np.float32(0)}, lambda s, x: {"sum": s["sum"] + x, "n": s["n"] + np.float32(1)})
    assert found["sum"] == 45 and found["n"] == 10
    with pytest.raises(penstock.InvalidArgumentError, match="expected int64 .* found float64"):
        numbers.reduce(np.int64(0), lambda s, x: s / 2)
    with pytest.raises(penstock.TraceError, match="another structure"):
        numbers.reduce(np.int64(0), lambda s, x: (s, x))
    with pytest.raises(penstock.TraceError, match="returned no pair"):
        numbers.scan(np.int64(0), lambda s, x: s)


def test_a_new_state_may_have_another_order_of_keys():
    def step(state, x):
        return {"n": state["n"] + 1, "in": {"last": x, "sum": state["in"]["sum"] + x}}

    start = {"in": {"sum": np.int64(0), "last": np.int64(-1)}, "n": np.int64(0)}
    numbers = penstock.Dataset.range(5)
    assert numbers.reduce(start, step) == {"in": {"sum": 10, "last": 4}, "n": 5}
    running = numbers.scan(start, lambda state, x: (step(state, x), (state["in"]["sum"], state["in"]["last"], state["n"])))
    assert [tuple(map(int, element)) for element in running] == [(0, -1, 0), (0, 0, 1), (1, 1, 2), (3, 2, 3), (6, 3, 4)]


def test_a_state_is_rearranged_as_an_elements_tensor_is():
    frames = np.arange(7 * 6).reshape(7, 2, 3).astype(np.uint8)
    begins = np.array([True, False, False, True, False, False, False])

    def stacked(state, element):
        begin, frame = element
        state = np.where(begin, np.stack([frame] * 3, axis=-1), np.concatenate([state[..., 1:], frame[..., None]], axis=-1))
        return state, (state, np.max(state, axis=(0, 2)))

    found = list(penstock.Dataset.from_tensor_slices((begins, frames)).scan(np.zeros((2, 3, 3), np.uint8), stacked))
    state = np.zeros((2, 3, 3), np.uint8)
    for ours, element in zip(found, zip(begins, frames)):
        state, theirs = stacked(state, element)
        for one, other in zip(ours, theirs):
            np.testing.assert_array_equal(one, other)
    last = penstock.Dataset.from_tensor_slices(frames).reduce({"last": np.zeros((2, 3), np.uint8), "n": 0}, lambda s, x: {"last": np.swapaxes(x.T, 0, 1) + s["last"][:, ::-1][:, ::-1] * 0, "n": s["n"] + s["last"].ndim})
    assert last["last"].tolist() == frames[-1].tolist() and last["n"] == 14


def test_experimental_choices_pass_over_datasets_that_have_ended():
    """As TensorFlow's default there is, which is not that of Dataset.choose_from_datasets."""
    parts = [penstock.Dataset.range(1), penstock.Dataset.range(10, 13)]
    turns = penstock.Dataset.range(2).repeat(4)
    assert values(penstock.experimental.choose_from_datasets(parts, turns)) == [0, 10, 11, 12]
    assert values(penstock.experimental.choose_from_datasets(parts, turns, True)) == [0, 10]
    assert values(penstock.Dataset.choose_from_datasets(parts, turns)) == [0, 10]


def test_parallel_interleave_has_the_parameters_of_tensorflow():
    parts = penstock.Dataset.from_tensor_slices(np.array([0, 100, 200]))
    make = penstock.experimental.parallel_interleave(lambda x: penstock.Dataset.from_tensors(x).repeat(2), 2, 1, True, 16, 4)
    assert values(parts.apply(make)) == values(parts.interleave(lambda x: penstock.Dataset.from_tensors(x).repeat(2), 2, 1))
    named = penstock.experimental.parallel_interleave(
        lambda x: penstock.Dataset.from_tensors(x).repeat(2), cycle_length=3, buffer_output_elements=1, prefetch_input_elements=0
    )
    assert values(parts.apply(named)) == [0, 100, 200] * 2
