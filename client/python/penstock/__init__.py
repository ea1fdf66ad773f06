"""Ready batches of a Penstock pipeline, as NumPy arrays without a copy.

    import penstock

    for batch in penstock.attach("chess"):  # a pipeline of a running penstockd
        train(batch["board"], batch["score"])

    dataset = penstock.TFRecordDataset("chess/*.tfrecord").shuffle(10_000, seed=7)  # one declared here
    for record in dataset.batch(64):
        ...
"""

import builtins as _builtins
import os as _os
from typing import TYPE_CHECKING

import numpy as _np

from penstock import audio, experimental, functions, image, io, strings

from penstock import _core
from penstock._core import Loader, abi_version, default_socket, version
from penstock._dataset._cardinality import INFINITE as INFINITE_CARDINALITY
from penstock._dataset._cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from penstock._control import Skipped
from penstock._running import _changed_code
from penstock._running._daemon import stop_private_daemon
from penstock._running._helpers import helpers
from penstock._running._offering import offer_workers
from penstock._running._sharing import shared_daemon
from penstock._dataset._arguments import AUTOTUNE
from penstock._dataset import Dataset
from penstock._dtypes import string
from penstock._errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    DetachedError,
    Error,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PeerLostError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from penstock._json import JsonFeature, decode_json
from penstock._running._iterator import DatasetIterator
from penstock._options import Options, TensorSpec
from penstock._ragged import RaggedTensor
from penstock._show import show
from penstock._sparse import SparseTensor
from penstock._dataset._arrow import ArrowDataset
from penstock._dataset._arrow_features import ArrowFeature
from penstock._dataset._readers import FilesDataset, FixedLengthRecordDataset, TarDataset, TextLineDataset, TFRecordDataset
from penstock._tracing._refusals import TraceError
from penstock._numpy._tensor import Tensor
from penstock._dataset._python_calls import numpy_function, py_function
from penstock._row import At, rng
from penstock._writer import TFRecordOptions, TFRecordWriter

bool = _np.bool_
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
# Not one of NumPy's.
bfloat16 = "bfloat16"

__version__ = version()

__all__ = [
    "AUTOTUNE",
    "AbortedError",
    "AlreadyExistsError",
    "ArrowDataset",
    "ArrowFeature",
    "At",
    "CancelledError",
    "DataLossError",
    "Dataset",
    "DatasetIterator",
    "DeadlineExceededError",
    "DetachedError",
    "Error",
    "FailedPreconditionError",
    "FilesDataset",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "InternalError",
    "InvalidArgumentError",
    "JsonFeature",
    "Loader",
    "NotFoundError",
    "Options",
    "OutOfRangeError",
    "PeerLostError",
    "PermissionDeniedError",
    "RaggedTensor",
    "SparseTensor",
    "ResourceExhaustedError",
    "Skipped",
    "TFRecordDataset",
    "TarDataset",
    "TFRecordOptions",
    "TFRecordWriter",
    "Tensor",
    "TensorSpec",
    "TextLineDataset",
    "TraceError",
    "UNKNOWN_CARDINALITY",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "abi_version",
    "attach",
    "audio",
    "bfloat16",
    "decode_json",
    "default_socket",
    "experimental",
    "float16",
    "float32",
    "float64",
    "functions",
    "helpers",
    "image",
    "int16",
    "int32",
    "int64",
    "int8",
    "io",
    "numpy_function",
    "py_function",
    "rng",
    "offer_workers",
    "shared_daemon",
    "show",
    "stop_private_daemon",
    "string",
    "strings",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "version",
]

# Imported when they are named: they need packages of their own, or take time.
_MODULES = ("cuda", "jax", "ray", "tensorflow", "torch")


if TYPE_CHECKING:
    from penstock import cuda as cuda
    from penstock import jax as jax
    from penstock import ray as ray
    from penstock import tensorflow as tensorflow
    from penstock import torch as torch
else:

    def __getattr__(name):
        if name in _MODULES:
            import importlib

            return importlib.import_module(f"penstock.{name}")
        if name.startswith("_"):
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        from penstock._tracing import _absent

        raise _absent.error(name, [*__all__, *_MODULES])


def __dir__():
    return sorted({*__all__, *_MODULES, "__version__"})


