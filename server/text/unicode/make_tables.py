"""Writes the Unicode tables beside it (*.inc) as the library `tokenizers` has them.

Its parts use several versions of Unicode. So each table is asked of the part itself, code point by code point, and not taken from a version of
the standard. `python make_tables.py` needs `pip install tokenizers` and no more; the tables in the tree are those of tokenizers 0.23.3, and
tiktoken 0.14.0 has the same classes.
"""

import pathlib
import struct
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
BLOCK = 4096


def matched(pattern):
    """The code points that a regular expression matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    result = set()
    for i in range(0, len(CODE_POINTS), BLOCK):
        block = CODE_POINTS[i : i + BLOCK]
        left = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, block))) for c in piece}
        result.update(c for c in block if c not in left)
    return result


def write(name, comment, lines):
    text = [f"// {line}" for line in ["Written by make_tables.py.", comment]]
    line = ""
    for entry in lines:
        if len(line) + len(entry) + 1 > 138:
            text.append(line)
            line = ""
        line += (" " if line else "") + entry
    if line:
        text.append(line)
    (HERE / name).write_text("\n".join(text) + "\n")


def write_ranges(name, comment, class_of):
    """Pairs of a code point and the class that holds from it on."""
    lines, last = [], None
    for c in range(0x110000):
        now = class_of(c)
        if now != last:
            lines.append(f"{{{c:#x}, {now}}},")
            last = now
    write(name, comment, lines)


def classes():
    names = [("kUpper", r"[\p{Lu}\p{Lt}]"), ("kLower", r"\p{Ll}"), ("kOtherLetter", r"[\p{Lm}\p{Lo}]"), ("kMark", r"\p{M}"),
             ("kNumber", r"\p{N}"), ("kSpace", r"\s")]
    sets = [(name, matched(pattern)) for name, pattern in names]
    write_ranges("classes.inc", "From which code point on which class holds.",
                 lambda c: next((name for name, members in sets if c in members), "kOther"))


def flags():
    """What normalisers and pre-tokenisers ask of a code point, as bits."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    chinese = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    accents = normalizers.StripAccents()
    punctuation = pre_tokenizers.Punctuation("removed")
    bert = pre_tokenizers.BertPreTokenizer()
    blank = pre_tokenizers.WhitespaceSplit()
    digits = pre_tokenizers.Digits(individual_digits=False)
    words = pre_tokenizers.Whitespace()
    strip = normalizers.Strip()

    def parts(tokenizer, text):
        return [piece for piece, _ in tokenizer.pre_tokenize_str(text)]

    def of(c):
        text = "x" + chr(c) + "x"
        bits = 0
        cleaned = clean.normalize_str(text)
        if cleaned == "xx":
            bits |= 1
        elif cleaned == "x x":
            bits |= 2
        if len(chinese.normalize_str(text)) == 5:
            bits |= 4
        if accents.normalize_str(text) == "xx":
            bits |= 8
        if parts(punctuation, text) == ["x", "x"]:
            bits |= 16
        if parts(blank, text) == ["x", "x"]:
            bits |= 32
        if len(parts(digits, text)) == 3:
            bits |= 64
        if parts(words, text) == [text]:
            bits |= 128
        assert (parts(bert, text) == ["x", "x"]) == bool(bits & 32), hex(c)
        assert (len(parts(bert, text)) == 3) == bool(bits & 16), hex(c)
        assert (strip.normalize_str(chr(c)) == "") == bool(bits & 32), hex(c)
        return bits

    table = {c: of(c) for c in CODE_POINTS}
    write_ranges("flags.inc", "From which code point on which flags hold.", lambda c: table.get(c, 0))


def nonspacing():
    """Which marks BertNormalizer removes: fewer than StripAccents does."""
    strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    removed = set()
    for i in range(0, len(CODE_POINTS), BLOCK):
        block = [c for c in CODE_POINTS[i : i + BLOCK] if c != ord("\n")]
        lines = strip.normalize_str("\n".join("x" + chr(c) + "x" for c in block)).split("\n")
        removed.update(c for c, line in zip(block, lines, strict=True) if line == "xx")
    write_ranges("nonspacing.inc", "From which code point on BertNormalizer removes marks, 1, or leaves them, 0.", lambda c: int(c in removed))


def mappings(name, comment, of):
    lines = []
    for c in CODE_POINTS:
        to = of(chr(c))
        if to != chr(c):
            text = "".join(f"\\U{ord(x):08x}" if ord(x) > 0xFFFF else f"\\u{ord(x):04x}" if ord(x) >= 0xA0 else f"\\x{ord(x):02x}\" \"" for x in to)
            lines.append(f'{{{c:#x}, "{text}"}},')
    write(name, comment, lines)


