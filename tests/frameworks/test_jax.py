"""penstock.jax with JAX itself."""

import jax
import jax.numpy as jnp
import numpy as np
import penstock
import pytest

import penstock.jax


def numbers():
    dataset = penstock.Dataset.range(100).shuffle(100, seed=5)
    return dataset.map(lambda value: {"n": value.astype(np.int32), "x": value.astype(np.float32) * np.array([1, 2, 3], np.float32)}).batch(8)


def test_batches_are_those_of_numpy_and_hold_the_memory():
    expected = [batch["x"].copy() for batch in numbers()]
    found = [batch["x"] for batch in penstock.jax.loader(numbers())]
    assert len(found) == 13
    for theirs, ours in zip(found, expected):
        assert isinstance(theirs, jax.Array) and (np.asarray(theirs) == ours).all()


def test_a_batch_is_not_copied():
    loader = penstock.jax.loader(numbers())
    seen, make_tensor = [], loader._make_tensor
    loader._make_tensor = lambda array: seen.append(array.ctypes.data) or make_tensor(array)
    batch = next(iter(loader))
    assert seen == [batch[name].unsafe_buffer_pointer() for name in ("n", "x")]


def test_it_goes_on_from_its_state():
    whole = [batch["n"].tolist() for batch in penstock.jax.loader(numbers())]
    loader = penstock.jax.loader(numbers())
    batches = iter(loader)
    assert [next(batches)["n"].tolist() for _ in range(5)] == whole[:5]
    other = penstock.jax.loader(numbers())
    other.load_state_dict(loader.state_dict())
    assert [batch["n"].tolist() for batch in other] == whole[5:]


def test_a_global_array_of_one_process():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    expected = [batch["n"].tolist() for batch in numbers()]
    found = list(penstock.jax.loader(numbers(), sharding=sharding))
    assert [batch["n"].tolist() for batch in found] == expected
    assert all(batch["x"].sharding == sharding for batch in found)


def test_a_model_is_trained(served):
    @jax.jit
    def step(weight, batch):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"] / 100 @ w - batch["n"] / 100) ** 2))(weight)
        return weight - 0.1 * gradient, loss

    loader = penstock.jax.loader("numbers", socket=served(10))
    weight, losses = jnp.zeros(3), []
    for _ in range(10):
        for batch in loader:
            weight, loss = step(weight, batch)
            losses.append(float(loss))
    assert len(losses) == 130 and losses[-1] < losses[0] / 100


def test_what_excludes_each_other():
    with pytest.raises(TypeError, match="sharding"):
        penstock.jax.loader(numbers(), device=jax.devices()[0], sharding=object())
