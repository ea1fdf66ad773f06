"""torch, JAX and CuPy on a real device, each where it is installed and has one: batches copied from a ring, and in a ring on the device."""

import os

import numpy as np
import pytest

from test_cuda import IS_REAL, attach_to_ring, image, serve  # noqa: F401

# JAX would take most of the device's memory, which the daemon's ring lies in, too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
pytestmark = pytest.mark.skipif(not IS_REAL, reason="needs a device: PENSTOCK_TEST_DEVICE")


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no device")
    return torch


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    try:
        jax.devices("gpu")
    except RuntimeError as error:
        pytest.skip(f"this jax has no device: {error}")
    return jax


def labels(step):
    return np.arange(4 * step, 4 * step + 4)


@pytest.fixture
def late_copies(torch, monkeypatch):
    """Copies to the device begin late, so that what does not wait for them shows."""
    empty = torch.empty

    def empty_and_sleep(*args, **options):
        made = empty(*args, **options)
        torch.cuda._sleep(400_000)  # in the stream that the copy goes into
        return made

    monkeypatch.setattr(torch, "empty", empty_and_sleep)


def test_torch_waits_for_copies_and_keeps_what_it_reads(serve, torch, late_copies):  # noqa: F811
    """Ahead of the device by many batches, whose tensors are gone before they are read."""
    import penstock.torch

    socket = serve(steps=160, ring="")
    found = []
    for batch in penstock.torch.loader("images", socket=socket, device="cuda"):
        torch.cuda._sleep(1_000_000)
        found.append((batch["image"].clone(), batch["label"] + 1))
        del batch
    for step, (images, label) in enumerate(found):
        np.testing.assert_array_equal(images.cpu().numpy(), image(step))
        np.testing.assert_array_equal(label.cpu().numpy(), labels(step) + 1)
    assert len(found) == 40


@pytest.mark.parametrize("on_ring", [False, True])
@pytest.mark.parametrize("own_stream", [False, True])
def test_torch(serve, torch, on_ring, own_stream):  # noqa: F811
    import penstock.torch

    socket = serve(steps=800, ring="device: 0 slots: 7")
    stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        loader = penstock.torch.loader("images", socket=socket, device="cuda", ring=on_ring)
        for step, batch in enumerate(loader):
            # Work in front of it, so that what is not ordered shows.
            torch.cuda._sleep(200_000)
            sums = batch["image"].float().sum()
            doubled = batch["label"] * 2
            found = batch["image"].clone()
            del batch
            assert found.device.type == "cuda" and found.dtype == torch.uint8
            np.testing.assert_array_equal(found.cpu().numpy(), image(step))
            np.testing.assert_array_equal(doubled.cpu().numpy(), 2 * labels(step))
            assert sums.item() == image(step).sum(dtype=np.float64)
        assert step == 199
    stats = loader.stats()["cuda"]
    assert (stats["copies"], stats["staged_copies"]) == (0 if on_ring else 400, 0), stats
    loader.close()


def test_torch_is_not_fed_from_a_slot_that_is_written_again(serve, torch):  # noqa: F811
    """The slot's tensor is gone when its work has not begun: the slot is not the daemon's before that is over."""
    import penstock.torch

    socket = serve(steps=400, ring="device: 0 slots: 5")
    found = []
    for batch in penstock.torch.loader("images", socket=socket, device="cuda", ring=True):
        torch.cuda._sleep(2_000_000)
        found.append(batch["image"].clone())
        del batch
    for step, array in enumerate(found):
        np.testing.assert_array_equal(array.cpu().numpy(), image(step))
    assert len(found) == 100


@pytest.mark.parametrize("way", ["pinned", "ring"])
def test_jax(serve, jax, way):  # noqa: F811
    import penstock.jax

    socket = serve(ring="device: 0 slots: 7")
    double = jax.jit(lambda x: x.astype("float32") * 2)
    found = []
    for batch in penstock.jax.loader("images", socket=socket, **{way: True}):
        found.append((double(batch["image"]), batch["label"] + 1))
        del batch
        if len(found) % 4 == 0:
            found[-1][0].block_until_ready()
    assert len(found) == 100
    for step, (doubled, label) in enumerate(found):
        np.testing.assert_array_equal(np.asarray(doubled), image(step).astype(np.float32) * 2)
        np.testing.assert_array_equal(np.asarray(label), labels(step) + 1)


@pytest.mark.parametrize("on_ring", [False, True])
@pytest.mark.parametrize("way", ["asarray", "from_dlpack"])
def test_cupy(serve, on_ring, way):  # noqa: F811
    cupy = pytest.importorskip("cupy")
    import penstock.cuda

    socket = serve(ring="device: 0 slots: 7")
    for step, batch in enumerate(penstock.cuda.loader("images", socket=socket, ring=on_ring)):
        found = getattr(cupy, way)(batch["image"])
        assert found.data.ptr == batch["image"].__cuda_array_interface__["data"][0]
        del batch
        np.testing.assert_array_equal(cupy.asnumpy(found), image(step))
    assert step == 99


def test_a_killed_daemon_while_torch_works(serve, torch):  # noqa: F811
    import penstock.torch

    from programs import Daemon

    socket = serve(steps=40000, ring="device: 0 slots: 5")
    loader = penstock.torch.loader("images", socket=socket, device="cuda", ring=True)
    second = None
    try:
        for step, batch in zip(range(400), loader):
            if step == 100:
                serve.daemon.kill()
                second = Daemon(socket)
            torch.cuda._sleep(100_000)
            np.testing.assert_array_equal(batch["image"].cpu().numpy(), image(step))
            del batch
    finally:
        loader.close()
        if second is not None:
            second.kill()
    assert step == 399


def test_loaders_of_all_kinds_side_by_side(serve, torch):  # noqa: F811
    import penstock.torch

    socket = serve(ring="device: 0 slots: 9")
    on_ring = attach_to_ring(socket)
    copied = iter(penstock.torch.loader("images", socket=socket, device="cuda"))
    in_place = iter(penstock.torch.loader("images", socket=socket, device="cuda", ring=True))
    for step in range(100):
        for array in (next(on_ring)["image"].numpy(), next(copied)["image"].cpu().numpy(), next(in_place)["image"].cpu().numpy()):
            np.testing.assert_array_equal(array, image(step))
