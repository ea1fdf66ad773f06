"""Rings on a device and copies to it, through real daemons, sockets and processes (fault 65), over a driver that needs no device
(tests/cuda/fake_driver.cc). With PENSTOCK_TEST_DEVICE (`./dev test cuda`) those tests that do not steer the driver run on a real one."""

import ast
import concurrent.futures
import ctypes
import gc
import os
import pathlib
import signal
import subprocess
import sys
import types

import numpy as np
import pytest

import penstock
import penstock.cuda
from programs import Daemon, Penstock, eventually

FAKE = pathlib.Path(os.environ.get("PENSTOCK_BIN", "")).parent / "lib" / "libfake_cuda.so"
# The machine's driver without descriptors, so that memory travels by handles.
BY_HANDLES = FAKE.with_name("libcuda_by_handles.so")
IS_REAL = bool(os.environ.get("PENSTOCK_TEST_DEVICE"))
pytestmark = pytest.mark.skipif(not IS_REAL and not FAKE.exists(), reason="the build has no tests")
needs_fake = pytest.mark.skipif(IS_REAL, reason="a real driver cannot be steered")

IMAGES = """
name: "images"
stage {{ range {{ stop: {steps} }} }}
stage {{ map {{
  constant {{ name: "SHAPE" dtype: "uint8" shape: 3 shape: 5 shape: 3 {values} }}
  out: "image = uint8(value) + SHAPE" out: "label = value" }} }}
stage {{ batch {{ batch_size: 4 drop_remainder: true }} }}
ring {{ {ring} }}
"""
VALUES = " ".join(f"int_value: {3 * i}" for i in range(45))


@pytest.fixture(autouse=True)
def fake_driver(monkeypatch):
    if IS_REAL:
        yield None
        return
    monkeypatch.setenv("PENSTOCK_CUDA_DRIVER", str(FAKE))
    library = ctypes.CDLL(str(FAKE))
    library.fake_cuda_set.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    library.fake_cuda_get.restype = ctypes.c_int64
    yield lambda name, number: library.fake_cuda_set(name.encode(), number)
    for name, number in (("hold", 0), ("never", 0), ("lost_after", -1), ("ipc_memory", 0), ("import", 0), ("version", 12080)):
        library.fake_cuda_set(name.encode(), number)


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """serve(steps, ring, fake=…) starts a daemon with the pipeline; returns its socket."""
    daemons = []

    def start(steps=400, ring="device: 0", fake="", options=()):
        monkeypatch.setenv("PENSTOCK_FAKE_CUDA", fake)
        daemon = Daemon(tmp_path / "run" / "s", *options)
        monkeypatch.delenv("PENSTOCK_FAKE_CUDA")
        assert daemon.is_ready
        daemons.append(daemon)
        spec = tmp_path / "images.textproto"
        spec.write_text(IMAGES.format(steps=steps, ring=ring, values=VALUES))
        start.result = Penstock(tmp_path, daemon.socket)("create", spec)
        start.daemon = daemon
        return daemon.socket

    yield start
    for daemon in daemons:
        daemon.stop(signal.SIGKILL)


def image(step):
    # Casts saturate, and sums wrap.
    number = np.minimum(np.arange(4 * step, 4 * step + 4), 255)[:, None]
    return ((number + 3 * np.arange(45)) % 256).astype(np.uint8).reshape(4, 3, 5, 3)


def bytes_at(array):
    """What lies at a DeviceArray's address: the fake's device memory is this process's, of a real one it is copied back."""
    if IS_REAL:
        return array.numpy()
    shown = array.__cuda_array_interface__
    dtype = np.dtype(shown["typestr"])
    count = int(np.prod(shown["shape"]))
    buffer = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(shown["data"][0])
    return np.frombuffer(buffer, dtype).reshape(shown["shape"]).copy()


def attach_to_ring(socket, **options):
    return penstock.attach("images", socket, cuda=penstock.cuda.open(0), **options)


