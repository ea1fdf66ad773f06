"""How many elements a dataset has, where that follows from its ops alone."""

INFINITE = -1
UNKNOWN = -2


def of_range(start, stop, step):
    return len(range(start, stop, step))


def of_repeat(before, count):
    if count == 0 or before == 0:
        return 0
    if count < 0:
        return INFINITE
    return before if before < 0 else before * count


def of_take(before, count):
    if before == UNKNOWN and count != 0:
        return UNKNOWN
    if count < 0:
        return before
    return count if before == INFINITE else min(before, count)


def of_skip(before, count):
    if count < 0:
        return 0
    return before if before < 0 else max(0, before - count)


def of_shard(before, num_shards, index):
    return before if before < 0 else len(range(index, before, num_shards))


def of_batch(before, size, drop_remainder):
    if before < 0:
        return before
    return before // size if drop_remainder else -(-before // size)


def of_rows(before, batches, size, drop_remainder, remainder):
    """The rows of those batches that are elements."""
    if before < 0:
        return before
    return batches * size if drop_remainder or remainder in ("drop", "wrap") else before


def of_batches(before, sizes, drop_remainder):
    """Of sizes that are taken by turns."""
    if before < 0:
        return before
    batches, left = divmod(before, sum(sizes))
    batches *= len(sizes)
    for size in sizes:
        if left < (size if drop_remainder else 1):
            break
        left -= size
        batches += 1
    return batches


def of_zip(counts):
    if 0 in counts:
        return 0
    if UNKNOWN in counts:
        return UNKNOWN
    finite = [count for count in counts if count >= 0]
    return min(finite) if finite else INFINITE


def of_concatenate(first, second):
    if INFINITE in (first, second):
        return INFINITE
    return UNKNOWN if UNKNOWN in (first, second) else first + second


def of_values(before):
    """Where values tell how many elements come of one or of a few: what has no end stays without one."""
    return INFINITE if before == INFINITE else UNKNOWN
