"""The Debian package: installed, used by another project's build, and removed, in a clean root."""

import subprocess

from machine import TREE, run

COUNTER = """name: "counter" stage { range { stop: 1000 } } stage { batch { batch_size: 10 } }"""


def test_install_use_remove(root):
    root("dpkg -i /penstock.deb")
    assert "penstock:x:" in root("getent passwd penstock")
    assert "libpenstock.so.1 " in root("ldconfig -p")
    assert root("systemd-analyze verify --man=no /usr/lib/systemd/system/penstockd.service 2>&1 || true").strip() == ""
    root("penstockd --config /etc/penstock/penstockd.textproto --check-config")
    root("pkg-config --libs --cflags penstock")

    root.put(TREE / "examples" / "find_package", "/project/trainer")
    root("cmake -S /project/trainer -B /project/build >/dev/null && cmake --build /project/build >/dev/null")
    root("g++ -std=c++20 /project/trainer/trainer.cc $(pkg-config --cflags --libs penstock) -o /project/by_pkg_config")
    (root.folder / "project" / "counter.textproto").write_text(COUNTER)
    daemon = subprocess.Popen(["chroot", root.folder, "penstockd", "--socket", "/project/s", "--state-dir", "none"], stderr=subprocess.DEVNULL)
    try:
        root("until penstock --socket /project/s list >/dev/null 2>&1; do :; done; penstock --socket /project/s create /project/counter.textproto")
        for trainer in ("/project/build/trainer", "/project/by_pkg_config"):
            assert "rows" in root(f"PENSTOCK_SOCKET=/project/s {trainer} counter")
        assert run("chroot", root.folder, "env", "PENSTOCK_SOCKET=/project/s", "/project/build/trainer", "none").returncode == 1
    finally:
        daemon.terminate()
        daemon.wait(60)

    root("echo '# mine' >> /etc/penstock/penstockd.textproto; dpkg -i /penstock.deb")
    assert "# mine" in root("cat /etc/penstock/penstockd.textproto")
    root("dpkg -r penstock")
    assert not (root.folder / "usr/bin/penstockd").exists()
    assert "# mine" in root("cat /etc/penstock/penstockd.textproto")
    # Installed again it is enabled as it was; what an administrator has disabled stays so.
    enabled = "find /etc/systemd/system -name 'penstockd.*' -type l | sort"
    assert root(enabled).split() == []
    root("dpkg -i /penstock.deb")
    assert len(root(enabled).split()) == 2
    root("systemctl disable penstockd.service penstockd.socket; dpkg -i /penstock.deb")
    assert root(enabled).split() == []
    root("dpkg -r penstock; dpkg -i /penstock.deb")
    assert root(enabled).split() == []
    root("dpkg -r penstock")
    root("dpkg -P penstock")
    left = [line for line in root("find / -xdev -name '*penstock*' -not -path '/project/*' -not -path '/proc/*'").split()
            if line != "/penstock.deb" and "/var/lib/systemd" not in line]
    assert left == []
