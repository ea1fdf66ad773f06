"""Writes corpus/NAME of the fuzz targets whose inputs are made from their formats' definitions alone.

    make_corpus.py
"""

import base64
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile
import zlib

import numpy

_TREE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(_TREE / "tests" / "e2e"))

from tfrecord_files import crc32c, example, framed  # noqa: E402

CORPUS = pathlib.Path(__file__).parent / "corpus"


def arrow():
    """Small ones of pyarrow's."""
    for name in ("dictionaries_delta", "dictionaries_zstd", "feather", "lists_nulls", "lists_zstd", "no_rows", "nulls", "numbers_lz4", "structs_nulls", "texts_zstd"):
        yield name, (_TREE / "tests" / "golden" / "arrow" / f"{name}.arrow").read_bytes()


def attach():
    """As attach_fuzz.cc reads them: bytes as they are behind 0; behind 1 a place of a right request, two bytes, and what stands there."""

    def changed(*places):
        return b"\x01" + b"".join(struct.pack("<HB", place, byte) for place, byte in places)

    yield "right", b"\x01"
    yield "other_version", changed((8, 99))
    yield "probe", changed((16, 5))
    yield "rank", changed((256, 1), (260, 1), (264, 2))
    yield "holds", changed((304, 10), (308, 2), (312, 1))
    yield "too_much", changed((304, 255), (306, 255))
    yield "http", b"\x00PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield "begun", b"\x00PNSTKATT" + struct.pack("<II", 4, 2560)


def deflate():
    """The first byte: 1 of gzip, 0 of zlib, and the sizes of pieces."""
    text = b"".join(b"%d bottles " % n for n in range(300))
    one = gzip.compress(text, mtime=0)
    yield "gzip", b"\x31" + one
    yield "gzip_members", b"\x01" + one + gzip.compress(b"", mtime=0) + gzip.compress(text[:50], mtime=0)
    yield "gzip_padded", b"\x5f" + one + bytes(40)
    yield "gzip_trailer", b"\x31" + one[:-5] + b"\x00" + one[-4:]
    yield "zlib", b"\x30" + zlib.compress(text)
    yield "zlib_stored", b"\x0e" + zlib.compress(text, 0)


def examples():
    yield "scalars", example(d=b"bytes", s=7, f=[1.5, -2.0])
    yield "lists", example(D=[b"", b"a", b"bc"], S=[1, -1, 1 << 40], F=[0.0, 3.25, 1e30])
    yield "all", example(d=b"x", s=-5, f=[0.0, 1.0], D=[b"one"], S=[300], F=[2.0], other=[b"no", b"more"])
    # A key twice, and a list in two runs.
    runs = b"\x1a\x07" + b"\x0a\x02\x01\x02" + b"\x0a\x01\x03"
    entry = b"\x0a\x01S" + b"\x12" + bytes([len(runs)]) + runs
    features = 2 * (b"\x0a" + bytes([len(entry)]) + entry)
    yield "runs", b"\x0a" + bytes([len(features)]) + features


def index_file():
    """As io/record/index_file.h draws it."""

    def index(offsets, damages=(), data_bytes=1000, version=2):
        head = struct.pack("<8sIIQqQIIQQ", b"PENSTIX\n", version, 1, data_bytes, 0, 0, 0, 0, len(offsets), len(damages))
        if version > 1:
            head += struct.pack("<QqQ", 0, 0, 0)
        body = head + b"".join(struct.pack("<QQQ", *damage) for damage in damages) + struct.pack(f"<{len(offsets)}Q", *offsets)
        return body + struct.pack("<I", crc32c(body))

    yield "records", index([0, 100, 116, 800])
    yield "damages", index([0, 500], [(100, 400, 1), (900, 100, 2)])
    yield "none", index([], data_bytes=0)
    yield "overlap", index([0, 10, 990])
    yield "version_1", index([0, 500], [(100, 400, 1), (900, 100, 2)], version=1)

    def packed(lines, num_records, wide=(), damages=(), data_bytes=1000):
        head = struct.pack("<8sIIQqQIIQQ", b"PENSTIX\n", 3, 1, data_bytes, 0, 0, 0, 0, num_records, len(damages))
        head += struct.pack("<QqQQQQ16x", 0, 0, 0, 0, data_bytes, len(wide))
        body = head + b"".join(struct.pack("<Q28H", base, *distances) for base, distances in lines)
        body += struct.pack(f"<{len(wide)}Q", *wide) + b"".join(struct.pack("<QQQ", *damage) for damage in damages)
        return body + struct.pack("<I", crc32c(body))

    near = [20 * i for i in range(28)]
    yield "lines", packed([(0, near), (600, near)], 40, damages=[(900, 100, 2)])
    yield "wide", packed([(0, near), (1 << 63, [0] * 28)], 31, wide=[600, 800, 70000], data_bytes=100000)


