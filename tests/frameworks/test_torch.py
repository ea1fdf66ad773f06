"""penstock.torch with torch itself."""

import itertools
import pickle

import numpy as np
import penstock
import pytest
import torch
import torch.distributed as dist
from ranks import results_of_ranks

import penstock.torch


def numbers():
    dataset = penstock.Dataset.range(100).shuffle(100, seed=5)
    return dataset.map(lambda value: {"n": value, "x": value.astype(np.float32) * np.array([1, 2, 3], np.float32)}).batch(8)


def listed(batches):
    return [batch["n"].tolist() for batch in batches]


def test_batches_are_those_of_numpy():
    expected = list(numbers())
    found = list(penstock.torch.loader(numbers()))
    assert len(found) == len(expected) == len(penstock.torch.loader(numbers())) == 13
    for theirs, ours in zip(found, expected):
        assert theirs["n"].dtype == torch.int64 and theirs["x"].dtype == torch.float32
        assert (theirs["x"].numpy() == ours["x"]).all() and (theirs["n"].numpy() == ours["n"]).all()


def test_a_schedule_asks_for_the_length_of_files(tmp_path):
    for i in range(10):
        (tmp_path / f"{i}").write_bytes(bytes([i]))
    files = penstock.FilesDataset(tmp_path / "*").map(lambda x: penstock.io.decode_raw(x["bytes"], np.uint8).astype(np.float32))
    loader = penstock.torch.loader(files.batch(4))
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, steps_per_epoch=len(loader), epochs=2)
    assert schedule.total_steps == 6
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            schedule.step()
    with pytest.raises(ValueError, match="step"):
        schedule.step()


def test_tensors_are_their_owners_to_write_to():
    dataset = numbers()
    for batch in penstock.torch.loader(dataset):
        batch["x"].mul_(2)
    again = next(iter(penstock.torch.loader(numbers())))
    assert (again["x"][:, 0] == again["n"]).all()


def test_what_is_written_stays_here(served):
    socket = served(0)
    mine, other = penstock.torch.loader("numbers", socket=socket), penstock.attach("numbers", socket=socket)
    batches = itertools.chain.from_iterable(iter(lambda: iter(mine), None))  # epoch after epoch
    for step in range(100):
        batch, theirs = next(batches), next(other)
        # What lay there before was written all over.
        expected = theirs["n"].copy()
        assert batch["n"].tolist() == expected.tolist(), step
        batch["n"].mul_(-1).add_(7)
        batch["x"].zero_()
        assert batch["n"].tolist() == (7 - expected).tolist()
        assert theirs["n"].tolist() == expected.tolist() and (theirs["x"][:, 0] == expected).all(), step
        del batch, theirs
    assert mine.stats()["copies"] == 0


@pytest.mark.parametrize("copy", [True, False])
def test_a_view_lies_in_a_map_of_its_own(copy):
    (batch,) = penstock.Dataset.range(512).batch(512)
    tensor = penstock.torch.as_tensor(batch, copy=copy)
    assert tensor.data_ptr() != batch.ctypes.data
    tensor += 1
    assert (batch == np.arange(512)).all() and (tensor.numpy() == batch + 1).all()


def test_views_hold_the_memory():
    batches = [batch["x"] for batch in penstock.torch.loader(numbers(), copy=False)]
    expected = [batch["x"] for batch in numbers()]
    assert len(batches) == 13
    for theirs, ours in zip(batches, expected):
        assert (theirs.numpy() == ours).all()


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("copy", [True, False])
def test_every_dtype(dtype, copy):
    values = np.arange(-3, 9).reshape(6, 2).astype(dtype)
    (batch,) = penstock.torch.loader(penstock.Dataset.from_tensor_slices(values).batch(6), copy=copy)
    assert (batch.numpy() == values).all() and batch.numpy().dtype == values.dtype


def test_bfloat16_strings_and_ragged_tensors():
    bits = np.array([0x3F80, 0xC000], np.uint16)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = penstock.torch.as_tensor(bits.view(ml_dtypes.bfloat16))
    assert tensor.dtype == torch.bfloat16 and tensor.tolist() == [1.0, -2.0]
    with pytest.raises(TypeError, match="strings"):
        penstock.torch.as_tensor(np.array([b"a"], object))
    (batch,) = penstock.torch.loader(penstock.Dataset.from_tensor_slices({"s": np.array([b"a", b"bc"], object), "n": [1, 2]}).batch(2))
    assert batch["s"].tolist() == [b"a", b"bc"] and batch["n"].tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_sparse_tensors_of_unsigned_numbers(dtype):
    values = np.array([0, np.iinfo(dtype).max, 7], dtype)
    (sparse,) = penstock.torch.loader(penstock.Dataset.from_tensors(values).sparse_batch(1, [4]))
    dense = sparse.to_dense()
    assert dense.dtype == getattr(torch, dtype) and dense.tolist() == [[0, np.iinfo(dtype).max, 7, 0]]


