"""Batches as jax.Arrays.

    for batch in penstock.jax.loader(dataset):                          # a penstock.Dataset of batches
        state = train_step(state, batch)
    for batch in penstock.jax.loader("flowers", sharding=sharding):     # a pipeline of a running penstockd
        ...

On the CPU a jax.Array is the daemon's memory, without a copy; it is immutable in any case. Needs the package jax; importing penstock
does not.
"""

from __future__ import annotations

from typing import Any, Optional

import jax
import jax.dlpack

import penstock.cuda
from penstock._epochs import EpochLoader
from penstock.cuda import CudaLoader

__all__ = ["JaxCudaLoader", "JaxLoader", "loader"]


class JaxLoader(EpochLoader):
    """One epoch for each `for` loop over it; see loader()."""


class JaxCudaLoader(CudaLoader, JaxLoader):
    """The same with arrays on a CUDA device by DLPack; see loader()."""


def _cuda_loader(source, device, ring, options):
    device = device or jax.devices("gpu")[0]
    cuda = penstock.cuda.open(device.local_hardware_id)

    def to_device(array):
        if not isinstance(array, penstock.cuda.DeviceArray):
            if array.dtype.itemsize == 8 and not jax.config.jax_enable_x64:
                return jax.device_put(array, device)  # which makes 32 bits of 64
            array = cuda.to_device(array)
            # JAX may take the memory over without waiting for a stream: its computations begin when they are called.
            cuda.synchronize()
        return jax.dlpack.from_dlpack(array)

    if ring:
        options.update(cuda=cuda)
    return JaxCudaLoader(source, cuda, to_device, options)


def loader(
    source,
    *,
    device: Optional[Any] = None,
    sharding: Optional[Any] = None,
    pinned: bool = False,
    ring: bool = False,
    share: Optional[str] = None,
    world: Any = None,
    guard: Any = "auto",
    fewest_hosts: Optional[int] = None,
    helpers: Any = None,
    **options: Any,
) -> JaxLoader:
    """An iterable of batches whose arrays are jax.Arrays.

    Args:
      source: a penstock.Dataset of batches (`.batch(n)`); or the name of a pipeline that penstockd runs.
      device: where arrays go; by default JAX's own device.
      sharding: a jax.sharding.Sharding of the global batch. This process has the rows of its rank (`rank` and `world_size`), as
        jax.make_array_from_process_local_data takes them.
      pinned: copies to a CUDA device straight from the daemon's memory, and hands the copy to JAX by DLPack, instead of
        jax.device_put.
      ring: the same without a copy, for a pipeline with its ring on the device (`ring { device: 0 }`).
      share: for a Dataset, as in penstock.torch.loader.
      world, guard, fewest_hosts: several hosts, as in penstock.torch.loader; world="jax" takes jax.process_index() of jax.process_count().
      helpers: daemons of other hosts that make steps, as in penstock.torch.loader.
      **options: of penstock.attach, for a pipeline or with `share`.

    Returns:
      A JaxLoader, with state_dict(), load_state_dict(), set_epoch() and len(). Batches keep their
      structure; strings stay arrays of bytes. As always in JAX, 64-bit numbers become 32-bit ones
      unless jax_enable_x64 is set.

    Raises:
      TypeError: both device and sharding, or options for a Dataset without `share`. Also the errors of penstock.attach.
    """
    options.update(share=share, world=world, guard=guard, fewest_hosts=fewest_hosts, helpers=helpers)
    if pinned or ring:
        if sharding is not None:
            raise TypeError("pinned and ring go to one device, and not with a sharding")
        return _cuda_loader(source, device, ring, options)
    if sharding is None:
        return JaxLoader(source, lambda array: jax.device_put(array, device), options)
    if device is not None:
        raise TypeError("device and sharding exclude each other")
    return JaxLoader(source, lambda array: jax.make_array_from_process_local_data(sharding, array), options)


def __dir__():
    return sorted(__all__)