def test_a_ring_on_a_device_gives_the_bytes_of_the_ring(serve):
    socket = serve()
    assert serve.result.code == 0, serve.result
    steps = 0
    for batch in attach_to_ring(socket):
        assert isinstance(batch["image"], penstock.cuda.DeviceArray)
        assert batch["image"].shape == (4, 3, 5, 3) and batch["image"].dtype == np.uint8
        assert batch["image"].device == 0 and batch["image"].nbytes == 180
        np.testing.assert_array_equal(bytes_at(batch["image"]), image(steps))
        np.testing.assert_array_equal(batch["label"].numpy(), np.arange(4 * steps, 4 * steps + 4))
        steps += 1
    assert steps == 100


# Memory shared by a descriptor, and by a handle where the driver has none of those.
@pytest.mark.parametrize("descriptors", [1, 0])
def test_two_trainers_and_one_without_a_device_read_the_same_ring(serve, descriptors, monkeypatch):
    if IS_REAL and not descriptors:
        monkeypatch.setenv("PENSTOCK_CUDA_DRIVER", str(BY_HANDLES))
    socket = serve(ring="device: 0 slots: 7", fake=f"descriptors={descriptors}")
    loaders = [attach_to_ring(socket), attach_to_ring(socket), penstock.attach("images", socket)]
    for step in range(100):
        device, again, host = (next(loader) for loader in loaders)
        assert isinstance(host["image"], np.ndarray)
        for found in (bytes_at(device["image"]), bytes_at(again["image"]), host["image"]):
            np.testing.assert_array_equal(found, image(step))


def test_a_trainer_in_cpp_reads_the_ring(serve):
    socket = serve(steps=30)
    trainer = subprocess.run([os.environ["PENSTOCK_BIN"] + "/device_trainer", str(socket), "images"], capture_output=True, text=True, timeout=60)
    assert trainer.returncode == 0, trainer.stderr
    assert trainer.stdout.splitlines() == [f"{step} 4 3 5 3 {image(step).sum(dtype=np.uint64)}" for step in range(7)]


def test_ranks_see_their_rows(serve):
    socket = serve()
    ranks = [attach_to_ring(socket, mode="rank", rank=rank, world_size=2) for rank in range(2)]
    for step in range(20):
        parts = [bytes_at(next(loader)["image"]) for loader in ranks]
        assert [len(part) for part in parts] == [2, 2]
        np.testing.assert_array_equal(np.concatenate(parts), image(step))


def test_who_holds_its_share_gets_an_error_and_not_a_copy(serve):
    socket = serve(ring="device: 0 slots: 3")
    loader = attach_to_ring(socket)
    held = [next(loader), next(loader)]
    with pytest.raises(penstock.ResourceExhaustedError, match="holds 2 batches on the device, its share of the ring is 2"):
        next(loader)
    del held[0]
    np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(2))


@needs_fake
def test_a_batch_is_the_trainers_until_its_stream_is_done(serve, fake_driver):
    socket = serve(ring="device: 0 slots: 3")
    loader = attach_to_ring(socket)
    fake_driver("hold", 1)
    next(loader)
    gc.collect()
    assert loader.stats()["leases"] == 1
    fake_driver("hold", 0)
    next(loader)
    gc.collect()
    next(loader)
    assert loader.stats()["leases"] <= 1


def has_kernels(result):
    if result.code != 0 and "built without nvcc" in result.err:
        pytest.skip("this build has no kernels")
    assert result.code == 0, result


