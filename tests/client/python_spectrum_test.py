"""np.fft.rfft of traced values, and what is asked of its result, against NumPy's."""

import numpy as np
import pytest

import penstock

DICE = np.random.default_rng(9)
WAVES = DICE.normal(size=(3, 2, 600))
SIZES = [*range(1, 34), 49, 64, 96, 97, 121, 256, 400, 441, 512, 600, 607, 1000, 1009, 2048]


def check(function, values):
    dataset = penstock.Dataset.from_tensor_slices(values)
    for ours, row in zip(dataset.map(function), values, strict=True):
        # NumPy computes float32 in float32: the truth is what float64 rounds to.
        theirs = np.asarray(function(row.astype(np.float64)))
        if row.dtype == np.float32:
            theirs = theirs.astype(np.float32)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        tolerance = 4e-7 if row.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())


def both(spectrum):
    return np.stack([spectrum.real, spectrum.imag])


@pytest.mark.parametrize("size", SIZES)
def test_every_length(size):
    for values in (WAVES, WAVES.astype(np.float32)):
        check(lambda x: both(np.fft.rfft(x, size)), values)
        check(lambda x: both(np.fft.rfft(x[..., :size])), values)


@pytest.mark.parametrize("size", [53, 106, 53 * 59, 4 * 1009, 10_007, 65_537])
def test_large_prime_factors(size):
    values = np.random.default_rng(size).normal(size=(2, size))
    for kind in (np.float64, np.float32):
        check(lambda x: both(np.fft.rfft(x)), values.astype(kind))


@pytest.mark.parametrize("dtype", "int8 uint8 int16 int32 int64 uint64".split())
def test_of_integers(dtype):
    values = (WAVES * 60).clip(0, 120).astype(dtype)
    check(lambda x: both(np.fft.rfft(x)), values)


OF_SPECTRA = [
    lambda s, w: np.abs(s),
    lambda s, w: abs(s) ** 2,
    lambda s, w: np.angle(s),
    lambda s, w: s.conj().imag,
    lambda s, w: np.conj(s).imag + np.real(s) - np.imag(s),
    lambda s, w: (-s).real,
    lambda s, w: (s * w).imag,
    lambda s, w: (w * s / 3).real,
    lambda s, w: (2.0 * s * s.conj()).real,
    lambda s, w: (s * s).imag,
    lambda s, w: abs(s + s * w),
    lambda s, w: abs(np.subtract(s, np.multiply(w, s))),
    lambda s, w: abs(s[0]),
    lambda s, w: abs(s[..., 3]),
    lambda s, w: abs(s[:, 2:9]),
    lambda s, w: abs(s[1, ::2]),
    lambda s, w: abs(s.T),
    lambda s, w: abs(np.swapaxes(s, 0, 1)),
    lambda s, w: abs(s.transpose(1, 0))[: s.shape[1] - s.ndim],
    lambda s, w: np.log(abs(s) + 1e-3),
]


@pytest.mark.parametrize("case", range(len(OF_SPECTRA)))
def test_what_is_asked_of_a_spectrum(case):
    weights = np.linspace(0.5, 2, 301)
    check(lambda x: OF_SPECTRA[case](np.fft.rfft(x), weights if x.dtype == np.float64 else weights.astype(np.float32)), WAVES)
    check(lambda x: OF_SPECTRA[case](np.fft.rfft(x), weights if x.dtype == np.float64 else weights.astype(np.float32)), WAVES.astype(np.float32))


@pytest.mark.parametrize("index", [(0, 0, 0), (slice(None), 0, 0), (0, ..., 0, 0), (None, 0, 0, 0), (np.ones((2, 301), bool), 0)], ids=range(5))
def test_parts_of_a_number_have_no_subscripts(index):
    with pytest.raises(penstock.TraceError, match="3 subscripts of a spectrum of 2 axes"):
        penstock.Dataset.from_tensors(WAVES[0]).map(lambda x: abs(np.fft.rfft(x)[index]))


