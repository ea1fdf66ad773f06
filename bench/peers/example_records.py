"""TFRecords of tf.train.Examples for loaders in Python that ask for samples by their number. No checksum is verified."""

import glob

HEADER_BYTES, FOOTER_BYTES = 12, 4


def varint(data, at):
    """The number at `at`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message; all of an Example's are lengths and what follows, or varints."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def features(example):
    """The feature messages of an Example by name."""
    for _, entries in fields(example):
        for _, entry in fields(entries):
            pair = dict(fields(entry))
            yield bytes(pair[1]).decode(), pair[2]


def single_values(example):
    """By name, the one value of each feature: bytes, or those of a packed number."""
    result = {}
    for name, feature in features(example):
        (_, values), = fields(feature)
        (_, result[name]), = fields(values)
    return result


def places(pattern):
    """(path, offset, length) of each record of the files, found by the lengths alone."""
    found = []
    for path in sorted(glob.glob(pattern)):
        with open(path, "rb") as shard:
            while header := shard.read(HEADER_BYTES):
                length = int.from_bytes(header[:8], "little")
                found.append((path, shard.tell(), length))
                shard.seek(length + FOOTER_BYTES, 1)
    return found
