"""Writes expr.json: expressions, their inputs, and what NumPy 2 makes of them.

    python tests/golden/make_expr_goldens.py            (any Python with NumPy 2)

Each case is one map of one output over ROWS rows. NumPy evaluates the same text row by row; where the language departs from
NumPy (see EXCEPTIONS in the code), the text for NumPy says so.
"""

import json
import pathlib

import numpy as np

ROWS = 5
rng = np.random.default_rng(20)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e38, -7.25, 100.0]


def integers(dtype, shape):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, size=(ROWS, *shape), dtype=dtype, endpoint=True)
    flat = values.reshape(-1)
    edges = [info.min, info.max, 0, 1, info.max - 1]
    flat[: min(len(edges), flat.size)] = edges[: flat.size]
    return values


def floats(dtype, shape):
    values = (rng.standard_normal((ROWS, *shape)) * 10.0 ** rng.integers(-3, 3, (ROWS, *shape))).astype(dtype)
    flat = values.reshape(-1)
    n = min(len(SPECIAL), flat.size // 2)
    flat[:n] = np.array(SPECIAL[:n], dtype)
    return values


INPUTS = {
    "i8": integers(np.int8, (7,)), "u8": integers(np.uint8, (7,)), "i16": integers(np.int16, (7,)),
    "u16": integers(np.uint16, (7,)), "i32": integers(np.int32, (7,)), "u32": integers(np.uint32, (7,)),
    "i64": integers(np.int64, (7,)), "u64": integers(np.uint64, (7,)),
    "j8": integers(np.int8, (7,)), "j32": integers(np.int32, (7,)), "j64": integers(np.int64, (7,)),
    "f": floats(np.float32, (7,)), "d": floats(np.float64, (7,)), "g": floats(np.float32, (7,)),
    "e": floats(np.float64, (7,)), "b": rng.integers(0, 2, (ROWS, 7)).astype(np.bool_),
    "image": integers(np.uint8, (6, 5, 3)), "plane": floats(np.float32, (4, 6)), "row": floats(np.float32, (6,)),
    "column": floats(np.float32, (4, 1)), "scalar": floats(np.float32, ()), "si": integers(np.int64, ()),
    "bytes": integers(np.uint8, (24,)), "long": floats(np.float32, (517,)), "small": integers(np.int64, (7,)) % 11,
}
# Weak constants are Python numbers, strong ones arrays.
CONSTANTS = {
    "K": 400.0, "N": 3, "MEAN": np.array([0.485, 0.456, 0.406]), "MEAN32": np.array([0.485, 0.456, 0.406], np.float32),
    "SIGN": np.array([1, -1, 1, -1, 1, -1, 1, -1], np.int8), "ORDER": np.array([2, 0, 1]), "STRONG": np.float32(2.5),
}


def saturating(dtype):
    def cast(x):
        x = np.asarray(x)
        if np.issubdtype(dtype, np.floating) or dtype == np.bool_:
            with np.errstate(all="ignore"):
                return x.astype(dtype)
        info = np.iinfo(dtype)

        def one(v):
            if np.issubdtype(x.dtype, np.floating):
                if np.isnan(v):
                    return 0
                if np.isinf(v):
                    return info.max if v > 0 else info.min
            return max(info.min, min(info.max, int(v)))

        flat = [one(v) for v in x.reshape(-1)]
        return np.array(flat, dtype=dtype).reshape(x.shape)

    return cast


FUNCTIONS = {name: getattr(np, name) for name in (
    "where minimum maximum abs sign sqrt exp log log1p tanh floor ceil trunc rint add subtract multiply divide "
    "floor_divide remainder power negative invert equal less bitwise_and reshape transpose clip sin cos tan arcsin arccos arctan sinh "
    "cosh arcsinh arccosh arctanh exp2 expm1 log2 log10 cbrt arctan2 hypot logaddexp sum prod mean var std min max any all matmul pad "
    "square reciprocal isnan isinf isfinite signbit logical_and logical_or logical_xor logical_not copysign fmin fmax fmod").split()}
# EXCEPTION: casts to integers saturate, drop the fraction and take NaN to 0 (NumPy leaves this undefined or wraps).
for _name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split():
    FUNCTIONS[_name] = saturating(np.dtype(_name).type)
FUNCTIONS["bool"] = saturating(np.bool_)
FUNCTIONS["unpack_bits"] = lambda x: np.unpackbits(x, axis=-1)
FUNCTIONS["pack_bits"] = lambda x: np.packbits(x, axis=-1)
FUNCTIONS["sort"] = np.sort
FUNCTIONS["cumprod"], FUNCTIONS["cumsum"] = np.cumprod, np.cumsum
FUNCTIONS["maximum_accumulate"], FUNCTIONS["minimum_accumulate"] = np.maximum.accumulate, np.minimum.accumulate
FUNCTIONS["bincount"] = lambda x, minlength, maxlength, weights=None: np.bincount(
    x.ravel(), None if weights is None else weights.ravel(), minlength)[:maxlength]
FUNCTIONS["concat"] = lambda *tensors, axis=-1: np.concatenate(tensors, axis)
FUNCTIONS["stack"] = lambda *tensors, axis=-1: np.stack(tensors, axis)

EXACT, LOOSE = 0, 4
cases = []


def case(text, numpy=None, ulp=EXACT):
    cases.append((text, numpy or text, ulp))


for op in ["+", "-", "*"]:
    for a, b in [("i8", "j8"), ("u8", "u8"), ("i16", "i16"), ("u16", "u16"), ("i32", "j32"), ("u32", "u32"),
                 ("i64", "j64"), ("u64", "u64"), ("f", "g"), ("d", "e"), ("i8", "u8"), ("i16", "u8"), ("u16", "i8"),
                 ("i32", "u32"), ("u8", "f"), ("i32", "f"), ("u16", "f"), ("i64", "d"), ("f", "d"), ("i64", "u64"),
                 ("b", "u8"), ("f", "b")]:
        case(f"{a} {op} {b}")
    for a in ["i8", "u8", "i32", "i64", "f", "d"]:
        case(f"{a} {op} 3")
        case(f"3 {op} {a}")
    for a in ["i32", "i64", "f", "d"]:
        case(f"{a} {op} 2.5")
    for a in ["i8", "u8", "i16", "u16"]:
        # EXCEPTION: an 8- or 16-bit integer with a weak float is float32.
        case(f"{a} {op} 2.5", f"{a}.astype(np.float32) {op} np.float32(2.5)")
    case(f"u8 {op} STRONG")
    case(f"f {op} K")
for a, b in [("i8", "j8"), ("u8", "u8"), ("i32", "j32"), ("f", "g"), ("d", "e"), ("i64", "f"), ("u8", "f")]:
    case(f"{a} / {b}")
    case(f"{a} // {b}")
    case(f"{a} % {b}")
for a in ["i8", "u16", "i32", "i64", "u64"]:
    case(f"{a} / 3")
    case(f"{a} // 3")
    case(f"{a} % 3")
    case(f"100 // {a}")
    case(f"100 % {a}")
for a in ["i8", "i16", "i32", "i64", "f", "d"]:
    case(f"{a} // -7")
    case(f"{a} % -7")
# EXCEPTION: the same.
case("u8 / 127.5 - 1", "u8.astype(np.float32) / np.float32(127.5) - np.float32(1)")
case("u8 / 255")
case("f / 3"), case("3 / f"), case("1 / d"), case("f / K")
for n in ["2", "3", "0", "5"]:
    case(f"i32 ** {n}"), case(f"u8 ** {n}"), case(f"i64 ** {n}")
    case(f"f ** {n}", ulp=LOOSE), case(f"d ** {n}", ulp=LOOSE)
case("abs(d) ** 0.5"), case("abs(f) ** 0.5"), case("abs(d) ** 1.7", ulp=LOOSE), case("abs(f) ** 1.7", ulp=LOOSE)
case("abs(d) ** e", ulp=LOOSE), case("d ** -1"), case("2.0 ** small", ulp=LOOSE), case("small ** small")
for op in ["==", "!=", "<", "<=", ">", ">="]:
    for a, b in [("i8", "j8"), ("u8", "i8"), ("u32", "u32 // 2"), ("i64", "j64"), ("u64", "u64 // 3"), ("f", "g"), ("d", "e"),
                 ("b", "b"), ("i32", "f")]:
        case(f"{a} {op} {b}")
    case(f"f {op} 0.5"), case(f"u8 {op} 300"), case(f"i8 {op} -200"), case(f"0 {op} i32")
for op in ["==", "!=", "<", "<=", ">", ">="]:
    # Some of both are nearer to each other than float64 tells apart.
    case(f"i64 {op} u64"), case(f"u64 {op} i64"), case(f"i8 {op} u64"), case(f"u64 // 2 {op} int64(u64 // 2)"), case(f"u64 // 2 {op} i64[:, None]")
    case(f"int64(u64 // 2) - 1 {op} u64 // 2"), case(f"u64 // 2 + 1 {op} int64(u64 // 2)"), case(f"uint64(9223372036854775808) {op} i64")
# EXCEPTION: NumPy refuses the number.
case("logical_and(i8, 18446744073709551615)", "i8 != 0"), case("logical_xor(i64, u64)")
for op in ["&", "|", "^"]:
    case(f"u8 {op} 15"), case(f"i32 {op} j32"), case(f"b {op} (f > 0)"), case(f"i64 {op} j64"), case(f"i8 {op} u8")
case("~i8"), case("~u8"), case("~i32"), case("~u64"), case("~b"), case("~(f > 0)"), case("~u16")
case("-i8"), case("-u8"), case("-f"), case("-i64"), case("-(-f)"), case("-f ** 2"), case("2 - -3 * f")
for a in ["i8", "u8", "i16", "i32", "i64", "u64", "f", "d"]:
    case(f"abs({a})"), case(f"sign({a})"), case(f"floor({a})")
case("abs(b)")
for a in ["f", "d"]:
    for name in "ceil trunc rint sqrt".split():
        case(f"{name}({a})")
    for name in "exp log log1p tanh".split():
        case(f"{name}({a})", ulp=LOOSE)
case("rint(i32)"), case("sqrt(u16)"), case("sqrt(i64)")
# EXCEPTION: functions of floating types give float32, not float16, for 8-bit integers and bools.
case("sqrt(u8)", "np.sqrt(u8.astype(np.float32))"), case("sqrt(b)", "np.sqrt(b.astype(np.float32))")
for a, b in [("f", "g"), ("d", "e"), ("i8", "j8"), ("u8", "i8"), ("u64", "u64 // 2"), ("i64", "j64"), ("b", "f > 0"), ("u32", "u32 // 2")]:
    case(f"minimum({a}, {b})"), case(f"maximum({a}, {b})")
case("maximum(0, f)"), case("minimum(f, 1)"), case("maximum(i64, 7)"), case("minimum(7, u8)")
case("where(f > 0, f, g)"), case("where(b, 1.5, d)"), case("where(b, u8, i8)"), case("where(i32, i64, 0)"),
case("where(u8 > 100, u8, 100)"), case("where(b, f, i32)"), case("where(f > 0, 1, 0)"), case("where(d > e, d - e, e - d)")
case("clip(f, -1, 1)"), case("clip(d, e, 5.0)"), case("clip(u8, 10, 200)"), case("clip(i64, -5, j64)"), case("clip(u64, 7, 1000)")
case("clip(f, g, g + 1)"), case("clip(f * 255 + 0.5, 0, 255)"), case("uint8(clip(rint(f), 0, 255))")
for target in "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split():
    for a in ["b", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f", "d"]:
        case(f"{target}({a})")
case("float32(0.1) + f"), case("float64(f) * 0.1"), case("uint8(f * 100 + 128)"), case("int8(300.0) + i8")
case("image[..., 0]"), case("image[1:4, ::2]"), case("image[::-1, 1, :]"), case("image[:, :, [2, 0, 1]]"), case("image[..., ORDER]")
case("image[-1]"), case("image[2:-1, -3:, 1:]"), case("plane[:, None, 2:4]"), case("plane[1]"), case("plane[:, ::-2]")
case("plane[10:2:-1]"), case("plane[..., [0, 0, 5, -1]] * 2"), case("row[1:][::2][1:]"), case("row[N]"), case("row[N:N + 2]")
case("plane + row"), case("plane * column"), case("column + row"), case("plane - scalar"), case("scalar * row"), case("row[None] - plane")
case("image * MEAN"), case("float32(image) * MEAN32"), case("(image - 128.0) / MEAN32", "(image.astype(np.float32) - np.float32(128)) / MEAN32")
case("image[..., 0] * SIGN[0]"), case("reshape(bytes, [3, 8]) * SIGN"), case("reshape(int8(bytes), [-1, 8]) * SIGN")
case("reshape(image, [5, -1])"), case("transpose(image)"), case("transpose(image, [2, 0, 1])"), case("transpose(image[::2], axes=[1, 0, 2]) + 1")
case("reshape(transpose(plane), [3, 8])"), case("plane + [1, 2, 3, 4, 5, 6]"), case("plane * [0.5, 1, 2, 4, 8, 16]")
case("unpack_bits(bytes)"), case("unpack_bits(bytes)[3:17]"), case("reshape(unpack_bits(bytes), [8, 8, 3])[..., [2, 0, 1]]")
case("float32(reshape(int8(unpack_bits(bytes)), [24, 8]) * SIGN)"), case("unpack_bits(bytes)[7]"), case("float64(unpack_bits(bytes)[190:]) * 2 - 1")
case("transpose(float32(reshape(unpack_bits(bytes), [8, 8, 3])), [2, 0, 1])"), case("unpack_bits(bytes)[::-1]")
case("int16(unpack_bits(bytes)) * -5 + 3"), case("unpack_bits(bytes)[:8] * unpack_bits(bytes)[8:16]"), case("unpack_bits(bytes)[:8] * unpack_bits(bytes)[:8]")
case("where(unpack_bits(bytes) == 1, 2.5, -0.0)"), case("uint64(unpack_bits(bytes)[::3]) * 7"), case("unpack_bits(bytes)[[0, 100, 191, 5]] + scalar")
for a in "i8 u8 i16 u16 i32 u32 i64 u64".split():
    case(f"sort({a})"), case(f"concat({a}, {a}[2:5], {a})"), case(f"stack({a}, {a}[::-1], axis=-2)")
# Without -0.0, whose place among zeros NumPy does not define.
case("sort(abs(f))"), case("sort(abs(d))"), case("sort(-abs(long))[100:]"), case("sort(image)"), case("sort(image, axis=-3)"), case("sort(image, axis=-2)")
case("concat(image, image[..., :1], image)"), case("concat(image, image[:2], axis=-3)"), case("concat(plane, column, axis=-1) * 2")
case("concat(row, row)"), case("concat(b, b, b, b)"), case("stack(scalar, scalar)"), case("stack(image, image, image)"), case("stack(image, image, axis=-4)")
case("stack(plane, plane * 2, plane + 1, plane, axis=-2)"), case("stack(float32(si), scalar)"), case("concat(f, g)[3:9]")
for name in "sin cos tan arctan sinh cosh arcsinh exp2 expm1 cbrt".split():
    case(f"{name}(f)", ulp=LOOSE), case(f"{name}(d)", ulp=LOOSE)
for name in "arcsin arccos arctanh".split():
    case(f"{name}(sin(g))", ulp=8 * LOOSE), case(f"{name}(sin(e))", ulp=8 * LOOSE), case(f"{name}(d)", ulp=LOOSE)
for name in "log2 log10 arccosh".split():
    case(f"{name}(abs(f) + 1)", ulp=LOOSE), case(f"{name}(d)", ulp=LOOSE)
for name in "arctan2 hypot logaddexp".split():
    case(f"{name}(f, g)", ulp=LOOSE), case(f"{name}(d, e)", ulp=LOOSE), case(f"{name}(2.5, e)", ulp=LOOSE), case(f"{name}(f, 1)", ulp=LOOSE)
case("arctan2(g * (f + 1), g)", ulp=LOOSE), case("sin(i32)", ulp=LOOSE)
for a in ["i8", "u8", "i16", "i32", "u32", "i64", "u64", "f", "d"]:
    case(f"square({a})"), case(f"logical_not({a})"), case(f"isnan({a})"), case(f"isfinite({a})"), case(f"isinf({a})")
    case(f"logical_and({a}, b)"), case(f"logical_or({a}, {a})"), case(f"logical_xor({a}, f > 0)"), case(f"fmin({a}, 3)"), case(f"fmax({a}, 3)")
for a, b in [("f", "g"), ("d", "e")]:
    case(f"reciprocal({a})"), case(f"signbit({a})"), case(f"copysign({a}, {b})"), case(f"copysign(2, {a})")
    case(f"fmin({a}, {b})"), case(f"fmax({b}, {a})"), case(f"fmod({a}, {b})"), case(f"fmod({a}, 0.75)")
case("logical_not(b)"), case("logical_and(b, f > 0)")
for a in ["i8", "u8", "u16", "i32", "u32", "i64", "u64"]:
    case(f"signbit({a})")
for a in ["f", "d"]:
    case(f"{a} ** 0.5"), case(f"power({a}, 0.5)")
for name in "sum prod mean min max any all var std".split():
    for a in ["i8", "u8", "i32", "i64", "b", "image"]:
        if name in ("mean", "var", "std", "prod") and a == "i64":
            continue
        loose = LOOSE if name in ("mean", "var", "std") else EXACT
        case(f"{name}({a})", ulp=loose)
    for axis in (-1, -2, -3):
        case(f"{name}(image, axis={axis})", ulp=loose), case(f"{name}(image, axis={axis}, keepdims=True)", ulp=loose)
    for a in ["clip(abs(long), 0, 9)", "clip(abs(plane), 0, 9)", "clip(d, -9, 9)"]:
        # In float64 here, in NumPy's own order of float32 there.
        case(f"{name}({a})", ulp=EXACT if name in ("min", "max", "any", "all") else 128)
    case(f"{name}(clip(abs(plane), 0, 9), axis=-2)", ulp=EXACT if name in ("min", "max", "any", "all") else 128)
case("min(f)"), case("max(d)"), case("min(plane[1:], axis=-1)"), case("max(plane[1:], axis=-2)"), case("var(small, ddof=1)", ulp=LOOSE)
case("std(clip(row, -9, 9), ddof=1)", ulp=128), case("long - mean(long)", ulp=1 << 22), case("long[16:] * 0.5 - scalar"), case("max(bool(i64))")
case("matmul(plane, [[0.5, 1.0], [2.0, -1.0], [0.25, 3.0], [1.0, 0.0], [4.0, 0.5], [-2.0, 1.5]])", ulp=1 << 14)
case("matmul(float32(image), transpose(float32([[0.5, 0.25, 0.25], [1.0, 2.0, 4.0]])))", ulp=LOOSE), case("matmul(image, MEAN32)", ulp=LOOSE)
case("matmul(image, MEAN)", ulp=LOOSE), case("matmul(small, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5])", ulp=LOOSE)
for mode in "constant edge reflect symmetric wrap".split():
    for width in ("2", "[1, 3]", "[[1, 2], [0, 3], [2, 0]]"):
        case(f'pad(image, {width}, mode="{mode}")')
    case(f'pad(row, [0, 5], "{mode}")'), case(f'pad(f[0:1], 3, "{mode}")'), case(f'pad(b, [2, 1], mode="{mode}")')
case("pad(image, 1, constant_values=255)"), case("pad(plane, [[0, 1], [1, 0]], constant_values=-1.5) * 2"), case("pad(d, 2)")
case("transpose((image - MEAN32) / MEAN32, [2, 0, 1])"), case("transpose(image * 2.5 - 1, [2, 1, 0])", "np.transpose(image.astype(np.float32) * np.float32(2.5) - np.float32(1), [2, 1, 0])")
case("where(long > 0, long, long * 0.01)"), case("where(long > 1, long * 2 + 1, where(long < -1, long * long - long, 0.5))")
case("((long + 1) * (long - 1) + (long * 3 - 1) * (long * 5 + 1)) / ((long + 2) * (long + 3))"), case("image[..., ::-1] * 1"), case("long[::-1]")
case("where((long > 1) == (long < 3), (long + 1) * (long - 1), (long + 2) * (long - 2))")
case("pack_bits(b)"), case("pack_bits(u8 % 2)"), case("pack_bits(image)"), case("pack_bits(unpack_bits(bytes))"), case("pack_bits(unpack_bits(bytes)[3:])")
case("(1 - float32(si)) * 0.9 + tanh(long / K) * long", ulp=64), case("(long + 1) * (long - 1) / (long * long + 1)")
case("(f + g) * (f - g) + (f + g) / 2"), case("((d + e) * (d + e) - d * (e + 1)) / (d - 2)"), case("long * 2 + 1"), case("i64 + (i64 > 5)")
for op in ["<<", ">>"]:
    for a in ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]:
        case(f"{a} {op} 3"), case(f"{a} {op} {a}"), case(f"{a} {op} {a} % 9"), case(f"5 {op} {a}"), case(f"({a} {op} 5) + 1")
        case(f"{a} {op} 7"), case(f"{a} {op} 70")
    case(f"i8 {op} u8"), case(f"u8 {op} i8"), case(f"i32 {op} small"), case(f"-1 {op} small"), case(f"1 + i64 {op} 2 & 7")
case("(u8 >> 4) & 15 | u8 << 4"), case("1 << small << 3")
# Numbers of 64 bits.
for op in ["==", "<", ">="]:
    for a in ["i8", "u8", "i64", "u64"]:
        case(f"{a} {op} 18446744073709551615"), case(f"{a} {op} 9223372036854775808"), case(f"{a} {op} -9223372036854775808")
case("u64 ^ 18446744073709551615"), case("u64 * 14695981039346656037 & 9223372036854775808"), case("uint64(9223372036854775809) - u64")
case("i64 + -9223372036854775808"), case("maximum(i64, -9223372036854775808)"), case("u64 - 18446744073709551615 + 1"), case("d + 18446744073709551615")
case("f * 9223372036854775808"), case("i64 / 18446744073709551615"), case("-9223372036854775808"), case("18446744073709551615")
case("float32(si)"), case("si / 3 + scalar"), case("1"), case("2.5 * K"), case("(1 - 0.9) / (50 - 1)"), case("float32(1) / 3"), case("True"), case("N * 2")
for a in ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f", "d", "image"]:
    case(f"cumprod({a}, -1)"), case(f"cumprod({a}[1:4], axis=-1)")
    for name in ("maximum", "minimum"):
        case(f"{name}_accumulate({a}, axis=-1)"), case(f"{name}_accumulate({a}[::-1], -1)")
case("maximum_accumulate(image, axis=-2)"), case("minimum_accumulate(plane, axis=-2)"), case("maximum_accumulate(long, -1)"), case("minimum_accumulate(image, axis=-3)")
case("cumprod(image, axis=-2)"), case("cumprod(image, axis=-3)"), case("cumprod(plane, axis=-2)"), case("cumprod(clip(long, -1.5, 1.5), axis=-1)")
for a in ["small", "int8(small)", "uint8(small)", "uint32(small)", "u8", "image", "image[..., 0] % 16"]:
    for sizes in ("12, 12", "256, 256", "5, maxlength=5", "1, 1"):
        case(f"bincount({a}, {sizes})")
case("bincount(image, 256, 256, axis=-1)", "np.apply_along_axis(np.bincount, -1, image, None, 256)")
for weights in ("d", "f", "u8", "i64"):
    case(f"bincount(small, 11, 11, {weights})"), case(f"bincount(small, 4, 4, weights={weights})")
# A choice between constants beside a condition, a value, or another choice.
for a, b in [("f", "g"), ("d", "e"), ("i32", "j32"), ("i64", "j64"), ("u8", "i8"), ("b", "f > 0")]:
    for values in ["0.25, {}, {}|1.0, 0.5", "{}, 3, {}|1, 2", "int32(7), {}, {}|int32(-1), int32(2)", "uint8(7), {}, {}|uint8(1), uint8(2)",
                   "float32(7), {}, {}|float32(1), float32(2)"]:
        outer, inner = values.split("|")
        inner = f"where(({b}) != 0, {inner})"
        first, second, third = outer.split(", ")
        kept = f"{a}" if first == "{}" else first
        case(f"where({a} > 0, {kept}, {inner})"), case(f"where({a} > 0, {inner}, {kept})"), case(f"where({a} > 1, {inner}, {inner} + {b})")
        case(f"{inner} + where({a} > 0, {inner.partition('!= 0, ')[2]}"), case(f"({a} > 0) + {inner} * 2")
case("where(long > 1, 0.25, where(long < -1, 1.0, 0.5))"), case("where(long > 1, where(long > 2, int32(1), int32(2)), where(long < -1, int32(3), int32(4)))")


def encode(array):
    array = np.ascontiguousarray(array)
    return {"dtype": array.dtype.name, "shape": list(array.shape[1:]), "bytes": array.tobytes().hex()}


def main():
    document = {"rows": ROWS, "inputs": {n: encode(v) for n, v in INPUTS.items()}, "constants": [], "cases": []}
    for name, value in CONSTANTS.items():
        array = np.asarray(value)
        key = "value" if np.issubdtype(array.dtype, np.floating) else "int_value"
        weak = isinstance(value, (int, float))
        values = [float(v) if key == "value" else int(v) for v in array.reshape(-1)]
        document["constants"].append({"name": name, key: values, "dtype": "" if weak else array.dtype.name,
                                      "shape": list(array.shape)})
    seen = set()
    for text, numpy_text, ulp in cases:
        if text in seen:
            continue
        seen.add(text)
        rows = []
        with np.errstate(all="ignore"):
            for r in range(ROWS):
                scope = {"np": np, **FUNCTIONS, **CONSTANTS, **{n: v[r] for n, v in INPUTS.items()}}
                rows.append(np.asarray(eval(numpy_text, {"__builtins__": {}}, scope)))
        document["cases"].append({"text": text, "ulp": ulp, **encode(np.stack(rows))})
    path = pathlib.Path(__file__).with_name("expr.json")
    lines = ",\n".join(json.dumps(c) for c in document["cases"])
    head = json.dumps({k: v for k, v in document.items() if k != "cases"})
    path.write_text(head[:-1] + ', "cases": [\n' + lines + "\n]}\n")
    print(f"{path}: {len(document['cases'])} cases, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
