"""A batch of any structure as one row of bytes, and back.

A pickle (protocol 5) says how the batch is put together; arrays and tensors lie beside it, each at a multiple of 64 bytes, so that the
trainer sees them where they are, in the daemon's memory:

    | arrays, tensors … | pickle | places: (offset, bytes) each | offset and bytes of the pickle, number of places, flags |
                                    u64 u64                       u64 u64 u64 u64

Both sides are processes of one user, and run one another's code anyhow: the worker makes the pickle, the trainer reads it. The daemon
between them carries bytes.

Threads: an Arena belongs to one thread.
"""

import io
import pickle
import struct
import sys

import numpy as np

_ALIGNMENT = 64
_PLACE = struct.Struct("<QQ")
_END = struct.Struct("<QQQQ")


class Arena:
    """Memory of a worker in which batches are put together, one behind the other.

    What is collated into room() lies in the payload already; everything else is copied there by encode().

    Args:
      take: a function of a number of bytes: memory for one batch, as an array of uint8. Where it is asked again for more, what stands there stays, and views of
        what it gave before are of the same bytes. None: memory of the process' own.
    """

    def __init__(self, take=None):
        self._take = take
        self._capacity = 0
        self._memory = np.empty(0, np.uint8)
        self._address = 0
        self._used = 0
        self._wanted = 0

    def begin(self):
        """A new batch: the one before it has been taken."""
        if self._wanted > self._capacity:
            self._capacity = self._wanted + self._wanted // 4
        if self._take is not None or self._capacity > self._memory.nbytes:
            self._get()
        self._used = self._wanted = 0

    def again(self):
        """The batch from its beginning: what was put there goes."""
        self._used = self._wanted = 0

    def room(self, num_bytes):
        """Bytes of the payload, or None where this batch has no room any more; the next one will."""
        start = _aligned(self._used)
        self._wanted = _aligned(self._wanted) + num_bytes
        if start + num_bytes > self._memory.nbytes:
            return None
        self._used = start + num_bytes
        return self._memory[start : self._used]

    def place_of(self, memory):
        """Where in this batch's payload that memory lies, or None."""
        offset = _address_of(memory) - self._address
        return offset if 0 <= offset and offset + memory.nbytes <= self._used else None

    def append(self, memory, alignment=1):
        """Copies bytes behind what there is, and says where they are."""
        start = _aligned(self._used, alignment)
        end = start + memory.nbytes
        if end > self._memory.nbytes:
            self._capacity = end + end // 4
            before = self._memory
            self._get()
            if self._take is None:
                self._memory[: self._used] = before[: self._used]
        self._memory[start:end] = memory
        self._used = end
        return start

    def taken(self):
        return self._memory[: self._used]

    def _get(self):
        self._memory = np.empty(self._capacity, np.uint8) if self._take is None else self._take(self._capacity)
        self._address = _address_of(self._memory)


def _address_of(memory):
    return memory.__array_interface__["data"][0]