def test_expansions(serve):
    socket = serve(ring="""device: 0
        expand { feature: "image" normalize { scale: 255 mean: 0.485 mean: 0.456 mean: 0.406 deviation: 0.5 channels_first: true }
                 dtype: "float32" }
        expand { feature: "label" one_hot { depth: 9 } dtype: "float16" }""")
    has_kernels(serve.result)
    for step, batch in zip(range(5), attach_to_ring(socket)):
        want = (image(step).astype(np.float32) / np.float32(255) - np.float32([0.485, 0.456, 0.406])) / np.float32(0.5)
        np.testing.assert_array_equal(bytes_at(batch["image"]), want.transpose(0, 3, 1, 2), strict=True)
        label = np.arange(4 * step, 4 * step + 4)
        np.testing.assert_array_equal(batch["label"].numpy(), (label[:, None] == np.arange(9)).astype(np.float16), strict=True)
    # Without the device it is as it travels.
    np.testing.assert_array_equal(next(penstock.attach("images", socket, group="host"))["image"].dtype, np.uint8)


@pytest.mark.parametrize("ring, words", [
    ("device: 0 expand { feature: \"imago\" one_hot { depth: 3 } dtype: \"uint8\" }", "there is no such feature; there are: image, label"),
    ("device: 0 expand { feature: \"image\" dtype: \"uint8\" }", "expected one of normalize, one_hot and unpack_bits, found 0"),
    ("device: 0 expand { feature: \"image\" normalize {} dtype: \"int3\" }", "dtype is one of float16"),
    ("device: 0 expand { feature: \"label\" normalize {} dtype: \"float32\" }", "normalize takes a tensor of uint8"),
    ("expand { feature: \"image\" normalize {} dtype: \"float32\" }", "ring.expand needs ring.device"),
    ("device: -1", "ring.device is the number of a CUDA device"),
    ("device: 4000", "no such CUDA device: 4000; there are "),
])
def test_a_ring_that_cannot_be_is_refused(serve, ring, words):
    serve(ring=ring)
    assert serve.result.code != 0
    assert words in serve.result.err


@needs_fake
def test_the_slots_of_a_ring_on_a_device_stay_as_they_are(serve, tmp_path):
    command = Penstock(tmp_path, serve())
    result = command("update", "images", "--slots", "9")
    assert result.code == 1 and "delete the pipeline and create it with another number" in result.err, result
    assert command("update", "images", "--workers", "2").code == 0


def test_what_is_changed_while_it_runs_is_changed_on_the_device_too(serve, tmp_path):
    """Steered by every means, with a trainer on the device and one without: both see the same bytes, step for step."""
    command = Penstock(tmp_path, serve(steps=4000))
    socket = serve.daemon.socket
    device, host = attach_to_ring(socket), penstock.attach("images", socket)
    changes = {5: ("update", "images", "--set", "map.SHAPE=" + ",".join(str(7 * i % 256) for i in range(45))),
               10: ("update", "images", "--set", "batch.batch_size=3"), 15: ("pause", "images"), 20: ("update", "images", "--workers", "3"),
               25: ("update", "images", "--skip", "6"), 30: ("update", "images", "--set", "batch.batch_size=4")}
    rows, firsts, labels = set(), [], []
    for step in range(60):
        if step in changes:
            result = command(*changes[step])
            assert result.code == 0, result
        if step == 15:
            assert command("resume", "images").code == 0
        one, other = next(device), next(host)
        np.testing.assert_array_equal(bytes_at(one["image"]), other["image"], strict=True)
        np.testing.assert_array_equal(one["label"].numpy(), other["label"], strict=True)
        rows.add(len(other["label"]))
        labels.extend(other["label"].tolist())
        firsts.append(int(other["image"][0, 0, 0, 1]) - min(int(other["label"][0]), 255) & 255)
    assert rows == {3, 4}
    assert {3, 7} <= set(firsts), "the constant was never changed"
    # Where the daemon is far ahead, the last change begins at the step of the one before it: what is left out are batches of four, then.
    assert sorted(set(np.diff(labels))) in ([1, 1 + 6 * 3], [1, 1 + 6 * 4]), "not six batches were left out"


