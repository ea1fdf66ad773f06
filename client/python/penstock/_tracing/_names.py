"""What stands here for the functions of TensorFlow that work on tensors: NumPy's names, on traced values."""

import re

# By the names behind "tf.".
INSTEAD = {
    "abs": "abs(x)",
    "add_n": "a + b + c",
    "argmax": "np.argmax(x, axis)",
    "argmin": "np.argmin(x, axis)",
    "argsort": "np.argsort(x, axis)",
    "boolean_mask": "x[flags]",
    "broadcast_to": "np.broadcast_to(x, shape)",
    "case": "np.select(conditions, values, default)",
    "cast": "x.astype(np.float32)",
    "clip_by_value": "np.clip(x, low, high)",
    "concat": "np.concatenate([a, b], axis)",
    "cond": "np.where(condition, a, b)",
    "constant": "a number or a NumPy array",
    "convert_to_tensor": "the value itself; np.stack joins several",
    "cumsum": "np.cumsum(x, axis)",
    "einsum": "np.einsum(text, a, b)",
    "ensure_shape": "penstock.functions.ensure_shape(x, shape)",
    "equal": "a == b",
    "expand_dims": "np.expand_dims(x, axis), or x[..., None]",
    "eye": "np.eye(n)",
    "fill": "np.full(shape, value), a constant; np.full_like(x, value)",
    "gather": "np.take(x, indices, axis)",
    "gather_nd": "x[i, j]; np.take of np.reshape(x, -1) where the data tells the places",
    "identity": "x",
    "linalg.band_part": "np.tril(x, k) and np.triu(x, k)",
    "linalg.diag_part": "np.diagonal(x)",
    "linalg.matmul": "a @ b",
    "linalg.matvec": "a @ b",
    "linalg.norm": "np.linalg.norm(x, axis=axis)",
    "linalg.trace": "np.trace(x)",
    "linspace": "np.linspace(start, stop, n)",
    "map_fn": "NumPy's functions, which work on the whole of an array",
    "math.bincount": "penstock.functions.bincount(x, minlength=n, maxlength=n), and axis=-1 for rows",
    "math.count_nonzero": "np.count_nonzero(x, axis)",
    "math.cumprod": "np.cumprod(x, axis)",
    "math.divide_no_nan": "np.where(y != 0, x / y, 0)",
    "math.floormod": "x % y",
    "math.is_nan": "np.isnan(x)",
    "math.l2_normalize": "x / np.sqrt(np.maximum(np.sum(np.square(x), axis, keepdims=True), 1e-12))",
    "math.log_softmax": "x - m - np.log(np.sum(np.exp(x - m), axis, keepdims=True)), where m is np.max(x, axis, keepdims=True)",
    "math.multiply_no_nan": "np.where(y != 0, x * y, 0)",
    "math.reduce_std": "np.std(x, axis)",
    "math.reduce_variance": "np.var(x, axis)",
    "math.rsqrt": "1 / np.sqrt(x)",
    "math.sigmoid": "1 / (1 + np.exp(-x))",
    "math.softplus": "np.logaddexp(x, 0)",
    "math.squared_difference": "np.square(x - y)",
    "math.top_k": "np.argsort(r, kind='stable')[..., :k], where r is ~x if x.dtype.kind in 'iu' else -x; np.take_along_axis for the values",
    "math.xlogy": "np.where(x == 0, 0, x * np.log(y))",
    "matmul": "a @ b",
    "meshgrid": "np.meshgrid(x, y)",
    "nn.moments": "np.mean(x, axis) and np.var(x, axis)",
    "nn.relu": "np.maximum(x, 0)",
    "nn.softmax": "e / np.sum(e, axis, keepdims=True), where e is np.exp(x - np.max(x, axis, keepdims=True))",
    "norm": "np.linalg.norm(x, axis=axis)",
    "not_equal": "a != b",
    "one_hot": "penstock.functions.one_hot(indices, depth)",
    "ones": "np.ones(shape), a constant",
    "ones_like": "np.ones_like(x)",
    "pad": "np.pad(x, pad_width)",
    "pow": "x ** y",
    "lookup.StaticHashTable": "penstock.strings.lookup(x, words), or penstock.functions.take(table, x, axis=0) of numbers",
    "lookup.StaticVocabularyTable": "penstock.strings.lookup(x, words)",
    "math.cumulative_logsumexp": "np.log(np.sum(np.exp(t - m), -1)) + m[..., 0], where n is x.shape[-1], t is np.where(np.tri(n, dtype=bool), x[..., None, :], -np.inf), "
    "m is np.clip(np.max(t, -1, keepdims=True), -1e38, 1e38); along the last axis",
    "numpy_function": "penstock.numpy_function(func, inp, Tout)",
    "py_function": "penstock.py_function(func, inp, Tout)",
    "random.categorical": "np.argmax(logits - np.log(-np.log(penstock.functions.random_uniform([n], 1e-7))))",
    "random.shuffle": "np.take(x, np.argsort(penstock.functions.random_uniform([n])), axis=0)",
    "random.gamma": "penstock.functions.random_beta(a, b), where two of them make a share: x / (x + y)",
    "random.normal": "penstock.functions.random_normal(shape)",
    "random.stateless_normal": "penstock.functions.random_normal(shape, seed=n)",
    "random.stateless_uniform": "penstock.functions.random_uniform(shape, seed=n)",
    "random.uniform": "penstock.functions.random_uniform(shape, minval, maxval)",
    "range": "np.arange(n), a constant; penstock.functions.arange(n) where the data tells n",
    "rank": "x.ndim",
    "realdiv": "x / y",
    "reduce_all": "np.all(x, axis)",
    "reduce_any": "np.any(x, axis)",
    "reduce_logsumexp": "np.squeeze(np.log(np.sum(np.exp(x - m), axis, keepdims=True)) + m, axis), where m is np.clip(np.max(x, axis, keepdims=True), -1e38, 1e38)",
    "reduce_max": "np.max(x, axis)",
    "reduce_mean": "np.mean(x, axis)",
    "reduce_min": "np.min(x, axis)",
    "reduce_prod": "np.prod(x, axis)",
    "reduce_sum": "np.sum(x, axis)",
    "repeat": "np.repeat(x, n, axis)",
    "reshape": "np.reshape(x, shape)",
    "reverse": "np.flip(x, axis)",
    "reverse_sequence": "np.where of np.flip",
    "roll": "np.roll(x, shift, axis)",
    "round": "np.round(x)",
    "saturate_cast": "x.astype(np.uint8), which saturates",
    "scan": "np.cumsum, np.cumprod, np.maximum.accumulate along an axis; Dataset.scan over elements",
    "searchsorted": "np.searchsorted(sorted, x, side)",
    "sequence_mask": "np.arange(longest) < lengths[..., None]",
    "shape": "np.shape(x), a tuple where the sizes are known; penstock.functions.shape(x), always a tensor",
    "signal.hann_window": "np.hanning(n + 1 - n % 2)[:n], a constant",
    "signal.linear_to_mel_weight_matrix": "its array, a constant: np.asarray of it outside of the function",
    "signal.mfccs_from_log_mel_spectrograms": "x @ (np.cos(np.pi / n * (np.arange(n)[:, None] + 0.5) * np.arange(n)) * np.sqrt(2 / n)), where n is x.shape[-1]",
    "signal.frame": "np.lib.stride_tricks.sliding_window_view(x, length)[::step]",
    "signal.rfft": "np.fft.rfft(x, n)",
    "signal.stft": "np.fft.rfft(np.lib.stride_tricks.sliding_window_view(x, length)[::step] * window, n)",
    "size": "np.size(x)",
    "slice": "x[a:b]",
    "sort": "np.sort(x, axis)",
    "split": "np.split(x, parts, axis)",
    "squeeze": "np.squeeze(x, axis)",
    "stack": "np.stack([a, b], axis)",
    "strided_slice": "x[a:b:c]",
    "switch_case": "np.select(conditions, values, default)",
    "tensor_scatter_nd_update": "np.where(condition, a, b)",
    "tensordot": "np.tensordot(a, b, axes)",
    "tile": "np.tile(x, times)",
    "transpose": "np.transpose(x, axes)",
    "truediv": "x / y",
    "unstack": "np.unstack(x, axis=axis)",
    "vectorized_map": "NumPy's functions, which work on the whole of an array",
    "where": "np.where(condition, a, b), or np.argwhere(condition)",
    "zeros": "np.zeros(shape), a constant",
    "zeros_like": "np.zeros_like(x)",
    "image.sample_distorted_bounding_box": "penstock.image.random_resized_crop(image, size)",
    "image.stateless_sample_distorted_bounding_box": "penstock.image.random_resized_crop(image, size, seed=n)",
    "image.psnr": "10 * np.log10(max_val ** 2 / np.mean(np.square(a - b))), of floats",
    "image.extract_jpeg_shape": "penstock.image.shape(contents)",
    "io.extract_jpeg_shape": "penstock.image.shape(contents)",
}
# Those that are known by a shorter name, too.
_SHORTER = {name.partition(".")[2]: name for name in INSTEAD if name.startswith(("math.", "linalg.", "nn."))}
# Modules whose functions have their own names here.
_OURS = {"image": "penstock.image", "io": "penstock.io", "strings": "penstock.strings"}
_SAME = (
    "exp log log1p expm1 sqrt square sin cos tan sinh cosh tanh floor ceil sign maximum minimum logical_and logical_or logical_not logical_xor less less_equal "
    "greater greater_equal add subtract multiply divide negative reciprocal"
).split()


def instead_of(name):
    """What to write for tf.NAME; None where that is not known."""
    name = name.removeprefix("experimental.numpy.").removeprefix("compat.v1.")
    known = INSTEAD.get(name) or INSTEAD.get(_SHORTER.get(name, ""))
    if known is not None:
        return known
    module, _, last = name.rpartition(".")
    if module == "image" and last.startswith("stateless_random_"):
        return f"penstock.image.{last.removeprefix('stateless_')}(image, …, seed=n), which draws anew for each element"
    if module in ("", "math") and last in _SAME:
        return f"np.{last}(x)"
    if module in ("", "math") and f"math.{last}" in INSTEAD:
        return INSTEAD[f"math.{last}"]
    return None


def instead_in(line):
    """The same for what a line of code calls of TensorFlow: pairs of a name and what to write."""
    found = []
    for name in re.findall(r"\b(?:tf|tensorflow)\.([A-Za-z_][\w.]*)", line):
        module, _, last = name.rpartition(".")
        instead = instead_of(name)
        if instead is None and module in _OURS:
            instead = f"{_OURS[module]}.{last}"
        if instead is not None and (name, instead) not in found:
            found.append((name, instead))
    return found
