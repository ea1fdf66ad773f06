"""Notes that a long test has been run: a line of JSON each in tests/campaigns.jsonl, which is committed.

    {"campaign": "crash", "date": "2026-11-28", "commit": "8895fcdf", "count": 1000, "unit": "kills", "seconds": 1710, "found": "nothing", …}

What a campaign is called and counts is its own matter; a commit ends with "+" where the tree had changes that were not committed.
"""

import datetime
import json
import pathlib
import subprocess

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