@needs_fake
@pytest.mark.parametrize("fake, words", [
    ("memory=1000", "the ring is larger than the device's free memory: 5 slots need 2560 bytes, and 1000 of 1000 are free"),
    ("init=100", "no CUDA device"),
    ("init=34", "the toolkit's stub"),
])
def test_a_daemon_without_a_device_says_so_and_serves_the_rest(serve, fake, words, tmp_path):
    socket = serve(fake=fake)
    assert serve.result.code != 0
    assert words in serve.result.err
    spec = tmp_path / "host.textproto"
    spec.write_text(IMAGES.format(steps=40, ring="", values=VALUES))
    assert Penstock(tmp_path, socket)("create", spec).code == 0
    np.testing.assert_array_equal(next(penstock.attach("images", socket))["image"], image(0))


@needs_fake
def test_a_daemon_without_a_driver_says_so(serve, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CUDA_DRIVER", "/no/libcuda.so.1")
    serve()
    assert serve.result.code != 0
    assert "no CUDA driver: " in serve.result.err


@needs_fake
def test_a_daemon_that_loses_its_device_fails_the_pipeline_and_stalls_nobody(serve):
    socket = serve(fake="lost_after=10")
    with pytest.raises(penstock.InternalError, match="CUDA_ERROR_ECC_UNCORRECTABLE"):
        for step, batch in enumerate(penstock.attach("images", socket)):
            np.testing.assert_array_equal(batch["image"], image(step))
    assert step >= 5


@needs_fake
@pytest.mark.parametrize("descriptors, opened_by", [(1, "import"), (0, "ipc_memory")])
def test_a_trainer_that_cannot_open_the_ring_is_told_both_versions(serve, fake_driver, descriptors, opened_by):
    socket = serve(fake=f"descriptors={descriptors}")
    fake_driver(opened_by, 201)
    with pytest.raises(penstock.UnavailableError, match="shares cannot be opened"):
        attach_to_ring(socket)
    fake_driver("version", 12040)
    with pytest.raises(penstock.FailedPreconditionError, match="daemon's CUDA driver is of version 12.8, this process's of 12.4"):
        attach_to_ring(socket)
    fake_driver(opened_by, 0)
    # Versions alone are no reason.
    next(attach_to_ring(socket))


def test_a_pipeline_without_a_device_says_so(serve):
    socket = serve(ring="")
    with pytest.raises(penstock.FailedPreconditionError, match="is not on a device; put ring { device: 0 } into its spec"):
        attach_to_ring(socket)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_gets_the_ring_and_not_the_device(serve, tmp_path):
    config = tmp_path / "config"
    config.write_text("allowed_uids: 54321")
    socket = serve(options=("--config", str(config)))
    os.chmod(socket, 0o666)
    folders = [folder for folder in tmp_path.parents if folder.stat().st_mode & 0o1 == 0]
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in (*folders, tmp_path, tmp_path / "run")}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o1)
    cuda = penstock.cuda.open(0)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        try:
            os.setgid(54321)
            os.setuid(54321)
            said.append(next(penstock.attach("images", socket))["label"].tolist())
            penstock.attach("images", socket, cuda=cuda)
        except BaseException as error:
            said.append(f"{type(error).__name__} {error}")
        os.write(write, repr(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    for folder, mode in modes.items():
        folder.chmod(mode)
    said = ast.literal_eval(os.read(read, 4096).decode())
    assert len(said) == 2, said
    label, refused = said
    assert label == [0, 1, 2, 3]
    assert refused.startswith("PermissionDeniedError") and "you are user 54321, the daemon is 0" in refused


TRAINER = """
import sys, penstock, penstock.cuda
loader = penstock.attach("images", sys.argv[1], cuda=penstock.cuda.open(0))
held = [next(loader), next(loader)]
print("holds", flush=True)
sys.stdin.read()
"""


def test_a_killed_trainer_stalls_nobody_and_leaves_nothing(serve):
    socket = serve(ring="device: 0 slots: 5")
    with subprocess.Popen([sys.executable, "-c", TRAINER, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as trainer:
        assert trainer.stdout.readline() == b"holds\n"
        loader = attach_to_ring(socket)
        first = next(loader)["image"]
        trainer.kill()
        trainer.wait()
    number = loader.step
    del first
    for step in range(number + 1, 100):
        np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(step))


def test_a_killed_daemon_is_followed_by_another_with_a_new_ring(tmp_path, monkeypatch):
    spec = tmp_path / "images.textproto"
    spec.write_text(IMAGES.format(steps=400, ring="device: 0 slots: 5", values=VALUES))
    first = Daemon(tmp_path / "s")
    assert Penstock(tmp_path, first.socket)("create", spec).code == 0
    loader = attach_to_ring(first.socket)
    for step in range(10):
        np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(step))
    first.kill()
    second = Daemon(tmp_path / "s")
    try:
        for step in range(10, 100):
            np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(step))
        assert loader.stats()["reconnects"] == 1
        assert next(loader, None) is None
    finally:
        second.kill()


def test_a_killed_daemons_events_are_cleared_away_by_the_next_one(tmp_path):
    """The file in which CUDA's driver keeps a process's events stays when that is killed; of the fake the test makes it."""
    folder = pathlib.Path("/dev/shm")
    spec = tmp_path / "images.textproto"
    spec.write_text(IMAGES.format(steps=400, ring="device: 0 slots: 5", values=VALUES))
    first = Daemon(tmp_path / "s")
    number = f"{first.process.pid:x}"
    assert Penstock(tmp_path, first.socket)("create", spec).code == 0
    made = folder / f"cuda.shm.0.{number}.1"
    if not IS_REAL:
        made.touch()
    try:
        first.kill()
        assert list(folder.glob(f"cuda.shm.*.{number}.*"))
        Daemon(tmp_path / "s").stop()
        assert not list(folder.glob(f"cuda.shm.*.{number}.*"))
    finally:
        made.unlink(missing_ok=True)


@needs_fake
def test_a_copy_that_a_killed_daemon_did_not_end_is_taken_from_the_next_one(tmp_path, monkeypatch):
    """What is published and was not yet over when the daemon died never is: a trainer goes on behind what it has."""
    spec = tmp_path / "images.textproto"
    spec.write_text(IMAGES.format(steps=400, ring="device: 0 slots: 5", values=VALUES))
    monkeypatch.setenv("PENSTOCK_FAKE_CUDA", "hold=1")
    first = Daemon(tmp_path / "s")
    monkeypatch.delenv("PENSTOCK_FAKE_CUDA")
    assert Penstock(tmp_path, first.socket)("create", spec).code == 0
    loader = attach_to_ring(first.socket)
    second = None
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            taken = pool.submit(next, loader)
            eventually(lambda: loader.stats()["published"] > 0)
            assert not taken.done()
            first.kill()
            second = Daemon(tmp_path / "s")
            np.testing.assert_array_equal(bytes_at(taken.result(60)["image"]), image(0))
        for step in range(1, 100):
            np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(step))
        assert loader.stats()["reconnects"] == 1
        assert next(loader, None) is None
    finally:
        first.kill()
        if second is not None:
            second.kill()


