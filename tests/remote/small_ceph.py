"""A Ceph of one monitor, one OSD in memory and radosgw, whose S3 checks strictly. Debian packages: ceph-mon, ceph-osd, ceph-common, radosgw."""

import shutil
import socket
import subprocess
import time
import uuid

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")

_CONFIGURATION = """
[global]
fsid = {fsid}
mon host = {monitor}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
log file = {folder}/$name.log
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
mon data = {folder}/mon
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 2147483648
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
"""


def is_installed():
    return all(map(shutil.which, PROGRAMS))


def _free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class SmallCeph:
    """`url` is radosgw's. `end()` stops all of it; nothing is left but the folder."""

    def __init__(self, folder, access_key, secret_key):
        self._folder = folder
        self._processes = []
        first, second, port = _free_ports(3)
        self.url = f"http://127.0.0.1:{port}"
        monitor = f"[v2:127.0.0.1:{first}/0,v1:127.0.0.1:{second}/0]"
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        for name in ("mon", "osd"):
            (folder / name).mkdir()
        self._configuration = folder / "ceph.conf"
        self._configuration.write_text(_CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=folder))
        keyring, map_ = folder / "keyring", folder / "monmap"
        everything = [word for service in ("mon", "osd", "mgr") for word in ("--cap", service, "allow *")]
        try:
            self._run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *", conf=False)
            self._run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *everything, conf=False)
            self._run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", monitor, map_, conf=False)
            self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", map_, "--keyring", keyring)
            self._start("ceph-mon", "-i", "a", "-f")
            self._run("ceph", "osd", "new", osd)
            self._run("ceph", "auth", "get-or-create", "osd.0", "mon", "allow profile osd", "osd", "allow *", "-o", folder / "osd" / "keyring")
            with_key = ["--keyring", folder / "osd" / "keyring"]
            self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd, *with_key)
            self._start("ceph-osd", "-i", "0", "-f", *with_key)
            self._run("radosgw-admin", "user", "create", "--uid=test", "--display-name=test", f"--access-key={access_key}", f"--secret-key={secret_key}")
            self._start("radosgw", "-n", "client.admin", "--keyring", keyring, "-f", "--rgw-frontends", f"beast endpoint=127.0.0.1:{port}")
            self._wait_for(port)
        except BaseException:
            self.end()
            raise

    def _words(self, program, words, conf):
        return [str(word) for word in (program, *(("-c", self._configuration) if conf else ()), *words)]

    def _run(self, program, *words, conf=True):
        subprocess.run(self._words(program, words, conf), check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _start(self, program, *words):
        self._processes.append(subprocess.Popen(self._words(program, words, True), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def _wait_for(self, port):
        end = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                return
            except OSError:
                assert all(process.poll() is None for process in self._processes) and time.monotonic() < end, "Ceph does not start"
                time.sleep(0.1)

    def end(self):
        for process in reversed(self._processes):
            process.kill()
            process.wait()
