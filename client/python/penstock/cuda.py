"""Batches on CUDA devices, without a CUDA package: arrays that torch, JAX and CuPy take without a copy.

    for batch in penstock.cuda.loader("flowers"):           # one copy each, straight from the daemon's memory
        images = cupy.asarray(batch["image"])                # or torch.from_dlpack, jax.dlpack.from_dlpack

    for batch in penstock.cuda.loader("flowers", ring=True): # a pipeline with `ring { device: 0 }`: no copy at all
        ...

Penstock looks for the driver when you open a device; without a driver that is a FailedPreconditionError. docs/cuda.md has the rest.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from penstock._core import Cuda, DeviceArray
from penstock._epochs import EpochLoader

__all__ = ["Cuda", "CudaLoader", "DeviceArray", "loader", "open"]


def open(device: int = 0) -> Cuda:
    """A CUDA device, by its number.

    Raises:
      FailedPreconditionError: there is no driver, or an old one, or it finds no device.
      NotFoundError: there is no such device.
    """
    return Cuda(device)


class CudaLoader(EpochLoader):
    """One epoch for each `for` loop over it; see loader()."""

    def __init__(self, source, cuda, make_tensor, options):
        self._cuda = cuda
        super().__init__(source, make_tensor, options)

    def stats(self) -> Dict[str, Any]:
        """What the loader has seen; under "cuda", how its batches reached the device: Cuda.stats."""
        return {**super().stats(), "cuda": self._cuda.stats()}


def loader(source, *, device: int = 0, stream: int = 0, ring: bool = False, share: Optional[str] = None, **options: Any) -> CudaLoader:
    """An iterable of batches whose arrays are DeviceArrays.

    Args:
      source: a penstock.Dataset of batches; or the name of a pipeline that penstockd runs.
      device: the number of the device.
      stream: the CUDA stream that copies are enqueued in and that reads the arrays, as a number; 0 is the legacy default one.
      ring: whether to take the batches in place, for a pipeline with its ring on the device.
      share: for a Dataset, as in penstock.torch.loader.
      **options: of penstock.attach, for a pipeline or with `share`.

    Returns:
      A CudaLoader. Batches keep their structure; strings stay arrays of bytes, and ragged tensors are RaggedTensors of DeviceArrays.
      An array's memory lives as long as the array, and until the stream has done what it was given before that.

    Raises:
      FailedPreconditionError, NotFoundError: as open(), or the pipeline's ring is not on a device.
      TypeError: options, or `ring`, for a Dataset without `share`. The errors of penstock.attach.
    """
    options["share"] = share
    cuda = open(device)
    if ring:
        options.update(cuda=cuda, stream=stream)

    def to_device(array):
        return array if isinstance(array, DeviceArray) else cuda.to_device(array, stream)

    return CudaLoader(source, cuda, to_device, options)