def test_what_a_deleted_pipeline_has_published_is_still_read(serve, tmp_path):
    socket = serve(ring="device: 0 slots: 5")
    loader = attach_to_ring(socket)
    held = next(loader)
    assert Penstock(tmp_path, socket)("delete", "images").code == 0
    step = 1
    with pytest.raises(penstock.Error):
        while True:
            np.testing.assert_array_equal(bytes_at(next(loader)["image"]), image(step))
            step += 1
    np.testing.assert_array_equal(bytes_at(held["image"]), image(0))


def test_cuda_loader_copies_from_any_pipeline(serve):
    socket = serve(ring="")
    loader = penstock.cuda.loader("images", socket=socket)
    for step, batch in enumerate(loader):
        np.testing.assert_array_equal(bytes_at(batch["image"]), image(step))
        np.testing.assert_array_equal(batch["label"].numpy(), np.arange(4 * step, 4 * step + 4))
    stats = loader.stats()
    assert stats["batches"] == 100 and stats["copies"] == 0
    assert stats["cuda"]["copies"] == 200 and stats["cuda"]["staged_copies"] == 0 and stats["cuda"]["why_staged"] == ""


def test_cuda_loader_of_a_dataset_stages_what_is_not_of_a_batch():
    dataset = penstock.Dataset.range(12).batch(4)
    found = [array.numpy().tolist() for array in penstock.cuda.loader(dataset)]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    cuda = penstock.cuda.open(0)
    array = cuda.to_device(np.arange(6.0).reshape(2, 3).T)
    np.testing.assert_array_equal(array.numpy(), np.arange(6.0).reshape(2, 3).T)
    assert cuda.stats()["staged_copies"] == 1
    with pytest.raises(TypeError, match="only arrays of numbers"):
        cuda.to_device(np.array([b"x"], object))