def normal_forms():
    nfd, nfkd, nfc = normalizers.NFD(), normalizers.NFKD(), normalizers.NFC()
    hangul = range(0xAC00, 0xD7A4)

    def canonical(x):
        return x if ord(x) in hangul else nfd.normalize_str(x)

    mappings("canonical.inc", "Canonical decompositions in full, but for Hangul.", canonical)
    mappings("compatible.inc", "Compatibility decompositions in full where they differ from the canonical ones.",
             lambda x: x if nfkd.normalize_str(x) == nfd.normalize_str(x) else nfkd.normalize_str(x))
    # The class of a mark tells itself by what it is put in front of: U+0334 has 1, and so on.
    def combining(c):
        x = chr(c)
        number = unicodedata.combining(x)
        if nfd.normalize_str(x) != x:
            return unicodedata.combining(nfd.normalize_str(x)) if len(nfd.normalize_str(x)) == 1 else 0
        # It would stand before U+0345, of the highest class, or behind U+0334, of the lowest.
        moves = nfd.normalize_str("a\u0345" + x) != "a\u0345" + x or nfd.normalize_str("a" + x + "\u0334") != "a" + x + "\u0334"
        if not moves:
            return 0
        # A mark that is newer than Python's table counts as most marks do.
        return number or 230

    marks = matched(r"\p{M}")
    table = {c: combining(c) for c in CODE_POINTS if c in marks}
    write_ranges("combining.inc", "From which code point on which combining class holds.", lambda c: table.get(c, 0))
    pairs = []
    for c in CODE_POINTS:
        x = chr(c)
        if c in hangul or nfd.normalize_str(x) == x or nfc.normalize_str(x) != x:
            continue
        full = nfd.normalize_str(x)
        if len(full) < 2:
            continue
        first = nfc.normalize_str(full[:-1])
        assert len(first) == 1, hex(c)
        pairs.append((ord(first), ord(full[-1]), c))
    write("composed.inc", "Which two code points are composed to which.", [f"{{{a:#x}, {b:#x}, {c:#x}}}," for a, b, c in sorted(pairs)])


def byte_map(keys):
    """A precompiled map that replaces each text that begins with one of these bytes by "Q", so that a cluster that it takes as a whole becomes one."""
    root, leaf = 0x100, 0x200
    units = [0] * (leaf + 0x100)
    units[0] = root << 10
    for byte in keys:
        units[root ^ byte] = byte | 1 << 8 | (root ^ byte ^ leaf) << 10
    units[leaf] = 1 << 31
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + b"Q\0"


def clusters():
    """Where extended grapheme clusters end. The map takes those below 6 bytes as a whole, and the characters of others one by one: so what is put around a code
    point shows by the number of Q whether it is joined."""
    short = normalizers.Precompiled(byte_map([ord("a"), *range(0x80, 0x100)]))
    # Of 2 bytes: a mark, and a sign that is joined to what follows. Of 3 bytes the others.
    mark, prepended, smile, joiner, ka, virama, leading, vowel, trailing = "\u0301\u0600\u263a\u200d\u0915\u094d\u1100\u1161\u11a8"

    def joined(points, before, behind, count):
        """Those with so many Q."""
        result = set()
        points = sorted(points)
        for i in range(0, len(points), BLOCK):
            block = points[i : i + BLOCK]
            lines = short.normalize_str("\n".join(before + chr(c) + behind for c in block)).split("\n")
            result.update(c for c, line in zip(block, lines, strict=True) if len(line) == count)
        return result

    every = [c for c in CODE_POINTS if c >= 0x80]
    control = joined(every, prepended * 2, "", 2)
    prepend = joined(every, "", "a", 1)
    attached = joined(every, "a", "", 1) - {ord(joiner)}
    extend = joined(attached, smile, joiner + smile + mark, 5)
    linker = joined(extend, ka, ka + mark, 4)
    in_conjunct = joined(extend, ka, virama + ka + mark, 5)
    others = set(every) - control - prepend - attached - {ord(joiner)}
    pictograph = joined(others, "", joiner + smile + mark, 4)
    consonant = joined(others, "", virama + ka + mark, 4)
    before_leading, before_vowel, before_trailing = (joined(others, "", x + mark, 3) for x in (leading, vowel, trailing))
    behind_vowel = joined([c for c in others if c < 0x10000], vowel, mark, 3)
    syllables = set(range(0xAC00, 0xD7A4))
    assert syllables.isdisjoint(behind_vowel) and before_leading.isdisjoint(before_trailing)
    assert {c for c in syllables if c in before_vowel} == {c for c in syllables if (c - 0xAC00) % 28 == 0}
    regional = set(range(0x1F1E6, 0x1F200))  # pairs of them are too long for the map to tell
    sets = {
        "kControl": control | {*range(0x20), 0x7F}, "kPrepend": prepend, "kJoiner": {ord(joiner)}, "kLinker": linker, "kInConjunct": in_conjunct,
        "kExtend": extend, "kSpacing": attached, "kSyllable": syllables, "kLeading": before_leading, "kVowel": before_vowel, "kTrailing": before_trailing,
        "kRegional": regional, "kPictograph": pictograph, "kConsonant": consonant,
    }  # fmt: skip
    write_ranges("clusters.inc", "From which code point on which class of clusters holds.",
                 lambda c: next((name for name, members in sets.items() if c in members), "kNoCluster"))


def lowercase():
    lower = normalizers.Lowercase()
    mappings("lowercase.inc", "What code points are in lower case.", lower.normalize_str)


if __name__ == "__main__":
    for table in (classes, flags, nonspacing, normal_forms, lowercase, clusters):
        if len(sys.argv) == 1 or table.__name__ in sys.argv[1:]:
            table()
