"""Turns the JSON lines of `./dev bench peers` into the table of docs/benchmarks.md.

    ./dev bench peers > results.jsonl; python bench/peers/table.py results.jsonl docs/benchmarks.md

Without a page the table is printed.
"""

import json
import pathlib
import re
import sys

MARKS = "<!-- bench:begin -->", "<!-- bench:end -->"


def table(lines):
    rates, others = [], []
    for line in lines:
        r = json.loads(line)
        if "peer" in r:
            rates.append(f"| {r['case']} | {r['peer']} | {r['ours']:,} | {r['theirs']:,} | {r['ratio']:.2f} ({r['min']:.2f} … {r['max']:.2f}) | "
                         f"{r['ours_cpu_s_per_million']:.3g} | {r['theirs_cpu_s_per_million']:.3g} |")
        elif r["case"] == "handover_12MiB":
            others.append(f"| handing a ready batch of 12 MiB to a Python consumer, CPU of both sides | {r['cpu_us_per_batch']} µs |")
        elif r["case"] == "augmentation":
            others.append(f"| CPU of flowers with flip, crop, brightness and contrast over flowers | {r['cpu_ratio']} |")
        elif r["case"] == "first_batch":
            others.append(f"| from `penstock run` to the first batch of chess, warm files | {r['seconds']} s |")
        elif r["case"] == "memory":
            others.append(f"| the daemon's peak memory beyond ring, shuffle cells and read buffers | {r['over_mib']} MiB |")
            if "with_maps_mib" in r:
                others.append(f"| the same with the page cache's memory of the shards, which it keeps mapped | {r['with_maps_mib']} MiB |")
    return "\n".join([
        "| case | peer | Penstock, examples/s | peer, examples/s | ratio (least … most) | Penstock, CPU s per million | peer, CPU s per million |",
        "|---|---|---|---|---|---|---|", *rates, "", "| what else | |", "|---|---|", *others])


def main():
    text = table(line for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line.startswith("{"))
    if len(sys.argv) < 3:
        print(text)
        return
    page = pathlib.Path(sys.argv[2])
    between = re.compile(re.escape(MARKS[0]) + ".*" + re.escape(MARKS[1]), re.DOTALL)
    page.write_text(between.sub(lambda _: f"{MARKS[0]}\n\n{text}\n\n{MARKS[1]}", page.read_text()))


if __name__ == "__main__":
    main()
