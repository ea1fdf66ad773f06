"""The memory of the desk that a worker and the daemon have in common (server/python/desk.h, messages.h)."""

import mmap

_TRAY_STRIDE = 1 << 40


class Tray:
    """The inputs and outputs of one tray, mapped as far as they are used."""

    def __init__(self, number, inputs, outputs):
        self._offset = (number + 1) * _TRAY_STRIDE
        self._files = inputs, outputs
        self.inputs = self.outputs = None

    def reach_inputs(self, size):
        if self.inputs is None or len(self.inputs) < size:
            # Private: a function may write into what it is given.
            self.inputs = self._map(self._files[0], size, mmap.MAP_PRIVATE)

    def reach_outputs(self, size):
        if self.outputs is None or len(self.outputs) < size:
            self.outputs = self._map(self._files[1], size, mmap.MAP_SHARED)

    def _map(self, file, size, flags):
        size = max(1 << 20, 1 << (size - 1).bit_length())
        return mmap.mmap(file, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=self._offset)  # novermin

    def drop_inputs(self, size):
        """What the function has written over them goes, and the next sheet is seen."""
        self.inputs.madvise(mmap.MADV_DONTNEED, 0, min(len(self.inputs), -(-size // mmap.PAGESIZE) * mmap.PAGESIZE))


class Progress:
    """Where this process is, which the daemon reads at any time (messages.h).

    Attributes:
      words: the sheet; the row's number in it and 1, or 0 for what is no row's time; how often a sheet has been begun.
    """

    def __init__(self, outputs):
        self.words = memoryview(mmap.mmap(outputs, mmap.PAGESIZE)).cast("Q")

    def begin(self, sheet):
        """A sheet, or the same one once more."""
        words = self.words
        words[1] = 0
        words[0] = sheet
        words[2] += 1

    def end(self):
        self.words[1] = 0

    def aside(self, work):
        """Does what takes time in the middle of a row and is none of its; returns what it returns."""
        words = self.words
        row, words[1] = words[1], 0
        try:
            return work()
        finally:
            words[2] += 1
            words[1] = row