def jpeg():
    """The last five bytes choose options and a window."""
    for name, options in (("grey", b"\x00\x05\x06\x02\x01"), ("rgb_420_odd", b"\x0c\x03\x03\x01\x01"), ("rgb_exif_rotated", b"\x03\x07\x02\x00\x05"), ("cmyk", b"\x04\x01\x01\x01\x01")):
        yield name, (_TREE / "tests" / "golden" / "images" / f"{name}.jpg").read_bytes() + options


def json_documents():
    """As json_fuzz.cc reads them: the first byte: 1 where bytes that are no UTF-8 are replaced."""
    yield "scalars", b'\x00{"a": -12, "b": {"s": "x\\u00e9\\ud83d\\ude42\\n"}}'
    yield "lists", b'\x00{"l": ["a", null, "b\\"c"], "v": [[1, 2.5], [NaN, -0]], "m": [{"r": [1, 2]}, {}, {"r": []}]}'
    yield "twice", b'\x00{"a": 1, "a": 2, "b": {"s": "1"}, "b": {}, "\\u0061": 3}'
    yield "other", b'\x00\xef\xbb\xbf {"x": [{}, [], true, false, null, 1e400], "a": "7"}\r\n'
    yield "any_bytes", b'\x01{"b": {"s": "a\xff\xe4\xb8\\ud800z"}}'
    yield "deep", b"\x00" + b'[{"a":' * 600 + b"1"
    yield "cut", b'\x00{"l": ["a\\'


def npz():
    def saved(save, *arguments, **arrays):
        file = io.BytesIO()
        save(file, *arguments, **arrays)
        return file.getvalue()

    numbers = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    yield "npy", saved(numpy.save, numbers)
    yield "npy_fortran", saved(numpy.save, numpy.asfortranarray(numbers))
    yield "npy_strings", saved(numpy.save, numpy.array([b"a", b"bcd"]))
    yield "stored", saved(numpy.savez, x=numbers, n=numpy.int64(5))
    yield "deflated", saved(numpy.savez_compressed, x=numbers, zeros=numpy.zeros(500, numpy.uint8))


def parquet():
    """Small ones of pyarrow's."""
    for name in ("few_none_v1", "few_none_v2", "few_snappy_v2", "few_lz4_v1", "few_gzip_v1", "few_zstd_v2", "list", "delta_texts", "dictionary_none_v2", "deltas_v1", "pages_v1"):
        yield name, (_TREE / "tests" / "golden" / "parquet" / f"{name}.parquet").read_bytes()


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def image(colour, depth, row_bytes, filters=(0, 1, 2, 3, 4), extra=b"", interlaced=0):
        rows = b"".join(bytes([kind, *(7 * (kind + i) % 251 for i in range(row_bytes))]) for kind in filters)
        header = struct.pack(">IIBBBBB", 4, len(filters), depth, colour, 0, 0, interlaced)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

    yield "grey", image(0, 8, 4)
    yield "grey_1", image(0, 1, 1)
    yield "rgb", image(2, 8, 12)
    yield "rgba_16", image(6, 16, 32)
    yield "palette", image(3, 8, 4, filters=(0, 0), extra=chunk(b"PLTE", bytes(range(251 * 3 % 256))[:189] + bytes(3 * 193)) + chunk(b"tRNS", b"\x00\x80"))
    yield "text", image(0, 8, 4, extra=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100_000))))


def record_frame():
    records = [framed(example(n=n)) for n in range(5)] + [framed(b""), framed(bytes(9000))]
    whole = b"".join(records)
    yield "records", whole
    yield "cut", whole[:-3]
    yield "data", whole[:20] + b"\xff" + whole[21:]
    yield "length", whole[:9] + b"\xff" + whole[10:]
    yield "too_long", records[0] + framed(b"short", length=1 << 40) + records[1]


