"""Pipelines on a machine of two NUMA nodes (fault 37), which QEMU emulates: where workers run and where rings lie, as its kernel tells.

PENSTOCK_KERNEL is the kernel's image. The machine has a shell, the programs and their libraries, and ends when its script does.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

PROGRAMS = pathlib.Path(os.environ["PENSTOCK_BIN"])
BUSYBOX = shutil.which("busybox")
# Processors 0 and 1 and 1,000 MiB are node 0, processors 2 and 3 and 400 MiB node 1.
QEMU = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-nodefaults", "-no-user-config", "-nographic",
        "-serial", "stdio", "-no-reboot", "-m", "1400M", "-smp", "4,sockets=2,cores=2",
        "-object", "memory-backend-ram,id=m0,size=1000M", "-object", "memory-backend-ram,id=m1,size=400M",
        "-numa", "node,nodeid=0,cpus=0-1,memdev=m0", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1", "-append", "console=ttyS0 panic=-1 quiet"]

SCRIPT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
cd /tmp
echo 'stage { range { stop: 8000000 } } stage { batch { batch_size: 1000000 } } stage { repeat {} }' > small
echo "ring { slots: 64 } $(cat small)" > large
mkfifo ready
penstockd --socket /tmp/s --state-dir none --ready-fd 3 3> ready 2> log &
read -r line < ready
daemon=$!
try() {
  name=$1; shift
  echo "BEGIN $name"
  penstock --socket /tmp/s create --name $name "$@"
  # Workers begin in their own time.
  while [ "$(penstock --socket /tmp/s stats $name --interval 0 | grep -c '^steps *[1-9]')" = 0 ]; do usleep 100000; done
  penstock --socket /tmp/s stats $name --interval 0
  grep penstock-ring /proc/$daemon/numa_maps
  for task in /proc/$daemon/task/*; do
    if grep -q '^Name:.worker' $task/status; then grep Cpus_allowed_list $task/status; fi
  done
  penstock --socket /tmp/s events $name
  penstock --socket /tmp/s delete $name
  echo "END $name"
}
try none small
try zero small --numa-node 0
try one small --numa-node 1
try two small --numa-node 2
try large large --numa-node 1
poweroff -f
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What each try of the script has written, by its name."""
    folder = tmp_path_factory.mktemp("machine")
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin/busybox")
    for name in ("penstockd", "penstock"):
        subprocess.run(["strip", "-o", root / "bin" / name, PROGRAMS / name], check=True)
        for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", PROGRAMS / name], check=True, capture_output=True, text=True).stdout):
            there = root / library[1:]
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, there)
    (root / "init").write_text(SCRIPT)
    (root / "init").chmod(0o755)
    names = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
    image = subprocess.run([BUSYBOX, "cpio", "-o", "-H", "newc"], cwd=root, input=names.encode(), check=True, capture_output=True).stdout
    (folder / "image").write_bytes(image)
    done = subprocess.run([*QEMU, "-kernel", os.environ["PENSTOCK_KERNEL"], "-initrd", folder / "image"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=540)
    found = dict(re.findall(r"BEGIN (\w+)\r?\n(.*?)END \1", done.stdout, re.DOTALL))
    assert len(found) == 5, done.stdout + done.stderr
    return found


def workers(text):
    return re.findall(r"Cpus_allowed_list:\t(\S+)", text)


def ring(text):
    """The ring's policy, and its pages on each node."""
    policy, rest = re.search(r"^\w+ (\S+) file=/memfd:penstock-ring(.*)", text, re.MULTILINE).groups()
    return policy, {int(node): int(count) for node, count in re.findall(r" N(\d)=(\d+)", rest)}


def test_without_a_node_workers_run_anywhere(machine):
    assert workers(machine["none"]) == ["0-3"] * 4
    assert ring(machine["none"])[0] == "default" and "NUMA" not in machine["none"]


@pytest.mark.parametrize("name, node, processors", [("zero", 0, "0-1"), ("one", 1, "2-3")])
def test_workers_and_ring_are_on_their_node(machine, name, node, processors):
    text = machine[name]
    assert workers(text) == [processors] * 2
    policy, pages = ring(text)
    assert policy == f"prefer:{node}" and list(pages) == [node]
    size = re.search(r"slots, (\S+ MiB)", text[text.index("ring  "):]).group(1)
    assert f"NUMA        node {node}: workers on its 2 processors, {size} of the ring there" in text
    assert "misplaced" not in text


def test_fault_37_a_node_that_is_absent(machine):
    text = machine["two"]
    assert workers(text) == ["0-3"] * 4 and ring(text)[0] == "default"
    assert "misplaced  there is no NUMA node 2: this machine has 0-1; workers and ring are on any" in text


def test_fault_37_a_ring_larger_than_the_nodes_memory_lies_on_both(machine):
    text = machine["large"]
    assert workers(text) == ["2-3"] * 2
    policy, pages = ring(text)
    assert policy == "prefer:1" and pages[0] > 0 and pages[1] > pages[0] / 4
    assert "misplaced  a part of the ring is in other memory: NUMA node 1 has too little that is free" in text
    told = float(re.search(r"processors, (\S+) MiB of the ring there", text).group(1))
    assert told == pytest.approx(pages[1] * 4096 / 2**20, rel=0.1)