class Dlpack(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


def test_cuda_loader_gives_ragged_tensors_of_arrays_there():
    lists = penstock.Dataset.range(12).map(lambda i: penstock.functions.arange(i % 4)).ragged_batch(3)
    for number, ragged in enumerate(penstock.cuda.loader(lists)):
        wanted = [list(range(i % 4)) for i in range(3 * number, 3 * number + 3)]
        values, splits = bytes_at(ragged.flat_values), bytes_at(ragged.row_splits)
        assert [values[begin:end].tolist() for begin, end in zip(splits, splits[1:])] == wanted
        assert len(ragged) == 3
    assert number == 3


@pytest.mark.parametrize("dtype, code", [
    ("bool", 6), ("int8", 0), ("uint8", 1), ("int16", 0), ("uint16", 1), ("int32", 0), ("uint32", 1), ("int64", 0), ("uint64", 1),
    ("float16", 2), ("float32", 2), ("float64", 2)])
def test_dlpack_shows_the_array(dtype, code):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    array = penstock.cuda.open(0).to_device(values)
    assert array.__dlpack_device__() == (2, 0)
    capsule = array.__dlpack__(stream=1)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    shown = Dlpack.from_address(pointer(capsule, b"dltensor"))
    assert shown.data == array.__cuda_array_interface__["data"][0]
    assert (shown.device_type, shown.device, shown.lanes, shown.byte_offset, shown.strides) == (2, 0, 1, 0, None)
    assert (shown.code, shown.bits) == (code, values.dtype.itemsize * 8)
    assert shown.shape[: shown.ndim] == [2, 3]
    # The capsule holds the memory.
    expected = bytes_at(array)
    before = sys.getrefcount(array)
    del capsule
    assert sys.getrefcount(array) == before - 1
    np.testing.assert_array_equal(expected, values)


def test_dlpack_makes_no_copies():
    array = penstock.cuda.open(0).to_device(np.arange(6))
    array.__dlpack__(stream=1, max_version=(1, 0), dl_device=(2, 0), copy=False)
    with pytest.raises(BufferError, match="copy it afterwards"):
        array.__dlpack__(stream=1, copy=True)
    with pytest.raises(BufferError, match="shown only there"):
        array.__dlpack__(stream=1, dl_device=(1, 0))


@needs_fake
def test_jax_gets_arrays_whose_copies_are_over(serve, fake_driver, monkeypatch):
    """penstock.jax with a jax of the test's own, which begins to compute without waiting for a stream, as jax does."""
    jax = types.ModuleType("jax")
    jax.dlpack = types.ModuleType("jax.dlpack")
    jax.devices = lambda kind: [types.SimpleNamespace(local_hardware_id=0)]
    jax.config = types.SimpleNamespace(jax_enable_x64=True)
    jax.dlpack.from_dlpack = bytes_at
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.dlpack", jax.dlpack)
    monkeypatch.delitem(sys.modules, "penstock.jax", raising=False)
    import penstock.jax

    try:
        socket = serve()
        fake_driver("hold", 1)
        for step, batch in zip(range(5), penstock.jax.loader("images", socket=socket, pinned=True)):
            np.testing.assert_array_equal(batch["image"], image(step))
            np.testing.assert_array_equal(batch["label"], np.arange(4 * step, 4 * step + 4))
    finally:
        fake_driver("hold", 0)
        sys.modules.pop("penstock.jax", None)
        if hasattr(penstock, "jax"):
            del penstock.jax


@needs_fake
def test_torch_tensors_are_filled_beside_its_stream(serve, monkeypatch):
    """penstock.torch with a torch of the test's own: this machine's may know no CUDA."""
    current = []  # streams
    calls = []

    class Stream:
        def __init__(self, device):
            self.cuda_stream = id(self)

        def wait_stream(self, other):
            calls.append(("wait", self.cuda_stream, other.cuda_stream))

        def __enter__(self):
            current.append(self)

        def __exit__(self, *_):
            current.pop()

    class Tensor:
        def __init__(self, shape, dtype, device):
            self.memory = np.empty(shape, dtype)
            calls.append(("make", current[-1].cuda_stream))

        def data_ptr(self):
            return self.memory.ctypes.data

        def record_stream(self, stream):
            calls.append(("record", stream.cuda_stream))

    class Cuda:
        """A device that notes which stream a copy goes into."""

        def __init__(self, device):
            self.device = device

        def __getattr__(self, name):
            return getattr(self.device, name)

        def copy(self, array, address, stream):
            calls.append(("copy", stream))
            self.device.copy(array, address, 0)

    trainers = Stream(None)
    current.append(trainers)

    torch = types.ModuleType("torch")
    torch.device = lambda name, index=None: types.SimpleNamespace(type=str(name).split(":")[0], index=index)
    torch.empty = lambda shape, dtype, device: Tensor(shape, dtype, device)
    torch.uint8, torch.int64, torch.Tensor = np.uint8, np.int64, Tensor
    torch.from_dlpack = lambda array: ("in place", array)
    torch.utils = types.SimpleNamespace(data=types.SimpleNamespace(IterableDataset=type("IterableDataset", (), {}), get_worker_info=lambda: None))
    torch.cuda = types.SimpleNamespace(
        current_device=lambda: 0, current_stream=lambda device: current[-1], Stream=Stream, stream=lambda stream: stream)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "penstock.torch", raising=False)
    import penstock.torch

    try:
        socket = serve()
        opened = penstock.cuda.open
        with monkeypatch.context() as patch:
            patch.setattr(penstock.cuda, "open", lambda index: Cuda(opened(index)))
            loader = penstock.torch.loader("images", socket=socket, device="cuda")
        for step, batch in enumerate(loader):
            np.testing.assert_array_equal(batch["image"].memory, image(step))
            np.testing.assert_array_equal(batch["label"].memory, np.arange(4 * step, 4 * step + 4))
            copies, trainer = calls[0][1], trainers.cuda_stream
            assert copies != trainer
            assert calls == 2 * [("make", copies), ("copy", copies), ("wait", trainer, copies), ("record", trainer)]
            calls.clear()
        assert step == 99
        assert loader.stats()["cuda"]["copies"] == 200
        for step, batch in zip(range(3), penstock.torch.loader("images", socket=socket, device="cuda", ring=True, group="ring")):
            kind, array = batch["image"]
            assert kind == "in place" and array.shape == (4, 3, 5, 3)
        with pytest.raises(TypeError, match="ring=True needs"):
            penstock.torch.loader("images", socket=socket, ring=True)
    finally:
        sys.modules.pop("penstock.torch", None)
        if hasattr(penstock, "torch"):
            del penstock.torch
