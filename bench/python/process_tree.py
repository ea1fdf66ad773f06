"""Processor time and memory of this process and of all that descend from it: trainer, daemon, workers."""

import os
import pathlib
import time


def processes():
    """The ids of this process and of its living descendants."""
    children = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(folder.name)
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [os.getpid()]
    for process in found:
        found.extend(children.get(process, ()))
    return found


def cpu_seconds():
    """User and system time, of descendants that have ended too."""
    total = 0.0
    for process in processes():
        try:
            # The clock of a process' processor time (Linux' MAKE_PROCESS_CPUCLOCK), of all its threads, in nanoseconds.
            total += time.clock_gettime(~process << 3 | 2)
        except OSError:
            continue  # it has ended meanwhile
        fields = _stat(process)
        if fields:
            total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total


def memory_bytes():
    """Memory that is in use, each page once (proportional set sizes added up)."""
    total = 0
    for process in processes():
        try:
            text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
    return total


def _stat(process):
    """What stands behind the name in man 5 proc's stat, from the state on; nothing of one that has ended."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
