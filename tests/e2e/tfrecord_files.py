"""TFRecord files of tf.train.Example, written from the formats' definitions, sound or damaged."""

import struct

_POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(payload, length=None):
    """One record; `length` stands in its header, with a checksum that holds, instead of the true one."""
    header = struct.pack("<Q", len(payload) if length is None else length)
    return (header + struct.pack("<I", masked_crc32c(header)) + payload
            + struct.pack("<I", masked_crc32c(payload)))


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _feature(value):
    """tf.train.Feature: bytes give a bytes_list, floats a float_list, integers an int64_list."""
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, v) for v in values))
    if isinstance(values[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
    return _field(3, _field(1, b"".join(_varint(v) for v in values)))


def example(**features):
    """A serialized tf.train.Example; a name's `__` stands for `/`."""
    entries = (_field(1, _field(1, name.replace("__", "/").encode()) + _field(2, _feature(value)))
               for name, value in features.items())
    return _field(1, b"".join(entries))


def write(path, payloads):
    path.write_bytes(b"".join(framed(payload) for payload in payloads))
    return path