def test_sparse_and_ragged_tensors_stay_torchs():
    rows = np.array([[0, 5, 0], [1, 0, 2]], np.float32)
    dataset = penstock.Dataset.from_tensor_slices(rows).map(lambda x: x.astype(penstock.bfloat16)).sparse_batch(2, [4])
    (sparse,) = penstock.torch.loader(dataset)
    dense = sparse.to_dense()
    assert dense.dtype == torch.bfloat16 and dense.tolist() == [[0, 5, 0, 0], [1, 0, 2, 0]]
    assert sparse.to_dense(-1).tolist() == [[0, 5, 0, -1], [1, 0, 2, -1]]
    texts = np.array([[b"", b"a"], [b"bc", b""]], object)
    (sparse,) = penstock.torch.loader(penstock.Dataset.from_tensor_slices(texts).sparse_batch(2, [2]))
    assert sparse.to_dense().tolist() == texts.tolist()
    (ragged,) = penstock.torch.loader(penstock.Dataset.range(3).map(penstock.functions.arange).ragged_batch(3))
    for dtype, name in (np.int32, torch.int32), (np.int64, torch.int64):
        other = ragged.with_row_splits_dtype(dtype)
        assert other.row_splits.dtype == name and other.to_list() == [[], [0], [0, 1]]


def test_an_epoch_has_an_order_of_its_own():
    loader = penstock.torch.loader(numbers())
    first, second = listed(loader), listed(loader)
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(100))
    loader = penstock.torch.loader(numbers())
    loader.set_epoch(1)
    assert listed(loader) == second
    loader.set_epoch(0)
    assert listed(loader) == first


@pytest.mark.parametrize("taken", [0, 1, 7, 13])
def test_a_dataset_goes_on_from_its_state(taken):
    plain = penstock.torch.loader(numbers())
    whole, second = listed(plain), listed(plain)
    loader = penstock.torch.loader(numbers())
    batches = iter(loader)
    assert listed(next(batches) for _ in range(taken)) == whole[:taken]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    other = penstock.torch.loader(numbers())
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert listed(other) == whole[taken:]
    # What follows is the next epoch, as without a pause.
    assert listed(other) == second


def test_a_dataset_goes_on_from_a_state_between_epochs():
    plain = penstock.torch.loader(numbers())
    first, state, second = listed(plain), plain.state_dict(), listed(plain)
    other = penstock.torch.loader(numbers())
    other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert listed(other) == second
    other.load_state_dict(state)
    other.set_epoch(0)
    assert listed(other) == first


def test_a_pipeline_gives_an_epoch_a_loop(served):
    loader = penstock.torch.loader("numbers", socket=served(3))
    epochs = [listed(loader) for _ in range(4)]
    assert [len(epoch) for epoch in epochs] == [13, 13, 13, 0]
    assert all(sorted(sum(epoch, [])) == list(range(100)) for epoch in epochs[:3])
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_batch_size_of_ones_own(served):
    loader = penstock.torch.loader("numbers", socket=served(3), batch_size=12)
    assert len(loader) == 3 * 9
    epochs = [listed(loader) for _ in range(3)]
    assert [[len(batch) for batch in epoch] for epoch in epochs] == [[12] * 8 + [4]] * 3
    assert all(sorted(sum(epoch, [])) == list(range(100)) for epoch in epochs)


def test_an_evaluation_counts_each_element_once(served):
    loader = penstock.torch.loader(penstock.Dataset.range(21).batch(8, remainder="pad"))
    for _ in range(2):
        assert sum(([batch.shape[0], batch[: loader.valid].tolist()] for batch in loader), []) == [
            8, list(range(8)), 8, list(range(8, 16)), 8, list(range(16, 21))]
    loader = penstock.torch.loader("numbers", socket=served(2))
    for _ in range(2):
        assert [loader.valid for _ in loader] == [8] * 12 + [4]


@pytest.mark.parametrize("taken", [1, 12, 13, 14])
def test_a_pipeline_goes_on_from_its_state(served, taken):
    socket = served(2)
    loader = penstock.torch.loader("numbers", socket=socket)
    seen, states = [], []
    for _ in range(2):
        for batch in loader:
            seen.append(batch["n"].tolist())
            states.append(loader.state_dict())
    assert len(seen) == 26
    other = penstock.torch.loader("numbers", socket=socket, group="resumed")
    other.load_state_dict(pickle.loads(pickle.dumps(states[taken - 1])))
    # The rest of its epoch, then the next one.
    rest = [listed(other), listed(other)]
    assert rest == ([seen[taken:13], seen[13:]] if taken < 13 else [seen[taken:], []])


