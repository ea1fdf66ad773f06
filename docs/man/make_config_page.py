"""Makes penstockd.textproto.5, the manual page of the daemon's settings, from the comments of server.proto.

    python docs/man/make_config_page.py proto/penstock/v1/server.proto > docs/man/penstockd.textproto.5
"""

import re
import sys

_HEAD = r""".TH PENSTOCKD.TEXTPROTO 5 "" "Penstock" "File formats"
.SH NAME
penstockd.textproto \- settings of penstockd
.SH DESCRIPTION
A file in Protobuf's text format: fields as
.BR "name: value" ,
messages in braces, comments from # to the end of the line. Unknown fields are errors.
.B penstockd \-\-config FILE \-\-check\-config
checks a file and prints it complete.
.SH FIELDS
"""


def escape(text):
    text = text.replace("\\", "\\e").replace("-", r"\-")
    return r"\&" + text if text[:1] in (".", "'") else text


def blocks(proto):
    """Each message or enum: its name, its comment, and its (name, type, comment) fields."""
    comment, found = [], []
    for line in proto.splitlines():
        line = line.strip()
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        if match := re.match(r"(message|enum) (\w+)", line):
            found.append((match[2], " ".join(comment), []))
        elif match := re.match(r"(?:(repeated|optional) )?(\w+) (\w+) = \d+;", line):
            kind = match[2] + (", repeated" if match[1] == "repeated" else "")
            found[-1][2].append((match[3], kind, " ".join(comment)))
        elif match := re.match(r"(\w+) = \d+;", line):
            found[-1][2].append((match[1], "", " ".join(comment)))
        comment = []
    return found


def page(proto):
    out = _HEAD
    for name, comment, fields in blocks(proto):
        if name != "DaemonConfig":
            out += f".SS {name}\n"
        out += (escape(comment) + "\n") if comment else ""
        for field, kind, text in fields:
            if field.endswith("_UNSPECIFIED"):
                continue
            out += f".TP\n.B {escape(field)}" + (rf" \fR({escape(kind)})" if kind else "") + "\n"
            out += (escape(text) or r"\&") + "\n"
    return out + ".SH SEE ALSO\n.BR penstockd (8)\n"


if __name__ == "__main__":
    sys.stdout.write(page(open(sys.argv[1]).read()))
