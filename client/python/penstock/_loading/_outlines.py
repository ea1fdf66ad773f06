"""Batches that are put together as the one before them was.

Most batches of a loop differ in nothing but the bytes of their tensors. What says how such a batch is put together, behind its tensors, is the same text then: it is read once, and
from then on tensors are made at the places that it names.
"""

import torch

from penstock._loading import _payload

# So many outlines are kept: those of full batches and of a last one, of two loops by turns.
_KEPT = 8
_CONSTANTS = (int, float, bool, str, bytes, type(None))


class _NotPlain(Exception):
    """There is something in the batch that is to be made anew each time."""


class Outlines:
    """Decodes rows of bytes. Of one loop."""

    def __init__(self):
        self._makers = {}

    def decode(self, row, memory):
        """As _payload.decode()."""
        outline, flags = _payload.outline_of(row)
        make = self._makers.get(outline)
        if make is not None:
            return make(memory), flags
        value, flags = _payload.decode(row, memory)
        if outline not in self._makers:
            if len(self._makers) == _KEPT:
                self._makers.pop(next(iter(self._makers)))
            try:
                self._makers[outline] = _maker(value, memory.__array_interface__["data"][0], memory.nbytes)
            except _NotPlain:
                self._makers[outline] = None
        return value, flags


def _maker(value, start, num_bytes):
    """A function of memory that makes a value like this one, whose tensors lie in memory that begins at `start`."""
    kind = type(value)
    if kind is torch.Tensor:
        # Others have no such address, or not the numbers that lie there.
        if not _payload.is_plain(torch, value):
            raise _NotPlain
        offset = value.data_ptr() - start
        if not 0 <= offset < num_bytes or not value.numel() or value.requires_grad or not value.is_contiguous():
            raise _NotPlain
        dtype, count, shape = value.dtype, value.numel(), value.shape
        return lambda memory: torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).view(shape)
    if kind in (list, tuple):
        parts = [_maker(inner, start, num_bytes) for inner in value]
        return lambda memory: kind([make(memory) for make in parts])
    if kind is dict and all(type(key) is str for key in value):
        named = [(key, _maker(inner, start, num_bytes)) for key, inner in value.items()]
        return lambda memory: {key: make(memory) for key, make in named}
    if kind in _CONSTANTS:
        return lambda memory: value
    raise _NotPlain
