"""Photographs of TFRecord shards one at a time, for loaders that ask for samples by their number: NumPy and Pillow do the work."""

import glob
import io
import struct

import numpy as np
from PIL import Image

HEADER_BYTES, FOOTER_BYTES = 12, 4
SIDE = 192


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data):
    """(number, value) of each field of a message; all of an Example's are lengths and what follows, or varints."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def _features(example):
    """The feature messages of an Example by name."""
    for _, features in _fields(example):
        for _, entry in _fields(features):
            pair = dict(_fields(entry))
            yield bytes(pair[1]), pair[2]


class Photos:
    """A sequence of (image, label)."""

    def __init__(self, pattern):
        self.records = []
        for path in sorted(glob.glob(pattern)):
            with open(path, "rb") as file:
                data = file.read()
            at = 0
            while at < len(data):
                (length,) = struct.unpack_from("<Q", data, at)
                self.records.append((path, at + HEADER_BYTES, length))
                at += HEADER_BYTES + length + FOOTER_BYTES

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        path, offset, length = self.records[index]
        with open(path, "rb") as file:
            file.seek(offset)
            features = dict(_features(memoryview(file.read(length))))
        ((_, values),) = _fields(features[b"image/encoded"])
        ((_, encoded),) = _fields(values)
        ((_, values),) = _fields(features[b"image/class/label"])
        ((_, label),) = _fields(values)
        if not isinstance(label, int):
            label, _ = _varint(label, 0)
        photo = Image.open(io.BytesIO(encoded)).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return np.asarray(photo, np.float32) * np.float32(2 / 255) - 1, np.int64(label)