def tokenizers():
    """As tokenizer_fuzz.cc reads them: a tokenizer's file, a zero byte, a text."""
    text = b"\0Hello  w\xc3\xb6rld's \xe4\xbd\xa0\xe5\xa5\xbd 12\n\n <x> \xff" + b"ab" * 60

    def file(model, **more):
        return json.dumps({"version": "1.0", **more, "model": model}, ensure_ascii=False).encode() + text

    letters = {chr(c): i for i, c in enumerate([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)])}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False}
    pairs = {"type": "BPE", "vocab": {**letters, "ab": 300, "aba": 301, "abab": 302}, "merges": ["a b", ["ab", "ab"], "ab a"]}
    yield "byte_level", file(pairs, pre_tokenizer=byte_level, decoder=byte_level)
    cut = {"type": "Split", "pattern": {"Regex": r"\p{L}+(?!x)"}, "behavior": "MergedWithNext"}
    yield "split", file(pairs, normalizer={"type": "NFKC"}, pre_tokenizer={"type": "Sequence", "pretokenizers": [cut, byte_level]})
    yield "word_piece", file({"type": "WordPiece", "vocab": {"[UNK]": 0, "hello": 1, "##s": 2, "w": 3}}, normalizer={"type": "BertNormalizer"},
                             pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece"},
                             post_processor={"type": "BertProcessing", "sep": ["s", 2], "cls": ["c", 1]}, truncation={"max_length": 5})
    yield "unigram", file({"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": [["<unk>", 0], ["\u2581", -1.5], ["ab", -2], ["a", -3], ["<0x31>", -4]]},
                          pre_tokenizer={"type": "Metaspace", "prepend_scheme": "first"}, decoder={"type": "Metaspace"})
    yield "added", file({"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}, pre_tokenizer={"type": "Whitespace"},
                        added_tokens=[{"id": 5, "content": "<x>", "lstrip": True, "rstrip": True, "special": True}, {"id": 6, "content": "w", "single_word": True}])
    # A map that replaces every character but those of ASCII, by "Q".
    root, leaf = 0x100, 0x200
    units = [root << 10, *[0] * 511, 1 << 31, *[0] * 255]
    for byte in range(0x80, 0x100):
        units[root ^ byte] = byte | 1 << 8 | (root ^ byte ^ leaf) << 10
    charsmap = struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + b"Q\0"
    yield "precompiled", file(pairs, normalizer={"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}, pre_tokenizer=byte_level)
    yield "ranks", b"".join(base64.b64encode(bytes([b])) + b" %d\n" % b for b in range(256)) + b"YWI= 256\nYWJhYg== 257\n" + text


def sentencepiece():
    """As sentencepiece_fuzz.cc reads them: the length of a text, the text, a model."""
    text = "Hello  wörld's 你好 12\n\n <x>ab\u200b e\u0301 \ud7ff abababab ".encode() + b"\xff" + b"ab" * 20

    def varint(number):
        return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)

    def part(number, body):
        return varint(number << 3 | 2) + varint(len(body)) + body

    def piece(content, score=-1.0, kind=1):
        return part(1, part(1, content.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind]))

    def model(pieces, trainer=b"", rules=b"", more=b""):
        return struct.pack("<H", len(text)) + text + piece("<unk>", 0, 2) + piece("<s>", 0, 3) + b"".join(pieces) + part(2, trainer) + part(3, rules) + more

    pieces = [piece(content, -i / 3) for i, content in enumerate(["▁", "ab", "a", "b", "abab", "▁w", "l", "ll", "▁Hell", "你好"])]
    every_byte = [piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)]
    # Two rules: "a" becomes "bb", "e" nothing. The root's children lie at units 0 XOR their bytes, their values in the next 256.
    units = [0] * 512
    units[ord("a")] = ord("a") | 1 << 8 | (ord("a") ^ 256) << 10
    units[256] = 1 << 31 | 1
    units[ord("e")] = ord("e") | 1 << 8 | (ord("e") ^ 257) << 10
    units[257] = 1 << 31
    charsmap = struct.pack("<I", 2048) + struct.pack("<512I", *units) + b"\0bb\0"
    yield "unigram", model([*pieces, piece("<x>", 0, 4)], b"\x18\x01", part(2, charsmap))
    yield "unigram_bytes", model(pieces + every_byte, b"\x18\x01\x98\x02\x01\xc0\x01\x01")
    yield "bpe", model([*pieces, piece("<x>", 0, 4)], b"\x18\x02", b"\x20\x00\x18\x00")
    yield "bpe_unused", model([*pieces, piece("aba", 0, 5), piece("bab", 0, 5), piece("ababab", 1, 5)], b"\x18\x02")
    yield "bpe_bytes", model(pieces + every_byte, b"\x18\x02\x98\x02\x01", b"\x28\x00", part(5, part(2, charsmap)))
    yield "words", model([piece("▁12")], b"\x18\x03")
    yield "characters", model(pieces, b"\x18\x04")


