"""Writes tar_samples.inc: small tar files, and the samples that webdataset makes of each.

Run by hand, with a Python that has webdataset:  python tests/golden/make_tar_goldens.py

A case is an archive, as the hexadecimal digits of its gzip, and its samples: key, and each member's extension and bytes as hexadecimal digits. The
archives are written by Python's tarfile in its three formats, and by hand where tarfile writes no such thing.
"""

import gzip
import io
import json
import pathlib
import struct
import tarfile

import webdataset

FOLDER = pathlib.Path(__file__).parent
SAMPLES = [("00{:02}".format(i), [("jpg", bytes([i]) * (i * 97 % 1500)), ("cls", str(i).encode())]) for i in range(12)]


def archive(members, format=tarfile.USTAR_FORMAT, pax=None):
    """Of members: (name, data), or a TarInfo without data."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format, pax_headers=pax) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                name, data = member
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def flat(samples):
    return [(f"{key}.{extension}", data) for key, members in samples for extension, data in members]


def other(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def by_hand(name, data, size=None, kind=b"0", magic=b"ustar\x0000"):
    """One member, with a size field of its own."""
    field = size if size is not None else b"%011o\0" % len(data)
    head = bytearray(struct.pack("100s8s8s8s12s12s8sc100s8s", name, b"0000644\0", b"0" * 7 + b"\0", b"0" * 7 + b"\0", field, b"0" * 11 + b"\0",
                                 b" " * 8, kind, b"", magic).ljust(512, b"\0"))
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


def signed_sum(block):
    """The header as programs wrote it that took bytes for signed."""
    block = bytearray(block)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % (sum(b - 256 if b > 127 else b for b in block) & 0o777777)
    return bytes(block)


LONG = "folder/" + "n" * 120 + "/" + "k" * 130
PREFIX = "p" * 60 + "/" + "q" * 60 + "/0001"
ODD = [
    ("plain", b"no extension"),
    ("0001.JPG", b"upper"), ("0001.Seg.PNG", b"two dots"), ("0001.", b"empty extension"),
    ("a.b/0002.jpg", b"a dot in the folder"), ("a.b/0002", b"none"), ("a.b/0002.cls", b"2"),
    (".hidden.jpg", b"h"), ("dir/.hidden.jpg", b"key is the folder"), ("d.ir/.hidden.jpg", b"none"), ("//.x", b"slashes"), ("/.y", b"root"),
    ("__meta__/info.json", b"{}"), ("__notes__.txt", b"kept or not"), ("__x__", b"meta"), ("dir/__y__.txt", b"kept"),
    ("0003.txt", b""), ("0004.txt", b"x" * 512), ("0005.txt", b"y" * 513),
    ("0003.txt", b"a key that comes again"),
    ("übung.jpg", "ü".encode()),
]
OTHERS = [("0001.jpg", b"1"), other("0001", tarfile.DIRTYPE), other("0001.lnk", tarfile.SYMTYPE, "0001.jpg"), ("0001.cls", b"one"),
          other("0002.hard", tarfile.LNKTYPE, "0001.jpg"), other("fifo.x", tarfile.FIFOTYPE), ("0002.jpg", b"2"), other("0002.dev", tarfile.CHRTYPE)]
ARCHIVES = {
    "ustar": archive(flat(SAMPLES)),
    "gnu": archive(flat(SAMPLES), tarfile.GNU_FORMAT),
    "pax": archive(flat(SAMPLES), tarfile.PAX_FORMAT),
    "no samples": archive([]),
    "ustar prefix": archive([(f"{PREFIX}.jpg", b"j"), (f"{PREFIX}.cls", b"c")]),
    "gnu long names": archive([(f"{LONG}.jpg", b"j" * 600), (f"{LONG}.cls", b"c"), ("short.cls", b"d")], tarfile.GNU_FORMAT),
    "pax long names": archive([(f"{LONG}.jpg", b"j" * 600), (f"{LONG}.cls", b"c"), ("short.cls", b"d")], tarfile.PAX_FORMAT),
    "pax, a header for all": archive(flat(SAMPLES[:2]), tarfile.PAX_FORMAT, pax={"comment": "for all"}),
    "gnu long link": archive([("0001.jpg", b"1"), other("0001.x", tarfile.SYMTYPE, LONG), ("0001.cls", b"2")], tarfile.GNU_FORMAT),
    "odd names": archive(ODD, tarfile.PAX_FORMAT),
    "other members": archive(OTHERS),
    "binary size": by_hand(b"0001.jpg", b"z" * 700, size=b"\x80" + (700).to_bytes(11, "big")) + by_hand(b"0001.cls", b"1") + bytes(1024),
    "size with spaces": by_hand(b"0001.jpg", b"z" * 9, size=b"        11 \0"[:12]) + bytes(1024),
    "old, without a mark": by_hand(b"0001.jpg", b"v7", kind=b"\0", magic=b"") + by_hand(b"folder.x/", b"", kind=b"\0", magic=b"") + bytes(1024),
    "sums of signed bytes": signed_sum(by_hand("ü.jpg".encode(), b"s")[:512]) + b"s".ljust(512, b"\0") + bytes(1024),
    "contiguous": by_hand(b"0001.jpg", b"c", kind=b"7") + bytes(1024),
    "no zeros at the end": by_hand(b"0001.jpg", b"1") + by_hand(b"0002.jpg", b"2"),
    "more behind the end": archive(flat(SAMPLES[:2])) + archive(flat(SAMPLES[2:4])),
}


def samples_of(data):
    files = webdataset.tariterators.tar_file_iterator(io.BytesIO(data))
    found = []
    for sample in webdataset.tariterators.group_by_keys(dict(file, __url__="") for file in files):
        members = [(name, value.hex()) for name, value in sample.items() if not name.startswith("__") or name not in ("__key__", "__url__")]
        found.append((sample["__key__"], members))
    return found


def main():
    cases = []
    for name, data in ARCHIVES.items():
        packed = gzip.compress(data, mtime=0).hex()
        cases.append({"name": name, "gzip": packed, "samples": samples_of(data)})
    quoted = lambda text: json.dumps(text, ensure_ascii=False)  # noqa: E731
    lines = ["// Made by tests/golden/make_tar_goldens.py."]
    for case in cases:
        lines.append(f"{{{quoted(case['name'])},")
        digits = case["gzip"]
        lines += [f' "{digits[at:at + 120]}"' for at in range(0, len(digits), 120)]
        lines[-1] += ","
        lines.append(" {")
        for key, members in case["samples"]:
            inner = ", ".join(f'{{{quoted(extension)}, "{value}"}}' for extension, value in members)
            lines.append(f"  {{{quoted(key)}, {{{inner}}}}},")
        lines.append(" }},")
    (FOLDER / "tar_samples.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
