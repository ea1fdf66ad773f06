"""Notes that a long test has been run: a line of JSON each in tests/campaigns.jsonl, which is committed.

    {"campaign": "crash", "date": "2026-11-28", "commit": "8895fcdf", "count": 1000, "unit": "kills", "seconds": 1710, "found": "nothing", …}

What a campaign is called and counts is its own matter; a commit ends with "+" where the tree had changes that were not committed.
"""

import datetime
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

_ROOT = pathlib.Path(__file__).parent.parent.parent
FILE = _ROOT / "tests" / "campaigns.jsonl"


def _git(*words):
    done = subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def note(campaign, count, unit, seconds, file=FILE, **more):
    """Appends the line, and returns it."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{FILE.relative_to(_ROOT)}")
    line = json.dumps({
        "campaign": campaign,
        "date": datetime.date.today().isoformat(),
        "commit": (_git("rev-parse", "--short=8", "HEAD") or "unknown") + ("+" if changed else ""),
        "count": count,
        "unit": unit,
        "seconds": round(seconds),
        **more,
    })
    with open(file, "a") as lines:
        lines.write(line + "\n")
    return line


def add_options(parser):
    """What run() reads: --seed, --keep and --campaign."""
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the folder of logs")
    parser.add_argument("--campaign", action="store_true", help="note it in tests/campaigns.jsonl")


def run(arguments, campaign, count, unit, loop):
    """Runs loop(seed, folder), which returns the seconds that it took and what the note says besides; prints the seed, and the folder where it fails.

    Args:
      loop: its folder is a new one in /tmp, of a short name, as sockets may lie there.
    """
    seed = arguments.seed if arguments.seed is not None else struct.unpack("<I", os.urandom(4))[0]
    print(f"seed {seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-crash-", dir="/tmp"))
    try:
        seconds, found = loop(seed, folder)
    except BaseException:
        print(f"failed with seed {seed}; logs in {folder}", flush=True)
        raise
    if arguments.campaign:
        print(note(campaign, count, unit, seconds, **found, seed=seed))
    if not arguments.keep:
        shutil.rmtree(folder)
