"""tf.strings' names, on traced strings (inside a function given to map): a string, or a tensor of strings.

Comparisons, `+`, and NumPy's functions that choose, join, sort and rearrange work on traced strings too. Texts and bytes are constants alike; they are UTF-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._numpy._axes import counted_from_last, sizes_of, to_integer
from penstock._tracing import _constants, _language, _refusals
from penstock.io import string_to_number as to_number

if TYPE_CHECKING:
    from penstock._numpy._tensor import Tensor

__all__ = [
    "as_string",
    "bytes_split",
    "join",
    "length",
    "lookup",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_split",
    "upper",
]


def _call(name, *args, **kwargs):
    return _language.call(name, args, kwargs, "penstock.strings." + name.removeprefix("string_"))


def as_string(input: Any, precision: Any = -1, scientific: Any = False, shortest: Any = False, width: Any = -1, fill: Any = "", name: Any = None) -> Tensor:
    """Numbers, flags or strings as texts, as tf.strings.as_string: as printf writes them.

    Args:
      precision: digits behind a float's point, 6 where it is negative.
      scientific, shortest: with an exponent, or whichever way is shorter.
      width: of the field at least.
      fill: "0" fills it up with zeros, "-" with spaces behind; "+" and " " stand for a positive number's sign.
    """
    return _call("as_string", input, precision, bool(scientific), bool(shortest), width, fill)


def bytes_split(input: Any, name: Any = None) -> Tensor:
    """Its bytes, each a string, shape (n,), as tf.strings.bytes_split; of a tensor of strings all must be as long."""
    return _call("bytes_split", input)


def length(input: Any, unit: Any = "BYTE", name: Any = None) -> Tensor:
    """How long it is, int32, as tf.strings.length: in bytes, or with unit "UTF8_CHAR" in characters."""
    return _call("string_length", input, unit)


def lower(input: Any, encoding: Any = "", name: Any = None) -> Tensor:
    """With small letters of ASCII, as tf.strings.lower; other bytes stay, so that encoding is "" alone."""
    _refuse_encoding(encoding)
    return _call("string_lower", input)


def upper(input: Any, encoding: Any = "", name: Any = None) -> Tensor:
    """With capital letters of ASCII, as tf.strings.upper; other bytes stay, so that encoding is "" alone."""
    _refuse_encoding(encoding)
    return _call("string_upper", input)


def strip(input: Any, name: Any = None) -> Tensor:
    """Without white space at its ends, as tf.strings.strip."""
    return _call("string_strip", input)


def substr(input: Any, pos: Any, len: Any, unit: Any = "BYTE", name: Any = None) -> Tensor:
    """At most `len` bytes (or "UTF8_CHAR"acters) from `pos` on, as tf.strings.substr; pos and len are constants.

    A pos outside of the text is an error of its record.
    """
    return _call("substr", input, pos, len, unit)


def split(input: Any, sep: Any = None, maxsplit: Any = -1, name: Any = None) -> Tensor:
    """Its parts, as tf.strings.split: a tensor of strings, shape (n,), of which split(x, "/")[-2] takes one.

    Of a tensor of strings all must have as many parts; the result then is no ragged tensor, but one with an axis more.

    Args:
      sep: what stands between parts; None or "" for white space.
      maxsplit: after so many parts the rest is one; -1 for all.
    """
    return _call("string_split", input, sep or "", maxsplit)


def join(inputs: Any, separator: Any = "", name: Any = None) -> Tensor:
    """The strings of a list one behind another, as tf.strings.join: traced ones and constants."""
    inputs = list(inputs)
    if not inputs:
        raise _refusals.TraceError("penstock.strings.join of nothing", "it takes a list of strings")
    # Constants side by side are one, since a call needs a traced string.
    parts = []
    for value in inputs:
        value = value.decode() if isinstance(value, bytes) else value
        if parts and isinstance(value, str) and isinstance(parts[-1], str):
            parts[-1] += _text(separator) + value
        else:
            parts.append(value)
    joined = parts[0]
    for value in parts[1:]:
        joined = _call("string_join", joined, value, separator)
    return joined


def ngrams(data: Any, ngram_width: Any, separator: Any = " ", pad_values: Any = None, padding_width: Any = None, name: Any = None) -> Tensor:
    """Neighbours along the last axis as one string, as tf.strings.ngrams: (n,) becomes (n - ngram_width + 1,), or none.

    Args:
      ngram_width: how many neighbours; of several widths, a tuple, one behind another.
      pad_values: a text that stands at both ends, or a pair of one for each; so often as padding_width says, by default ngram_width - 1 times,
        and never more often.
    """
    from penstock._numpy._products import broadcast_to

    shown = "penstock.strings.ngrams"
    widths = [to_integer(width, f"{shown} of the width") for width in (ngram_width if isinstance(ngram_width, (tuple, list)) else [ngram_width])]
    most = max(widths) if padding_width is None else to_integer(padding_width, f"{shown} with the padding_width")
    if not widths or min(widths) < 1 or most < 1:
        raise _refusals.TraceError(f"{shown} with ngram_width={ngram_width!r}, padding_width={padding_width!r}", "widths of at least 1")
    left, right = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) or pad_values is None else pad_values
    found = []
    for width in widths:
        padding, x = min(width - 1, most), data
        if pad_values is not None and padding:
            sizes = [*sizes_of(data)[:-1], padding]
            before, behind = (broadcast_to(np.array([_text(pad)] * padding, object), sizes) for pad in (left, right))
            x = np.concatenate([before, x, behind], axis=-1)
        # Of nothing there is none, whatever stands around it.
        count = np.maximum(np.shape(x)[-1] - (width - 1), 0) * (np.shape(data)[-1] > 0)
        found.append(join([x[..., i : i + count] for i in range(width)], separator))
    return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


def reduce_join(inputs: Any, axis: Any = None, keepdims: Any = False, separator: Any = "", name: Any = None) -> Tensor:
    """The strings along an axis, or along several one after another, as one, as tf.strings.reduce_join; by default all of them."""
    if axis is None:
        return _call("reduce_join", inputs, None, bool(keepdims), separator)
    axes = [counted_from_last(each, inputs.ndim, "penstock.strings.reduce_join") for each in (axis if isinstance(axis, (tuple, list)) else [axis])]
    for each in axes:
        inputs = _call("reduce_join", inputs, each, True, separator)
    return inputs if keepdims else np.squeeze(inputs, tuple(axes))


def regex_full_match(input: Any, pattern: Any, name: Any = None) -> Tensor:
    """Whether the whole of it is as `pattern` says, bool, as tf.strings.regex_full_match; RE2's syntax."""
    return _call("regex_full_match", input, pattern)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: Any = True, name: Any = None) -> Tensor:
    """With `rewrite` where `pattern` matches, as tf.strings.regex_replace; \\\\1 to \\\\9 are groups; RE2's syntax."""
    return _call("regex_replace", input, pattern, rewrite, bool(replace_global))