def attach(
    name: str,
    socket: "str | _os.PathLike | None" = None,
    group: str = "default",
    timeout: "float | None" = None,
    *,
    mode: str = "broadcast",
    rank: "int | None" = None,
    world_size: "int | None" = None,
    replica: int = 0,
    replicas: int = 1,
    delivery: str = "at_least_once",
    cursor: "bytes | str | None" = None,
    reconnect: float = 60.0,
    slow: str = "block",
    lag: float = 60.0,
    consumer: "str | None" = None,
    take_over: "_builtins.bool" = False,
    cuda: "_core.Cuda | None" = None,
    stream: int = 0,
    batch_size: "int | None" = None,
) -> Loader:
    """Attaches to a pipeline of penstockd. Iterate over what it returns.

    A batch has the structure of the pipeline's element: a dict from names to tensors, a tuple of
    them, a nest of both, or a lone tensor. Its tensors, where the first axis counts rows:

      numbers: read-only arrays in the daemon's memory, (rows, ...); a shape may differ from batch
        to batch. bfloat16 is that of the package ml_dtypes, or uint16 where it is not installed.
      strings: arrays of dtype object that hold bytes, (rows, ...); copies.
      ragged tensors: RaggedTensor over such arrays, (rows, None, ...).
      sparse tensors: SparseTensor, a tuple of such arrays: indices, values, dense_shape.

    The daemon's memory lives as long as the last array over it, even after the loader is closed.

    Args:
      name: the pipeline, as `penstock list` shows it.
      socket: the daemon's; by default $PENSTOCK_SOCKET, else $XDG_RUNTIME_DIR/penstock.sock, else
        /run/penstock/penstock.sock.
      group: the consumers that read one stream together.
      timeout: the longest wait for one batch, in seconds. After it DeadlineExceededError is raised; None waits for
        ever. (A daemon that has died is noticed within a second.) attach() itself and load_state_dict() wait as long for
        the daemon's answer, but at least one second and at most 60; for them None stands for 60.
      mode: how the group shares the stream. "broadcast": each consumer sees every batch; "rank":
        rank r of n sees its rows of every batch, from r * rows // n up to (r + 1) * rows // n;
        "split": each batch goes to one consumer, first come, first served.
      rank, world_size: for mode "rank".
      replica, replicas: for mode "rank": several consumers that see the same rows.
      delivery: for mode "split": what happens to the batches of a consumer that dies. "at_least_once" gives them to
        another consumer (Loader.redelivered is then true), "at_most_once" does not. The end of the stream waits for
        batches that others hold, unless they have closed their loader or had the end. If such a consumer dies with a
        batch, it goes to the next consumer that asks or attaches.
      cursor: begins after the batch of this cursor (Loader.cursor, state_dict()["cursor"]); bytes, or their hex text.
      reconnect: how many seconds to look for a daemon that has gone away. The loader goes on with the very next batch
        when the daemon, or its successor, is there. 0: does not look.
      slow: for mode "broadcast": what happens when this consumer holds up another one. "block": the other one waits
        for `lag` seconds; then this one is served from memory of its own. "detach": it gets DetachedError. "skip": it
        misses batches; stats()["skipped"] counts them. Others wait for groups of the other modes as long as it takes,
        unless `penstock slow` says otherwise. Other users wait 10 seconds in all for a user who may only attach, whatever
        this says; in mode "split", and in mode "rank" before all ranks have been there, it then gets DetachedError.
      lag: seconds, for slow="block".
      consumer: a name, unique in the group.
      take_over: takes the place of a consumer of the same name or rank, which gets DetachedError. Taking another
        user's place needs the right to control.
      cuda: the device (penstock.cuda.open) of a pipeline with its ring on a device (`ring { device: 0 }`). Tensors of
        fixed size are then DeviceArrays in the ring's memory there.
      stream: with `cuda`, the CUDA stream that reads them, as a number; 0 is the legacy default stream.
      batch_size: the rows of this consumer's batches; in mode "rank" the rows of the group's batches, of which each rank
        sees its part. Rows that lie in one batch of the pipeline are seen without a copy; rows of several batches are
        copied together (stats()["joined"]). Others read the pipeline's batches whole, or in sizes of their own. Step n
        begins with row n * batch_size of the stream. len() counts batches of that size; it is unknown in mode "split".

    Returns:
      A Loader, which is its own iterator and a context manager.

    Raises:
      UnavailableError: no daemon answers at the socket, or not in time.
      NotFoundError: the daemon runs no pipeline of that name.
      PermissionDeniedError: you may not use the socket. Or you may only attach, and the group of ranks or of a split
        belongs to another user.
      FailedPreconditionError: the daemon is of another release, the group of another kind, or the cursor of another
        stream.
      InvalidArgumentError: an argument has a bad value: a lag below zero, a control character in a name.
      AlreadyExistsError: a consumer of that name or rank is attached.
      OutOfRangeError: the batch after the cursor has gone and cannot be made again.
    """
    if not lag >= 0:
        raise InvalidArgumentError(f"lag is at least 0 seconds, not {lag}")
    for what, given in (("group", group), ("consumer", consumer)):
        if given is not None and any(letter < " " or "\x7f" <= letter < "\xa0" for letter in given):
            raise InvalidArgumentError(f"{what} is a name without control characters, not {given!r}")
    loader = Loader(
        name, None if socket is None else _os.fspath(socket), group, timeout, mode, rank, world_size, replica, replicas, delivery, cursor,
        reconnect, slow, lag, consumer, take_over, cuda, stream, batch_size
    )  # fmt: skip
    if cursor:
        _changed_code.of_cursor(loader.socket, name, loader.cursor, stacklevel=2)
    return loader
