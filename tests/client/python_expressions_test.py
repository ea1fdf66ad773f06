"""Element-wise expressions that dice make: choices in choices, types beside types, scalars beside rows, each beside what NumPy makes of it.

A traced program is more than its functions: which values lie in registers, in memory or aside depends on what stands in what.
"""

import numpy as np
import pytest

import penstock

ROWS = 3
FEATURES = "a:float32 b:float64 c:int32 d:int64 e:bool g:uint8 h:float32 k:int64 m:int8 p:float64".split()
NUMBERS = "a b c d g h k m p r s a b h p".split()
CONSTANTS = "np.float32(0.5) np.float64(1.5) np.int32(2) np.int64(-3) 2 -1 1 0 np.float32(-1) np.uint8(3)".split()


def elements(dice, count):
    """Small whole numbers and quarters, of which sums and products are exact."""
    found = {}
    for feature in FEATURES:
        name, dtype = feature.split(":")
        whole = dice.integers(0 if dtype in ("bool", "uint8") else -12, 2 if dtype == "bool" else 13, (ROWS, count))
        found[name] = (whole / (4 if dtype.startswith("float") else 1)).astype(dtype)
    found["r"] = (dice.integers(-12, 13, ROWS) / 4).astype(np.float32)
    found["s"] = dice.integers(-6, 7, ROWS)
    return found


class Expressions:
    def __init__(self, dice):
        self._dice = dice

    def _of(self, *choices):
        return choices[self._dice.integers(len(choices))]

    def number(self, depth):
        if depth <= 0:
            return self._of(*NUMBERS) if self._dice.random() < 0.75 else f"({self._of(*CONSTANTS)})"
        kind = self._dice.random()
        a, b = self.number(depth - 1), self.number(depth - 1)
        if kind < 0.38:
            return f"({a} {self._of('+', '-', '*', '+', '-')} {b})"
        if kind < 0.64:
            return f"np.where({self.flags(depth - 1)}, {a}, {b})"
        if kind < 0.76:
            return f"np.{self._of('minimum', 'maximum')}({a}, {b})"
        if kind < 0.86:
            return f"np.{self._of('abs', 'negative', 'floor', 'ceil', 'trunc')}({a})"
        if kind < 0.92:
            return f"({a} * np.{self._of('float32', 'float64')}(1))"
        return f"({self.flags(depth - 1)}) * {a}"

    def flags(self, depth):
        if depth <= 0:
            return "e"
        kind = self._dice.random()
        if kind < 0.6:
            return f"({self.number(depth - 1)} {self._of('<', '>', '<=', '>=', '==', '!=')} {self.number(depth - 1)})"
        if kind < 0.8:
            return f"({self.flags(depth - 1)} {self._of('&', '|', '^')} {self.flags(depth - 1)})"
        return f"(~{self.flags(depth - 1)})" if kind < 0.9 else f"np.isnan({self.number(depth - 1)})"


def expressions(dice, features, count):
    """Texts and what NumPy makes of each row; without those that it computes in float16, or refuses."""
    draw = Expressions(dice)
    found = {}
    while len(found) < count:
        text = draw.number(dice.integers(2, 5))
        try:
            results = [np.asarray(eval(text, {"np": np, **{name: value[i] for name, value in features.items()}})) for i in range(ROWS)]
        except (TypeError, OverflowError):
            continue
        if results[0].dtype not in (bool, np.float16):
            found[text] = np.stack(results)
    return found


@pytest.mark.parametrize("count", [1, 5, 67, 400])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_drawn_expressions(seed, count):
    dice = np.random.default_rng([seed, count])
    features = elements(dice, count)
    dataset = penstock.Dataset.from_tensor_slices(features)
    # A number that its type does not hold is refused, where NumPy wraps it.
    cases = {}
    for text, expected in expressions(dice, features, 80).items():
        try:
            dataset.map(lambda x, text=text: {"y": eval(text, {"np": np, **x})}).element_spec
        except penstock.InvalidArgumentError as error:
            assert "is out of the range of" in str(error), text
        else:
            cases[text] = expected
    assert len(cases) > 70
    (found,) = dataset.map(lambda x: {f"y{i}": eval(text, {"np": np, **x}) for i, text in enumerate(cases)}).batch(ROWS)
    for result, (text, expected) in zip(found.values(), cases.items(), strict=True):
        assert result.dtype == expected.dtype, text
        np.testing.assert_array_equal(result, expected, err_msg=text)