def to_hash_bucket(input: Any, num_buckets: Any, name: Any = None) -> Tensor:
    """Which of num_buckets it falls into, int64, as tf.strings.to_hash_bucket of TensorFlow 2.21; to_hash_bucket_fast stays the same."""
    return _call("string_to_hash_bucket", input, num_buckets)


def to_hash_bucket_strong(input: Any, num_buckets: Any, key: Any, name: Any = None) -> Tensor:
    """The same by SipHash with a key of two integers, as tf.strings.to_hash_bucket_strong."""
    return _call("string_to_hash_bucket_strong", input, num_buckets, [int(part) for part in key])


def to_hash_bucket_fast(input: Any, num_buckets: Any, name: Any = None) -> Tensor:
    """Which of num_buckets it falls into, int64, as tf.strings.to_hash_bucket_fast: the same on every machine."""
    return _call("string_to_hash_bucket_fast", input, num_buckets)


def unicode_decode(input: Any, input_encoding: Any = "UTF-8", errors: Any = "replace", name: Any = None) -> Tensor:
    """Its code points, int32, shape (n,), as tf.strings.unicode_decode, with errors "replace", "ignore" or "strict"."""
    _refuse_all_but_utf8(input_encoding)
    return _call("unicode_decode", input, errors)


def unicode_split(input: Any, input_encoding: Any = "UTF-8", errors: Any = "replace", name: Any = None) -> Tensor:
    """Its characters, each a string, shape (n,), as tf.strings.unicode_split."""
    _refuse_all_but_utf8(input_encoding)
    return _call("unicode_split", input, errors)


def lookup(input: Any, vocabulary: Any, default: Any = None) -> Tensor:
    """Which of the words it is, int64, from 0 on: what a StaticVocabularyTable and Keras' StringLookup are for.

    Args:
      vocabulary: a list or an array of texts that differ.
      default: the number of every other text; None makes it an error of its record.
    """
    words = [_text(word) for word in (vocabulary.tolist() if hasattr(vocabulary, "tolist") else vocabulary)]
    return _call("string_lookup", input, vocabulary=_constants.vocabulary(words), **({} if default is None else {"default": int(default)}))


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _refuse_all_but_utf8(encoding):
    if encoding.upper().replace("_", "-") not in ("UTF-8", "UTF8"):
        raise _refusals.TraceError(f"input_encoding={encoding!r}", "texts are UTF-8 here")


def _refuse_encoding(encoding):
    if encoding:
        raise _refusals.TraceError(f"encoding={encoding!r}", "only letters of ASCII have another case here")


def __dir__():
    return sorted(__all__)
