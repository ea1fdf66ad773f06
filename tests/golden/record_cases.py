"""Features of Examples, as TensorFlow and penstock.io.serialize_example are given them."""

import numpy as np

CASES = [
    {},
    {"x": 1},
    {"x": 0, "y": 0.0, "z": b""},
    {"label": -1, "score": 0.1, "name": b"cat", "flag": True},
    {"ids": [3, -70, 500, 2**31, 2**62, -(2**63), 2**63 - 1], "weights": [1.5, -2.25, 1e-30, float("inf"), float("nan")]},
    {"words": [b"a", b"", b"\x00\xff" * 100], "é": ["grün".encode(), b"2"]},
    {"image": np.arange(300, dtype=np.uint8).reshape(10, 10, 3), "mask": np.arange(4) % 2 == 0},
    {"many": np.arange(-1000, 100_000, 977), "wide": np.array([7, 2**63 - 1], np.uint64), "half": np.array([0.5, 65504], np.float16)},
    {"none": np.zeros(0, np.float32), "no numbers": np.zeros(0, np.int64)},
    {"b": 1, "a": 2, "cd": 3, "B": 4, "long " * 40: 5},
]
# Records of every length around that of a header, and long ones.
RECORDS = [b"", b"x", b"0123456", b"01234567", b"012345678", bytes(range(256)) * 5, b"z" * 70_000]