def release_page():
    """As release_page_fuzz.cc reads them: the kind of the hostile one, then acts of three bytes."""
    make, take, release, deal, tick, look = (bytes([128 + act, 0, 8]) for act in (0, 3, 4, 5, 6, 7))
    honest = (make + take + release + tick) * 3
    for kind, name in enumerate(("broadcast", "rank", "split")):
        lies = b"".join(bytes([part + 4 * value, word, 1]) for word in (0, 1, 16, 32) for part in range(4) for value in range(5))
        yield name, bytes([kind]) + honest + deal + lies[:90] + make + make + take + tick + lies[90:] + release + look + honest


def tar():
    def archive(members, format):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as written:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                written.addfile(info, io.BytesIO(data))
        # Of the zeros at the end two blocks are enough.
        return out.getvalue().rstrip(b"\0").ljust(512, b"\0")

    samples = [(f"{i}.{extension}", bytes([65 + i]) * (i * 300)) for i in range(4) for extension in ("jpg", "cls")]
    long_names = [("n" * 120 + ".jpg", b"data"), ("n" * 120 + ".cls", b"1")]
    whole = archive(samples, tarfile.USTAR_FORMAT)
    whole += bytes(-len(whole) % 512 + 1024)
    yield "ustar", whole
    yield "gnu", archive(long_names, tarfile.GNU_FORMAT)
    yield "pax", archive(long_names, tarfile.PAX_FORMAT)
    yield "damaged", whole[:1024 + 5] + b"\xff" + whole[1024 + 6:]
    yield "cut", whole[:2000]
    # What a cell holds (io/record/tar_cell.h): two members of the key "k".
    yield "cell", (b"\0tarcell" + struct.pack("<6I", 2, 1, 3, 4, 3, 1) + b"kbincls").ljust(64, b"\0") + b"data7" + b"what was there before"


def sound():
    """The smallest ones of each kind, whole and with a cut in the middle."""
    sounds = {case["name"]: base64.b64decode(case["file"]) for case in json.loads((_TREE / "tests" / "golden" / "sounds.json").read_text())["cases"]}
    for name in ("flac 8 mono", "flac of unknown length", "flac tagged", "opus mono", "vorbis mono", "mp3 of MPEG 2", "mp3 tagged", "mp3 varying without a count"):
        yield name.replace(" ", "_"), sounds[name]
    yield "flac_cut", sounds["flac 8 mono"][:400]


def lz4():
    """The plain size in three bytes, and a frame."""
    frames = {case["name"]: case for case in json.loads((_TREE / "tests" / "golden" / "lz4_frames.json").read_text())["cases"]}
    for name in ("nothing", "noise", "words, sums", "one byte again and again", "a pattern of 7, blocks alone", "long literals, thorough", "several blocks, blocks alone"):
        yield name.replace(",", "").replace(" ", "_"), struct.pack("<I", frames[name]["bytes"])[:3] + base64.b64decode(frames[name]["frame"])


def main():
    for name, seeds in {"arrow": arrow, "attach": attach, "deflate": deflate, "example": examples, "index_file": index_file, "jpeg": jpeg, "json": json_documents,
                        "lz4": lz4, "npz": npz, "parquet": parquet, "png": png, "record_frame": record_frame, "release_page": release_page, "sentencepiece": sentencepiece, "sound": sound, "tar": tar,
                        "tokenizer": tokenizers}.items():
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in seeds():
            (folder / seed).write_bytes(data)


if __name__ == "__main__":
    main()
