"""Sides by turns, and what a line of JSON says of two of them."""

import statistics
import sys


def log(text):
    print(text, file=sys.stderr, flush=True)


def by_turns(what, takes, runs):
    """Runs all sides once in each turn, every other turn backwards, since whoever comes later finds the machine warmer.

    Args:
      what: the case, for messages.
      takes: a dict from sides to functions without arguments that give a result, a dict of numbers.

    Returns:
      A dict from sides to their results, one for each turn; a side that has failed is None, and has been told of.
    """
    results = {side: [] for side in takes}
    for run in range(runs):
        for side, take in list(takes.items())[:: 1 if run % 2 == 0 else -1]:
            if results[side] is None:
                continue
            try:
                results[side].append(take())
            except (RuntimeError, OSError, ValueError) as error:
                log(f"FAILED: {what}, {side}: {error}")
                results[side] = None
                continue
            figures = ", ".join(f"{name} {value:,.4g}" for name, value in results[side][-1].items())
            log(f"{what} {run + 1}/{runs} {side}: {figures}")
    return results


def median(results, field):
    return statistics.median(result[field] for result in results)


def spread(values):
    """The median and the extremes of ratios, as fields."""
    return {"ratio": round(statistics.median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3)}


def ratios(field, ours, theirs):
    """Ours / theirs, turn by turn."""
    return [a[field] / b[field] for a, b in zip(ours, theirs)]


def over(ours, loop):
    """Microseconds of processor time an element beyond the loop's: the median over the turns."""
    return round(statistics.median(a["cpu_s_per_million"] - b["cpu_s_per_million"] for a, b in zip(ours, loop)), 2)