def test_a_state_without_a_cursor_does_not_pass_for_one(served):
    loader = penstock.torch.loader("numbers", socket=served(2))
    start = loader.state_dict()
    loader.load_state_dict(start)  # where it is
    next(iter(loader))
    with pytest.raises(penstock.FailedPreconditionError, match="before its first batch"):
        loader.load_state_dict(start)


def test_workers_of_a_dataloader_are_refused():
    loader = penstock.torch.loader(penstock.Dataset.range(8).batch(4))
    assert sum(len(batch) for batch in torch.utils.data.DataLoader(loader, batch_size=None)) == 8
    with pytest.raises(penstock.FailedPreconditionError, match="worker 0 of 2 .* num_workers=0"):
        list(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=2))
    with pytest.raises(penstock.FailedPreconditionError, match="a loader belongs to its process; .* num_workers=0"):
        list(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=1, multiprocessing_context="spawn"))


def test_a_state_that_is_refused_loses_no_batch(served):
    loader = penstock.torch.loader("numbers", socket=served(2))
    start = loader.state_dict()
    epoch = listed(loader)
    # The first batch of the next epoch is here already: it ended this one.
    with pytest.raises(penstock.FailedPreconditionError, match="before its first batch"):
        loader.load_state_dict(start)
    with pytest.raises(penstock.InvalidArgumentError):
        loader.load_state_dict(dict(start, cursor="no hexadecimal digits"))
    assert len(listed(loader)) == len(epoch)


def train(rank, port, socket, results):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1, bias=False))
    torch.nn.init.zeros_(model.module.weight)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = penstock.torch.loader("numbers", socket=socket, rank=rank, world_size=2)
    seen = []
    for epoch in range(2):
        loader.set_epoch(epoch)
        for batch in loader:
            loss = ((model(batch["x"])[:, 0] - batch["n"]) ** 2).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            seen.append(batch["n"].tolist())
    results.put((rank, seen, model.module.weight.tolist()))
    dist.destroy_process_group()


def test_two_ranks_train_one_model(served):
    socket = served(2)
    with __import__("socket").socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (_, left, weight), (_, right, other) = results_of_ranks(train, port, socket)
    assert weight == other and weight != [[0.0, 0.0, 0.0]]
    assert len(left) == len(right) == 26
    for epoch in range(2):
        rows = [n for step in range(13) for part in (left, right) for n in part[13 * epoch + step]]
        assert sorted(rows) == list(range(100))


def take_together(rank, share, results):
    dataset = penstock.Dataset.range(100).shuffle(100).batch(8).map(lambda value: {"n": value})
    loader = penstock.torch.loader(dataset, share=share, rank=rank, world_size=2)
    # The second loop is another epoch.
    results.put((rank, [batch["n"].tolist() for _ in range(2) for batch in loader], len(loader)))


def test_two_ranks_of_a_dataset_share_a_daemon(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (_, left, length), (_, right, _) = results_of_ranks(take_together, "job")
    assert len(left) == len(right) == 2 * length
    epochs = [[n for part in (left, right) for rows in part[length * epoch : length * (epoch + 1)] for n in rows] for epoch in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(100))
    assert epochs[0] != epochs[1]


def test_options_are_for_pipelines():
    with pytest.raises(TypeError, match="of a Dataset"):
        penstock.torch.loader("numbers", share="job")
    with pytest.raises(TypeError, match="rank"):
        penstock.torch.loader(numbers(), rank=0, world_size=2)


class MakesTensors:
    """What a function may return of torch: on the CPU, also what has a gradient, is conjugated, or is no contiguous memory."""

    def __call__(self, x):
        base = torch.arange(6, dtype=torch.float32).reshape(2, 3) + int(x)
        return {
            "plain": base, "turned": base.T, "grad": (base * 2).requires_grad_(), "spread": base[0].expand(4, 3), "number": torch.tensor(int(x)),
            "conjugated": torch.complex(base[0], base[1]).conj().imag,
        }  # fmt: skip


def test_a_function_may_return_tensors_on_the_cpu():
    outputs = {
        "plain": penstock.TensorSpec((2, 3), np.float32), "turned": penstock.TensorSpec((3, 2), np.float32), "grad": penstock.TensorSpec((2, 3), np.float32),
        "spread": penstock.TensorSpec((4, 3), np.float32), "number": penstock.TensorSpec((), np.int64), "conjugated": penstock.TensorSpec((3,), np.float32),
    }  # fmt: skip
    for output in (outputs, None):
        dataset = penstock.Dataset.range(5).map(MakesTensors(), python=True, output=output, workers=1)
        assert dataset.element_spec == outputs
        for x, element in enumerate(dataset.as_numpy_iterator()):
            expected = {name: tensor.detach().resolve_conj().resolve_neg().numpy() for name, tensor in MakesTensors()(x).items()}
            assert element.keys() == expected.keys()
            assert all(np.array_equal(element[name], expected[name]) for name in expected)
