"""Batches as torch tensors, in the place of torch.utils.data.DataLoader.

    loader = penstock.torch.loader(dataset)                  # a penstock.Dataset of batches
    loader = penstock.torch.loader("flowers")                # a pipeline of a running penstockd
    loader = penstock.torch.loader("flowers", rank=local_rank, world_size=local_world_size)    # of this host's processes

    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            ...
    checkpoint["data"] = loader.state_dict()                 # and load_state_dict() to go on

Nothing is fetched ahead in this process: batches wait ready in the daemon's memory. So state_dict() belongs to the batch that the loop
has. Needs the package torch; importing penstock does not.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import torch

import penstock.cuda
from penstock import _core
from penstock._epochs import EpochLoader
from penstock.cuda import CudaLoader

if TYPE_CHECKING:
    from penstock._loading._loader import DataLoader

__all__ = ["DataLoader", "TorchCudaLoader", "TorchLoader", "as_tensor", "loader"]


if not TYPE_CHECKING:

    def __getattr__(name):
        """DataLoader comes with its first use: whoever wants batches of a spec needs none of torch.utils.data for them."""
        if name != "DataLoader":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from penstock._loading._loader import DataLoader

        globals()[name] = DataLoader
        return DataLoader


def __dir__():
    return sorted(__all__)


def as_tensor(array: np.ndarray, copy: bool = False) -> torch.Tensor:
    """A batch's array as a tensor of the same shape and dtype. Also bfloat16, which NumPy lacks.

    Args:
      array: of numbers, any shape; read-only, as a Loader gives it.
      copy: False makes a view of the daemon's memory, which lives as long as the tensor. What an operation
        in place writes stays in this process: a page that is written is copied, and the next batch at
        that place is seen as it is. True copies at once and releases the batch.

    Raises:
      TypeError: the array holds strings.
      MemoryError: the daemon's memory cannot be mapped a second time.
    """
    if array.dtype == object:
        raise TypeError("torch has no tensors of strings; leave the feature out, or take its array")
    if array.dtype.name == "bfloat16":
        return as_tensor(array.view(np.int16), copy).view(torch.bfloat16)
    if copy:
        return torch.from_numpy(np.array(array))
    if array.flags.writeable or array.nbytes == 0:
        return torch.from_numpy(array if array.flags.writeable else np.array(array))
    writable = _core.writable(array)
    return torch.from_numpy(np.array(array) if writable is None else writable)


def _as_source(array: np.ndarray) -> torch.Tensor:
    """A tensor that is only copied from. torch does not know that its memory is read-only."""
    if array.dtype.name == "bfloat16":
        return _as_source(array.view(np.int16)).view(torch.bfloat16)
    if array.flags.writeable or array.nbytes == 0 or array.dtype == object:
        return as_tensor(array)
    array = np.ascontiguousarray(array)
    memory = (ctypes.c_uint8 * array.nbytes).from_address(array.ctypes.data)
    memory.held = array  # the tensor holds `memory`
    return torch.from_numpy(np.frombuffer(memory, array.dtype).reshape(array.shape))


class TorchLoader(EpochLoader, torch.utils.data.IterableDataset):
    """One epoch for each `for` loop over it; see loader().

    To torch it is a dataset of ready batches, so that torch's DataLoader and torchdata's StatefulDataLoader take it with
    `batch_size=None`; neither is needed. It belongs to this process: leave `num_workers` at 0.

    Raises:
      FailedPreconditionError: on a loop in a worker process of torch's DataLoader, each of which would give all batches.
    """

    # Libraries that take a loader apart (accelerate.skip_first_batches) make a torch DataLoader of these.
    batch_size = None
    drop_last = False
    num_workers = 0
    prefetch_factor = None

    @property
    def dataset(self) -> TorchLoader:
        """The loader itself: to torch it is the dataset, of ready batches."""
        return self

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        if worker is not None:
            raise penstock.FailedPreconditionError(
                f"this is worker {worker.id} of {worker.num_workers} of a torch DataLoader, each of which would give all batches; the daemon has "
                "workers of its own: num_workers=0"
            )
        return super().__iter__()


class TorchCudaLoader(CudaLoader, TorchLoader):
    """The same with tensors on a CUDA device; see loader()."""


def _cuda_loader(source, device, ring, options):
    index = device.index if device.index is not None else torch.cuda.current_device()
    device = torch.device("cuda", index)
    cuda = penstock.cuda.open(index)
    # Copies run beside the work that torch's stream already has, and a slot is free again as soon as its own are over.
    copies = torch.cuda.Stream(device)

    def to_device(array):
        if isinstance(array, penstock.cuda.DeviceArray):
            return torch.from_dlpack(array)
        dtype = getattr(torch, "bfloat16" if array.dtype.name == "bfloat16" else array.dtype.name)
        with torch.cuda.stream(copies):
            tensor = torch.empty(array.shape, dtype=dtype, device=device)
        cuda.copy(array, tensor.data_ptr(), copies.cuda_stream)
        reader = torch.cuda.current_stream(device)
        reader.wait_stream(copies)
        # The tensor is of the copies' stream: its memory is not theirs again before the loop's stream is done with it.
        tensor.record_stream(reader)
        return tensor

    if ring:
        options.update(cuda=cuda, stream=torch.cuda.current_stream(device).cuda_stream)
    return TorchCudaLoader(source, cuda, to_device, options)


def loader(
    source,
    *,
    copy: bool = False,
    device: Optional[Any] = None,
    ring: bool = False,
    share: Optional[str] = None,
    world: Any = None,
    guard: Any = "auto",
    fewest_hosts: Optional[int] = None,
    helpers: Any = None,
    **options: Any,
) -> TorchLoader:
    """An iterable of batches whose arrays are torch tensors.

    Args:
      source: a penstock.Dataset of batches (`.batch(n)`); or the name of a pipeline that penstockd runs.
      copy: whether tensors on the CPU are copies; see as_tensor. A loop that keeps more batches than its
        share of the ring's memory gets copies anyhow, with a warning.
      device: where tensors go, such as "cuda"; by default they stay on the CPU. They are copied to a CUDA device once, straight
        from the daemon's memory, in a stream of the loader's own, beside what torch's streams are doing. The copy is under way
        when the loop gets the tensors. torch's current stream waits for it before the loop's next work; make any other stream
        wait for that one. stats()["cuda"] tells how they were copied.
      ring: with a CUDA device: takes the batches of a pipeline with its ring on that device (`ring { device: 0 }`) in place, as
        tensors that share the ring's memory. Do not write to them.
      share: for a Dataset: the name of a job. The job's processes on this host take the dataset's passes together, from one private
        daemon (penstock.shared_daemon); with `rank` and `world_size` each has its rows of every batch. All give an equal dataset.
        Seeds that it leaves open are made of the job's name, so that all have one order, and the same job begun again has it too.
        Each epoch has another order, and set_epoch changes nothing. The pipeline stays until the last process of the job ends. A
        loop is the rest of the epoch in which the pipeline is.
      world: for training on several hosts: all of them make the same batches of `batch_size` rows together, and this loader gives its host's rows of each. (hosts, host);
        "auto" reads what torchrun, Ray Train, Slurm, Open MPI, PMI, Kubernetes or jax.distributed say of this process, and a launcher's name ("torchrun", "slurm", "ray",
        "mpi", "pmi", "kubernetes", "statefulset", "jax") reads that alone. With `share` the processes of a host divide its rows, else each process counts as a host. Steps,
        epochs, len() and states are the same on all hosts; a state goes on in a world of any other size. Each op that draws needs a seed, or the job a `share`.
        docs/howto/many-hosts.md tells the rest.
      guard: how the processes of a world tell each other behind the first batch of each loop what they make, so that one with other files or options is named: "auto"
        uses torch.distributed where it is initialised, or JAX, and warns where neither is; a function takes an object and returns a list of those of all processes; None
        compares nothing.
      fewest_hosts: of how few hosts, at the least, this one may become one while it runs (TorchLoader.reworld): its ring has room for as many rows.
      helpers: for a Dataset: daemons of other hosts that make steps of it: what penstock.helpers() or penstock.ray.workers() returns, or a list of addresses on this
        machine. Bytes and order are the same with any number of them. With
        `share` all processes give the same ones. docs/howto/helpers.md tells the rest.
      **options: of penstock.attach, for a pipeline or with `share`: group, socket, timeout, reconnect, cursor and others. `rank`
        and `world_size` alone give each process its rows of every batch (mode "rank").

    Returns:
      A TorchLoader. Each loop over it is one epoch: a pass over a Dataset, or the rest of the epoch in
      which the pipeline is. Batches keep their structure; strings stay arrays of bytes, and ragged
      tensors are RaggedTensors of torch tensors.

    Raises:
      TypeError: options for a Dataset without `share`, or `share` for a pipeline. Also the errors of penstock.attach and penstock.shared_daemon.
      InvalidArgumentError: `world`: a variable of the launcher is missing, or contradicts another one.
      FailedPreconditionError: on a loop, a host of the world makes another stream; or `ring`, and the pipeline's ring is not on a device; or `share`, and the dataset has large arrays of this process.
    """
    options.update(share=share, world=world, guard=guard, fewest_hosts=fewest_hosts, helpers=helpers)
    if device is not None and torch.device(device).type == "cuda":
        return _cuda_loader(source, torch.device(device), ring, options)
    if ring:
        raise TypeError('ring=True needs device="cuda"')
    if device is None or torch.device(device).type == "cpu":
        return TorchLoader(source, lambda array: as_tensor(array, copy), options)
    # The copy to the device is the only one; it has left this memory when to() returns, as memory that is not pinned.
    return TorchLoader(source, lambda array: _as_source(array).to(device), options)
