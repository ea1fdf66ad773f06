"""What TensorFlow's functions of tensors are here: pairs of expressions of the same values.

make_tensor_goldens.py runs the first of each with TensorFlow, tests/client/python_tensors_test.py the second with Penstock.
"""

import numpy as np


def _values(shape, step, modulus, dtype, scale=1, shift=0):
    """Numbers without order, the same wherever they are made."""
    count = int(np.prod(shape))
    return (((np.arange(count, dtype=np.int64) * step + 7) % modulus) * scale + shift).reshape(shape).astype(dtype)


INPUTS = {
    "f": _values((4, 6), 37, 101, np.float32, 0.13, -6.5),
    "g": _values((4, 6), 53, 97, np.float32, 0.21, -9),
    "d": _values((3, 5), 29, 89, np.float64, 0.17, -7),
    "i": _values((4, 6), 31, 19, np.int32, 1, -9),
    "n": _values((7,), 5, 6, np.int64),
    "v": _values((7,), 37, 101, np.float32, 0.13, -6.5),
    "z": _values((7,), 3, 4, np.float32),
    "w": _values((6, 3), 41, 67, np.float32, 0.05, -1.5),
    "wave": _values((50,), 17, 83, np.float32, 0.02, -0.8),
    "u": _values((7, 9, 3), 151, 256, np.uint8),
    "rgb": _values((7, 9, 3), 151, 256, np.float32, 1 / 255),
    "deep": _values((5, 4, 3), 151, 256, np.float64, 1 / 255),
    "grey": _values((6, 5, 1), 91, 256, np.uint8),
    "whole": _values((8, 5, 2), 91, 256, np.float32),
    "boxes": np.array([[0, 0, 1, 1], [0.1, 0.25, 0.7, 0.8], [0.9, 0.8, 0.2, 0.1], [-0.3, 0.2, 0.6, 1.4], [0.5, 0.5, 0.5, 0.5]], np.float32),
    "flags": _values((4,), 3, 2, bool),
    "lengths": np.array([3, 0, 5], np.int64),
    "labels": np.array([2, 0, 4, 1], np.int64),
}