def test_axes_and_norms():
    check(lambda x: both(np.fft.rfft(x, axis=0)), WAVES)
    check(lambda x: both(np.fft.rfft(np.reshape(x, (2, 30, 20)), 16, axis=1)), WAVES)
    for norm in ("ortho", "forward", "backward"):
        check(lambda x: both(np.fft.rfft(x, norm=norm)), WAVES)


def test_a_spectrogram():
    window, mel = np.hanning(100).astype(np.float32), DICE.random((65, 8)).astype(np.float32)

    def features(x):
        frames = np.lib.stride_tricks.sliding_window_view(x, 100, axis=-1)[..., ::40, :] * window
        return np.log(np.abs(np.fft.rfft(frames, 128)) ** 2 @ mel + np.float32(1e-3))

    values = WAVES.astype(np.float32)
    dataset = penstock.Dataset.from_tensor_slices(values)
    expected = features(values.astype(np.float64))
    np.testing.assert_allclose(np.stack(list(dataset.map(features))), expected, rtol=2e-5, atol=2e-5)
    (of_a_batch,) = dataset.batch(3).map(features)
    np.testing.assert_array_equal(of_a_batch, np.stack(list(dataset.map(features))))


def test_of_sizes_that_only_the_data_tells():
    def some(x):
        return np.compress(x[0] > 0, x, axis=1)

    for ours, row in zip(penstock.Dataset.from_tensor_slices(WAVES).map(lambda x: abs(np.fft.rfft(some(x), 512))), WAVES, strict=True):
        theirs = abs(np.fft.rfft(some(row), 512))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    values = np.arange(12.0).reshape(2, 6)
    for ours, row in zip(penstock.Dataset.from_tensor_slices(values).map(lambda x: abs(np.fft.rfft(np.reshape(x[x > 2], (-1, 3)), 4))), values, strict=True):
        np.testing.assert_allclose(ours, abs(np.fft.rfft(np.reshape(row[row > 2], (-1, 3)), 4)), rtol=1e-12, atol=1e-12)


REFUSED = [
    (lambda x: np.fft.rfft(x), penstock.TraceError, "of type Spectrum, not a tensor"),
    (lambda x: np.stack([np.fft.rfft(x), np.fft.rfft(x)]), penstock.TraceError, "np.stack of complex numbers; np.abs, np.angle, .real and .imag"),
    (lambda x: x[0, 0] == np.asarray(np.fft.rfft(x)), penstock.TraceError, "complex numbers as a traced value"),
    (lambda x: np.fft.rfft(x) + 1.0, penstock.TraceError, "complex numbers beside real ones"),
    (lambda x: np.fft.rfft(x) * 1j, penstock.TraceError, "complex constants"),
    (lambda x: x / np.fft.rfft(x), penstock.TraceError, "complex"),
    (lambda x: np.fft.rfft(x) ** 2, penstock.TraceError, "a power of complex numbers"),
    (lambda x: np.exp(np.fft.rfft(x)), penstock.TraceError, "np.exp of complex numbers"),
    (lambda x: np.sum(np.fft.rfft(x)), penstock.TraceError, "np.sum of complex numbers"),
    (lambda x: np.fft.rfft(x).mean(), penstock.TraceError, "attribute .mean of complex numbers"),
    (lambda x: np.fft.rfft(x, norm="wide"), penstock.TraceError, "norm='wide'"),
    (lambda x: abs(np.fft.rfft(x[x > 0])), penstock.TraceError, r"a size that only the data tells; np.fft.rfft\(x, n\)"),
    (lambda x: abs(np.fft.rfft(x, 0)), penstock.InvalidArgumentError, "n: expected an integer constant of 1 to 1048576, found 0"),
    (lambda x: penstock.functions.rfft(x[0, 0]), penstock.InvalidArgumentError, r"x: expected numbers of one axis at least, found float64 \(\)"),
    (lambda x: penstock.functions.rfft(x[x > 0]), penstock.InvalidArgumentError, "n: expected a constant of 1 to 1048576, where the last axis has no such size"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case):
    function, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        list(penstock.Dataset.from_tensor_slices(WAVES).map(function))
