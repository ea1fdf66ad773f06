"""Dataset.pack: against packers of NumPy and lists, over ranks and across resumes."""

import bisect

import numpy as np
import pytest

import penstock

LENGTHS = np.random.default_rng(5).integers(0, 40, 300)
END = 7


def documents(lengths=LENGTHS):
    """Tokens that tell the document and their place in it."""
    numbered = penstock.Dataset.from_tensor_slices({"n": np.asarray(lengths), "i": np.arange(len(lengths))})
    return numbered.map(lambda x: {"tokens": penstock.functions.arange(x["n"]) + 1000 * x["i"], "answer": x["n"] // 2})


def concatenated(lengths, size, window, end=None):
    """Rows of (tokens, segment_ids, positions) as concatenating and splitting gives them."""
    rows = []
    for begin in range(0, len(lengths), window):
        tokens, of_document, places = [], [], []
        for i in range(begin, min(begin + window, len(lengths))):
            one = [1000 * i + k for k in range(lengths[i])] + ([end] if end is not None else [])
            tokens += one
            of_document += [i] * len(one)
        for at in range(0, len(tokens), size):
            row, owners = tokens[at : at + size], of_document[at : at + size]
            segments = [sorted(set(owners)).index(owner) + 1 for owner in owners]
            places = [k - owners.index(owner) for k, owner in enumerate(owners)]
            padding = [0] * (size - len(row))
            rows.append((row + padding, segments + padding, places + padding))
    return rows


@pytest.mark.parametrize("size, window, end", [(16, 10_000, None), (16, 100, END), (1, 50, None), (4096, 7, END)])
def test_concatenating_is_what_numpy_makes_of_it(size, window, end):
    packed = documents().pack(size, "tokens", window=window, end_id=end, segment_ids=True, positions=True)
    found = [(row["tokens"].tolist(), row["segment_ids"].tolist(), row["positions"].tolist()) for row in packed]
    assert found == concatenated(LENGTHS.tolist(), size, window, end)


def best_fit(lengths, size):
    """Rows of document numbers: of equally full rows the one that has waited longest."""
    rows, rooms = [], []  # rooms: (room, since, row)
    for since, i in enumerate(sorted(range(len(lengths)), key=lambda i: -lengths[i])):
        if not lengths[i]:
            continue
        at = bisect.bisect_left(rooms, (lengths[i], -1, -1))
        room, _, row = rooms.pop(at) if at < len(rooms) else (size, since, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(i)
        if room > lengths[i]:
            bisect.insort(rooms, (room - lengths[i], since, row))
    return rows


@pytest.mark.parametrize("size", [40, 64, 1000])
def test_best_fit_is_what_lists_make_of_it(size):
    packed = documents().pack(size, "tokens", "best_fit", segment_ids=True)
    found = []
    for row in packed:
        tokens, segments = row["tokens"], row["segment_ids"]
        found.append([int(tokens[segments == k][0]) // 1000 for k in range(1, segments.max() + 1)])
    assert found == best_fit(LENGTHS.tolist(), size)


def test_first_fit_loses_and_doubles_nothing():
    packed = documents().pack(25, "tokens", "first_fit_decreasing", segment_ids=True, window=80)
    tokens = np.concatenate([row["tokens"][row["segment_ids"] > 0] for row in packed])
    assert sorted(tokens.tolist()) == [1000 * i + k for i, n in enumerate(LENGTHS) for k in range(n)]


def test_masks_and_ends():
    packed = documents([4, 3, 5]).pack(
        6, "tokens", end_id=END, answer_begin="answer", cu_seqlens=True, max_documents=3, split_documents=False
    )
    assert packed.element_spec["cu_seqlens"].shape == (4,) and packed.element_spec["loss_mask"].dtype == np.bool_
    rows = list(packed.batch(3))
    assert rows[0]["tokens"].tolist() == [[0, 1, 2, 3, END, 0], [1000, 1001, 1002, END, 0, 0], [2000, 2001, 2002, 2003, 2004, END]]
    assert rows[0]["loss_mask"].astype(int).tolist() == [[0, 0, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1]]
    assert rows[0]["cu_seqlens"].tolist() == [[0, 5, 5, 5], [0, 4, 4, 4], [0, 6, 6, 6]]
    ragged = [row["cu_seqlens"].tolist() for row in documents([4, 3, 5]).pack(6, "tokens", cu_seqlens=True)]
    assert ragged == [[0, 4, 6], [0, 1, 6]]


def test_the_only_feature_is_the_tokens():
    lone = penstock.Dataset.range(1, 4).map(penstock.functions.arange)
    (row,) = lone.pack(6)
    assert [values.tolist() for values in row.values()] == [[0, 0, 1, 0, 1, 2]]


@pytest.mark.parametrize("method", ["concat", "best_fit"])
def test_ranks_have_the_same_bytes_at_any_degree(method):
    packed = documents().pack(32, "tokens", method, window=60, segment_ids=True).take(40)
    whole = [row["tokens"].tolist() for row in packed]
    assert len(whole) == 40
    for degree in (1, 2, 3, 5, 8):
        parts = [[row["tokens"].tolist() for row in packed.shard(degree, rank)] for rank in range(degree)]
        merged = [parts[k % degree][k // degree] for k in range(40)]
        assert merged == whole, degree


def test_mistakes_of_pack_are_told_before_anything_runs():
    rows = documents()
    for arguments, message in [
        (dict(sequence_length=0), "sequence_length is at least 1: 0"),
        (dict(sequence_length=8, window=0), "window is at least 1: 0"),
        (dict(sequence_length=8, method="best"), "method is concat, best_fit or first_fit_decreasing: 'best'"),
        (dict(sequence_length=8, long_documents="cut"), "long_documents is split, truncate or error: 'cut'"),
        (dict(sequence_length=8, method="best_fit", drop_remainder=True), "for the method concat, not best_fit"),
        (dict(sequence_length=8, mask="a", answer_begin="b"), "mask and answer_begin exclude each other"),
        (dict(sequence_length=8, max_documents=0), "max_documents is at least 1: 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            rows.pack(**arguments)
    with pytest.raises(penstock.InvalidArgumentError, match='tokens: expected one of tokens, answer, found "token", did you mean'):
        list(rows.pack(8, "token"))
    with pytest.raises(penstock.DataLossError, match="expected a document of at most 8 tokens, found 26"):
        list(rows.pack(8, "tokens", long_documents="error"))