# What of TensorFlow (with tf), what of ours (with np and penstock), and how far values may be apart: relative to 1 or to the greater of both.
CASES = [
    ("tf.abs(f)", "abs(f)", 0),
    ("tf.add_n([f, g, f])", "f + g + f", 0),
    ("tf.argmax(f, 1)", "np.argmax(f, 1)", 0),
    ("tf.argmin(f, 0)", "np.argmin(f, 0)", 0),
    ("tf.argsort(i, axis=1, stable=True)", "np.argsort(i, 1).astype(np.int32)", 0),
    ("tf.boolean_mask(f, flags)", "f[flags]", 0),
    ("tf.boolean_mask(f, f > 0)", "f[f > 0]", 0),
    ("tf.boolean_mask(f, [True, False, True, True])", "f[np.array([True, False, True, True])]", 0),
    ("tf.broadcast_to(v, [3, 7])", "np.broadcast_to(v, [3, 7])", 0),
    ("tf.case([(tf.constant(n[0] > 5), lambda: v), (tf.constant(n[1] > 5), lambda: -v)], default=lambda: v * 2)", "np.select([n[0] > 5, n[1] > 5], [v, -v], v * 2)", 0),
    ("tf.cast(f, tf.int32)", "f.astype(np.int32)", 0),
    ("tf.clip_by_value(f, -1.0, 2.0)", "np.clip(f, -1.0, 2.0)", 0),
    ("tf.concat([f, g], 1)", "np.concatenate([f, g], 1)", 0),
    ("tf.cond(tf.constant(n[0] > 5), lambda: v, lambda: -v)", "np.where(n[0] > 5, v, -v)", 0),
    ("tf.cumsum(f, 1)", "np.cumsum(f, 1)", 0),
    ("tf.cumsum(i, 0)", "np.cumsum(i, 0).astype(np.int32)", 0),
    ("tf.einsum('ij,jk->ik', f, w)", "np.einsum('ij,jk->ik', f, w)", 1e-6),
    ("tf.einsum('ij,ij->i', f, g)", "np.einsum('ij,ij->i', f, g)", 1e-6),
    ("tf.einsum('ij->ji', f)", "np.einsum('ij->ji', f)", 0),
    ("tf.einsum('hwc,cd->dhw', rgb, tf.constant([[1.0, 2], [3, 4], [5, 6]]))", "np.einsum('hwc,cd->dhw', rgb, np.array([[1.0, 2], [3, 4], [5, 6]], np.float32))", 1e-6),
    ("tf.einsum('i,j->ij', v, z)", "np.einsum('i,j->ij', v, z)", 0),
    ("tf.expand_dims(f, 1)", "np.expand_dims(f, 1)", 0),
    ("tf.expand_dims(f, -1)", "f[..., None]", 0),
    ("tf.gather(f, [2, 0, 1], axis=1)", "np.take(f, [2, 0, 1], 1)", 0),
    ("tf.gather(v, n)", "np.take(v, n)", 0),
    ("tf.gather(f, labels, axis=1, batch_dims=1)", "np.take_along_axis(f, labels[:, None], 1)[:, 0]", 0),
    ("tf.gather_nd(f, [[0, 1], [3, 5], [2, 2]])", "f[np.array([0, 3, 2]), np.array([1, 5, 2])]", 0),
    ("tf.linalg.band_part(f, -1, 0)", "np.tril(f)", 0),
    ("tf.linalg.band_part(f, 0, 2)", "np.triu(f) - np.triu(f, 3)", 0),
    ("tf.linalg.diag_part(f)", "np.diagonal(f)", 0),
    ("tf.linalg.matvec(f, f[0])", "f @ f[0]", 1e-6),
    ("tf.linalg.norm(f, axis=1)", "np.linalg.norm(f, axis=1)", 1e-6),
    ("tf.linalg.norm(f)", "np.linalg.norm(f)", 1e-6),
    ("tf.linalg.norm(f, ord=1, axis=0)", "np.linalg.norm(f, 1, axis=0)", 1e-6),
    ("tf.linalg.norm(f, ord=np.inf, axis=1)", "np.linalg.norm(f, np.inf, axis=1)", 0),
    ("tf.linalg.trace(f)", "np.trace(f)", 1e-6),
    ("tf.linspace(v[0], v[1], 5)", "np.linspace(v[0], v[1], 5)", 1e-6),
    ("tf.math.bincount(n, minlength=9, maxlength=9)", "penstock.functions.bincount(n, minlength=9, maxlength=9).astype(np.int32)", 0),
    ("tf.math.bincount(tf.cast(u, tf.int32), minlength=256, maxlength=256)", "penstock.functions.bincount(u, 256, 256).astype(np.int32)", 0),
    ("tf.math.bincount(n, minlength=2, maxlength=4)", "penstock.functions.bincount(n, 2, 4).astype(np.int32)", 0),
    ("tf.math.bincount(n, weights=v, minlength=7)", "np.bincount(n, v, 7).astype(np.float32)", 1e-6),
    ("tf.math.count_nonzero(i, 1)", "np.count_nonzero(i, 1)", 0),
    ("tf.math.cumprod(f, 1)", "np.cumprod(f, 1)", 0),
    ("tf.math.divide_no_nan(v, z)", "np.where(z != 0, v / z, 0)", 0),
    ("tf.math.floormod(i, 4)", "i % 4", 0),
    ("tf.math.l2_normalize(f, 1)", "f / np.sqrt(np.maximum(np.sum(np.square(f), 1, keepdims=True), 1e-12))", 1e-6),
    ("tf.nn.log_softmax(f)", "f - f.max(1, keepdims=True) - np.log(np.sum(np.exp(f - f.max(1, keepdims=True)), 1, keepdims=True))", 1e-6),
    ("tf.math.multiply_no_nan(v, z)", "np.where(z != 0, v * z, 0)", 0),
    ("tf.math.reduce_std(f, 1)", "np.std(f, 1)", 1e-6),
    ("tf.math.reduce_variance(f, 0)", "np.var(f, 0)", 1e-6),
    ("tf.math.rsqrt(z + 1)", "1 / np.sqrt(z + 1)", 1e-6),
    ("tf.math.sigmoid(f)", "1 / (1 + np.exp(-f))", 1e-6),
    ("tf.math.softplus(f)", "np.logaddexp(f, 0)", 1e-6),
    ("tf.math.squared_difference(f, g)", "np.square(f - g)", 0),
    ("tf.math.top_k(f, 2).indices", "np.argsort(-f, kind='stable')[..., :2].astype(np.int32)", 0),
    ("tf.math.top_k(f, 2).values", "np.take_along_axis(f, np.argsort(-f, kind='stable')[..., :2], -1)", 0),
    ("tf.math.xlogy(z, abs(v))", "np.where(z == 0, 0, z * np.log(abs(v)))", 1e-6),
    ("tf.matmul(f, w)", "f @ w", 1e-6),
    ("tf.stack(tf.meshgrid(v, tf.cast(n, tf.float32)))", "np.stack(np.meshgrid(v, n.astype(np.float32)))", 0),
    ("tf.stack(tf.meshgrid(v, z, indexing='ij'))", "np.stack(np.meshgrid(v, z, indexing='ij'))", 0),
    ("tf.stack(tf.nn.moments(f, [1]))", "np.stack([np.mean(f, 1), np.var(f, 1)])", 1e-6),
    ("tf.nn.relu(f)", "np.maximum(f, 0)", 0),
    ("tf.nn.softmax(f)", "np.exp(f - f.max(1, keepdims=True)) / np.exp(f - f.max(1, keepdims=True)).sum(1, keepdims=True)", 1e-6),
    ("tf.one_hot(labels, 5)", "penstock.functions.one_hot(labels, 5)", 0),
    ("tf.ones_like(f)", "np.ones_like(f)", 0),
    ("tf.pad(f, [[1, 0], [0, 2]], constant_values=3)", "np.pad(f, [[1, 0], [0, 2]], constant_values=3)", 0),
    ("tf.pad(f, [[2, 2], [1, 1]], 'REFLECT')", "np.pad(f, [[2, 2], [1, 1]], 'reflect')", 0),
    ("tf.rank(f)", "np.int32(f.ndim)", 0),
    ("tf.reduce_all(f > -7)", "np.all(f > -7)", 0),
    ("tf.reduce_any(f > 6, 1)", "np.any(f > 6, 1)", 0),
    ("tf.reduce_logsumexp(f, 1)", "np.log(np.sum(np.exp(f - f.max()), 1)) + f.max()", 1e-5),
    ("tf.reduce_max(f, [0, 1])", "np.max(f, (0, 1))", 0),
    ("tf.reduce_mean(u, 0)", "np.floor(np.mean(u, 0)).astype(np.uint8)", None),
    ("tf.reduce_mean(rgb, [0, 1])", "np.mean(rgb, (0, 1))", 1e-6),
    ("tf.reduce_min(i, 0, keepdims=True)", "np.min(i, 0, keepdims=True)", 0),
    ("tf.reduce_prod(d, 0)", "np.prod(d, 0)", 1e-12),
    ("tf.reduce_sum(d, 1)", "np.sum(d, 1)", 1e-12),
    ("tf.repeat(f, 3, axis=1)", "np.repeat(f, 3, axis=1)", 0),
    ("tf.repeat(v, [1, 0, 2, 1, 3, 0, 1])", "np.repeat(v, [1, 0, 2, 1, 3, 0, 1])", 0),
    ("tf.reshape(f, [2, -1])", "np.reshape(f, [2, -1])", 0),
    ("tf.reverse(f, [1])", "np.flip(f, 1)", 0),
    ("tf.roll(f, [1, -2], [0, 1])", "np.roll(f, [1, -2], [0, 1])", 0),
    ("tf.round(f)", "np.round(f)", 0),
    ("tf.saturate_cast(f * 100, tf.uint8)", "(f * 100).astype(np.uint8)", 0),
    ("tf.searchsorted([-3.0, 0.0, 2.0], v, side='right')", "np.searchsorted(np.array([-3.0, 0.0, 2.0], np.float32), v, side='right').astype(np.int32)", 0),
    ("tf.sequence_mask(lengths, 6)", "np.arange(6) < lengths[..., None]", 0),
    ("tf.shape(f)", "np.array(np.shape(f), np.int32)", 0),
    ("tf.signal.frame(wave, 16, 5)", "np.lib.stride_tricks.sliding_window_view(wave, 16)[::5]", 0),
    ("tf.math.real(tf.signal.rfft(wave))", "np.fft.rfft(wave).real", 1e-5),
    ("tf.math.imag(tf.signal.rfft(wave, [64]))", "np.fft.rfft(wave, 64).imag", 1e-5),
    ("tf.abs(tf.signal.rfft(d))", "abs(np.fft.rfft(d))", 1e-12),
    ("tf.math.angle(tf.signal.rfft(d))", "np.angle(np.fft.rfft(d))", 1e-12),
    ("tf.abs(tf.signal.stft(wave, 16, 5))",
     "abs(np.fft.rfft(np.lib.stride_tricks.sliding_window_view(wave, 16)[::5] * np.float32(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16))))", 1e-5),
    ("tf.abs(tf.signal.stft(wave, 10, 4, 32, window_fn=None)) ** 2",
     "abs(np.fft.rfft(np.lib.stride_tricks.sliding_window_view(wave, 10)[::4], 32)) ** 2", 1e-5),
    ("tf.slice(f, [1, 2], [2, 3])", "f[1:3, 2:5]", 0),
    ("tf.sort(f, 1)", "np.sort(f, 1)", 0),
    ("tf.stack(tf.split(f, 3, 1))", "np.stack(np.split(f, 3, 1))", 0),
    ("tf.squeeze(grey, -1)", "np.squeeze(grey, -1)", 0),
    ("tf.stack([f, g], 1)", "np.stack([f, g], 1)", 0),
    ("tf.tensordot(f, w, 1)", "np.tensordot(f, w, 1)", 1e-6),
    ("tf.tensordot(rgb, rgb, [[0, 1], [0, 1]])", "np.tensordot(rgb, rgb, [[0, 1], [0, 1]])", 1e-6),
    ("tf.tile(f, [2, 3])", "np.tile(f, [2, 3])", 0),
    ("tf.transpose(rgb, [2, 0, 1])", "np.transpose(rgb, [2, 0, 1])", 0),
    ("tf.unstack(f, axis=1)[2]", "np.unstack(f, axis=1)[2]", 0),
    ("tf.where(f > 0)", "np.argwhere(f > 0)", 0),
    ("tf.where(f > 0, f, g)", "np.where(f > 0, f, g)", 0),
    ("tf.zeros_like(i)", "np.zeros_like(i)", 0),
    # Images.
    ("tf.image.rgb_to_yuv(rgb)", "penstock.image.rgb_to_yuv(rgb)", 1e-6),
    ("tf.image.rgb_to_yuv(deep)", "penstock.image.rgb_to_yuv(deep)", 1e-12),
    ("tf.image.yuv_to_rgb(rgb)", "penstock.image.yuv_to_rgb(rgb)", 1e-6),
    ("tf.image.rgb_to_yiq(rgb)", "penstock.image.rgb_to_yiq(rgb)", 1e-6),
    ("tf.image.yiq_to_rgb(deep)", "penstock.image.yiq_to_rgb(deep)", 1e-12),
    ("tf.image.grayscale_to_rgb(grey)", "penstock.image.grayscale_to_rgb(grey)", 0),
    ("tf.image.sobel_edges(rgb[None])[0]", "penstock.image.sobel_edges(rgb)", 1e-6),
    ("tf.image.sobel_edges(whole[None])[0]", "penstock.image.sobel_edges(whole)", 0),
    ("tf.image.sobel_edges(tf.cast(u, tf.float32)[None])", "penstock.image.sobel_edges(u)[None]", 0),
    ("tf.image.image_gradients(rgb[None])[0][0]", "penstock.image.image_gradients(rgb)[0]", 0),
    ("tf.image.image_gradients(rgb[None])[1]", "penstock.image.image_gradients(rgb[None])[1]", 0),
    ("tf.image.total_variation(rgb)", "penstock.image.total_variation(rgb)", 1e-6),
]
for sizes, strides, rates in ([2, 3], [1, 1], [1, 1]), ([3, 3], [2, 2], [1, 1]), ([2, 2], [3, 1], [2, 2]), ([1, 1], [2, 3], [1, 1]), ([3, 2], [4, 5], [2, 3]):
    for padding in "VALID", "SAME":
        _arguments = f"[1, {sizes[0]}, {sizes[1]}, 1], [1, {strides[0]}, {strides[1]}, 1], [1, {rates[0]}, {rates[1]}, 1], '{padding}'"
        CASES.append((f"tf.image.extract_patches(rgb[None], {_arguments})[0]", f"penstock.image.extract_patches(rgb, {_arguments})", 0))
        CASES.append((f"tf.image.extract_patches(u[None], {_arguments})", f"penstock.image.extract_patches(u[None], {_arguments})", 0))
for size in [4, 5], [1, 3], [9, 1], [14, 20]:
    for method in "bilinear", "nearest":
        for name in "rgb", "u", "whole":
            CASES.append((
                f"tf.image.crop_and_resize({name}[None], boxes, [0] * 5, {size}, '{method}', 0.25)",
                f"penstock.image.crop_and_resize({name}, boxes, None, {size}, '{method}', 0.25)",
                1e-5 if method == "bilinear" else 0,
            ))  # fmt: skip
CASES.append((
    "tf.image.crop_and_resize(tf.stack([rgb, rgb * 2, 1 - rgb]), boxes, [2, 0, 1, 1, 2], [5, 4])",
    "penstock.image.crop_and_resize(np.stack([rgb, rgb * 2, 1 - rgb]), boxes, np.array([2, 0, 1, 1, 2]), [5, 4])", 1e-5,
))  # fmt: skip
# Where TensorFlow's result is one of integers that it divides by dropping what is left over.
CASES = [(theirs, ours, 0 if tolerance is None else tolerance) for theirs, ours, tolerance in CASES]
