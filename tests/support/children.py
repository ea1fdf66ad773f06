"""The processes that a process has started."""

import os


def children_of(process):
    """The numbers of its children, of all its threads, oldest first; none where it has gone."""
    found = []
    try:
        tasks = os.listdir(f"/proc/{process}/task")
    except FileNotFoundError:
        return found
    for task in tasks:
        try:
            with open(f"/proc/{process}/task/{task}/children") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has just ended
    return sorted(found)


def name_of(process):
    """The name of its program, of 15 letters at most; None where it has gone."""
    try:
        with open(f"/proc/{process}/comm") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