def _aligned(offset, alignment=_ALIGNMENT):
    return -(-offset // alignment) * alignment


def reduced(value):
    """What a pickle has in the place of a tensor or its storage, whose bytes lie beside it; NotImplemented of everything else."""
    torch = sys.modules.get("torch")
    if torch is None:
        return NotImplemented
    if type(value) is torch.Tensor:
        return _reduced_tensor(torch, value)
    if isinstance(value, torch.Tensor):
        _check_on_cpu(value)
        return NotImplemented
    if isinstance(value, torch.storage.TypedStorage):
        untyped = value._untyped_storage
        return _storage_of, (pickle.PickleBuffer(_bytes_of_storage(torch, untyped)), str(value.dtype)[len("torch.") :])
    if isinstance(value, torch.UntypedStorage):
        return _storage_of, (pickle.PickleBuffer(_bytes_of_storage(torch, value)), None)
    return NotImplemented


def _check_on_cpu(tensor):
    if tensor.device.type != "cpu":
        raise TypeError(
            f"a tensor on {tensor.device} cannot leave a worker process; give it on the CPU, and move the batch to the device in the training loop"
        )


def is_plain(torch, tensor):
    """Whether its numbers lie in memory as they are, in some order."""
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def _reduced_tensor(torch, tensor):
    _check_on_cpu(tensor)
    if not is_plain(torch, tensor):
        return NotImplemented
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("a tensor that requires_grad and is no leaf cannot leave a worker process: detach() it first")
    plain = tensor.detach()
    if not plain.is_contiguous():
        if plain.numel() * plain.element_size() == plain.untyped_storage().nbytes():
            return NotImplemented  # with its strides
        plain = plain.contiguous()
    memory = plain.reshape(-1).view(torch.uint8).numpy() if plain.numel() else np.empty(0, np.uint8)
    return _tensor_of, (pickle.PickleBuffer(memory), str(tensor.dtype)[len("torch.") :], tuple(tensor.shape), tensor.requires_grad)


def _bytes_of_storage(torch, storage):
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    return torch.tensor([], dtype=torch.uint8).set_(storage).numpy()


def _tensor_of(memory, dtype, shape, requires_grad):
    import torch

    dtype = getattr(torch, dtype)
    tensor = torch.frombuffer(memory, dtype=dtype).view(shape) if len(memory) else torch.empty(shape, dtype=dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def _storage_of(memory, dtype):
    import torch

    untyped = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage() if len(memory) else torch.UntypedStorage(0)
    return untyped if dtype is None else torch.storage.TypedStorage(wrap_storage=untyped, dtype=getattr(torch, dtype), _internal=True)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        return reduced(value)


def _pickled(value):
    """The pickle, and the memory that lies beside it."""
    beside = []
    file = io.BytesIO()
    try:
        _Pickler(file, 5, buffer_callback=beside.append).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        # Of a class or function that no module has: by value.
        import cloudpickle

        class ByValue(cloudpickle.Pickler):
            def reducer_override(self, value):
                found = reduced(value)
                return super().reducer_override(value) if found is NotImplemented else found

        beside.clear()
        file = io.BytesIO()
        ByValue(file, 5, buffer_callback=beside.append).dump(value)
    return file.getbuffer(), [np.frombuffer(buffer.raw(), np.uint8) for buffer in beside]


def encode(value, arena, flags=0):
    """A row of bytes: a view of the arena, which holds until its next batch.

    Args:
      value: whatever pickle takes; its tensors are on the CPU.
      flags: an integer of 64 bits that travels along.
    """
    text, beside = _pickled(value)
    places = []
    for memory in beside:
        place = arena.place_of(memory) if memory.nbytes else 0
        places.append((arena.append(memory, _ALIGNMENT) if place is None else place, memory.nbytes))
    start = arena.append(np.frombuffer(text, np.uint8))
    table = b"".join(_PLACE.pack(*place) for place in places)
    arena.append(np.frombuffer(table + _END.pack(start, len(text), len(places), flags), np.uint8))
    return arena.taken()


def outline_of(row):
    """How a row's batch is put together, as bytes that hold for all rows in which its tensors lie at the same places; and its flags."""
    row = memoryview(row)
    start, _, _, flags = _END.unpack_from(row, len(row) - _END.size)
    return row[start:].tobytes(), flags


def decode(row, memory=None):
    """The batch of a row of bytes, and its flags. Arrays and tensors are views of `memory`, writable where it is.

    Args:
      memory: a map of the same bytes; `row` itself by default. Only arrays and tensors are looked at there: each page of a new map costs as much as
        all the rest.
    """
    row = memoryview(row)
    memory = row if memory is None else memoryview(memory)
    end = len(row) - _END.size
    start, length, count, flags = _END.unpack_from(row, end)
    places = _PLACE.iter_unpack(row[end - count * _PLACE.size : end])
    return pickle.loads(row[start : start + length], buffers=[memory[place : place + size] for place, size in places]), flags
