"""Files at addresses: a daemon whose configuration allows them, what it tells of them, and that it tells no secret."""

import collections
import json
import os
import pathlib
import re
import threading
import urllib.request

import pytest

import tfrecord_files
from object_server import ObjectServer
from programs import Daemon, Penstock, eventually, free_port

penstock = pytest.importorskip("penstock")

_SECRET = "VERYSECRETKEYOFATEST"
_RECORDS = 3000


def shard(folder, records=_RECORDS):
    path = folder / "shard"
    tfrecord_files.write(path, [tfrecord_files.example(n=n) for n in range(records)])
    return path.read_bytes()


@pytest.fixture
def server(tmp_path):
    server = ObjectServer({"/bucket/train/a": shard(tmp_path), "/bucket/train/b": shard(tmp_path, 500)})
    yield server
    server.end()


@pytest.fixture
def serve(tmp_path):
    daemons = []

    def start(remote, name="run", **variables):
        port = free_port()
        config = tmp_path / f"{name}.textproto"
        config.write_text(f"http {{ port: {port} }}\nremote {{ {remote} }}\nstop_timeout_ms: 60000\n")
        before = dict(os.environ)
        os.environ.update(variables)
        try:
            daemon = Daemon(tmp_path / name / "penstock.sock", "--config", str(config))
        finally:
            os.environ.clear()
            os.environ.update(before)
        assert daemon.is_ready
        daemon.port = port
        daemons.append(daemon)
        return daemon, Penstock(tmp_path, daemon.socket)

    yield start
    for daemon in daemons:
        daemon.stop()
        daemon.process.stderr.close()


def spec(folder, files, name="p", shuffled=False, more=""):
    path = folder / f"{name}.textproto"
    shuffle = "stage { shuffle { global: true seed: 3 } }" if shuffled else ""
    path.write_text(
        f'name: "{name}"\nstage {{ tfrecord {{ files: "{files}" }} }}\n{shuffle}\n'
        f'stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }}\nstage {{ batch {{ batch_size: 100 }} }}\n{more}'
    )
    return path


def numbers(daemon, name="p"):
    with penstock.attach(name, socket=daemon.socket) as batches:
        return [int(n) for batch in batches for n in batch["n"]]


def page(daemon, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}{path}", timeout=30) as answer:
        return answer.read().decode()


def test_the_configuration_says_which_addresses_are_read_and_by_whom(server, serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(_SECRET + "\n")
    daemon, command = serve(
        f'allow: "s3://bucket/train/" place {{ prefix: "s3://" endpoint: "{server.url}" region: "eu-west-1" '
        f'aws_key {{ access_key_id: "AKID" secret_access_key_file: "{secret}" }} }}'
    )
    made = command("create", spec(tmp_path, "s3://bucket/train/*"))
    assert made.code == 0, made
    assert sorted(numbers(daemon)) == sorted([*range(_RECORDS), *range(500)])
    assert all("Credential=AKID/" in head and "/eu-west-1/s3/" in head for head in server.heads)
    refused = command("create", spec(tmp_path, "s3://bucket/other/a", "q"))
    assert refused.code != 0 and "remote { allow }" in refused.err
    refused = command("create", spec(tmp_path, server.url + "/bucket/train/a", "q"))
    assert refused.code != 0 and "remote { allow }" in refused.err


def test_fault_29_what_a_spec_names_leads_to_this_machine_only_where_that_is_allowed(server, serve, tmp_path):
    daemon, command = serve('allow: "http://"', "guarded")
    refused = command("create", spec(tmp_path, server.url + "/bucket/train/a"))
    assert refused.code != 0 and "allow_local" in refused.err
    daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/"', "open")
    assert command("create", spec(tmp_path, server.url + "/bucket/train/a")).code == 0
    assert numbers(daemon) == list(range(_RECORDS))


def test_fault_29_a_connection_that_was_kept_leads_to_no_address_that_is_not_allowed(server, serve, tmp_path):
    server.objects["/bucket/other/a"] = server.objects["/bucket/train/a"]
    _, command = serve(f'allow: "http://" allow_local: "{server.url}/bucket/train/"')
    both = f'{server.url}/bucket/train/a" files: "{server.url}/bucket/other/a'
    for number in range(3):
        refused = command("create", spec(tmp_path, both, f"p{number}"))
        assert refused.code != 0 and "allow_local" in refused.err
    assert "/bucket/train/a" in server.paths
    assert "/bucket/other/a" not in server.paths


class Together(ObjectServer):
    """Gives the ranges that `holds(path, first, last)` when as many different paths are asked for."""

    def __init__(self, objects, paths, holds):
        self.needed = paths
        self.holds = holds
        self.held = set()
        self.came_together = threading.Event()
        super().__init__(objects)

    def wait_until_allowed(self, path, first, last):
        if not self.holds(path, first, last):
            return
        self.held.add(path)
        if len(self.held) == self.needed:
            self.came_together.set()
        # Who asks for one after the other is to fail, and not to hang.
        self.came_together.wait(30)

    def looks(self):
        """How often each path was asked for that it is there, and what it is."""
        return collections.Counter(self.paths) - collections.Counter(path for path, _, _ in self.ranges)


def test_many_addresses_are_looked_up_once_and_those_read_in_turns_are_asked_for_together(serve, tmp_path):
    names = [f"/data/{i}" for i in range(4)]
    objects = {name: shard(tmp_path, 1000) for name in names}
    # The beginnings of files, but not the pages that a fingerprint is made of.
    server = Together(objects, len(names), lambda path, first, last: first <= 4096 and last - first > 8192)
    try:
        daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/"')
        files = '" files: "'.join(server.url + name for name in names)
        made = command("create", spec(tmp_path, f'{files}" cycle_length: 4 files: "{server.url}{names[0]}'))
        assert made.code == 0, made
        assert len(numbers(daemon)) == 5000
        assert server.came_together.is_set()
        # A look at each file, though one of them stands in the list twice, and one for the index of the first.
        assert server.looks() == {**dict.fromkeys(names, 1), "/data/.0.penstock-index": 1}
    finally:
        server.end()


def test_indices_beside_objects_are_read_once_and_side_by_side(serve, tmp_path):
    files = 40
    objects = {}
    command = Penstock(tmp_path)
    for i in range(files):
        (tmp_path / f"part-{i}").write_bytes(shard(tmp_path, 10))
        assert command("index", f"part-{i}").code == 0
        for name in (f"part-{i}", f".part-{i}.penstock-index"):
            objects[f"/data/{name}"] = (tmp_path / name).read_bytes()
    # The first one tells whether there are any.
    server = Together(objects, 16, lambda path, *_: path.endswith("index") and not path.startswith("/data/.part-0."))
    try:
        daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/"')
        listed = '" files: "'.join(f"{server.url}/data/part-{i}" for i in range(files))
        made = command("create", spec(tmp_path, listed))
        assert made.code == 0, made
        assert server.came_together.is_set()
        with penstock.attach("p", socket=daemon.socket) as batches:
            assert len(batches) == files * 10 // 100
        assert server.looks() == dict.fromkeys(objects, 1)
    finally:
        server.end()


def test_what_is_fetched_is_told_by_stats_top_the_page_and_metrics(server, serve, tmp_path):
    daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/"')
    assert command("create", spec(tmp_path, server.url + "/bucket/train/a")).code == 0
    assert len(numbers(daemon)) == _RECORDS
    size = len(server.objects["/bucket/train/a"])
    remote = json.loads(command("stats", "p", "--json").out)["remote"]
    # The file, and its ends for the fingerprint and for an index that is not there.
    assert size <= int(remote["bytes"]) <= size + 4 * 8192
    assert int(remote["requests"]) == len(server.ranges)
    assert int(remote["max_memory_bytes"]) > 0
    for words in (["stats", "p"], ["top", "--count", "1"]):
        told = command(*words).out
        assert re.search(r"fetched .* by \d+ requests \(0 sent again, 0 second ones\)", told), told
    status = json.loads(page(daemon, "/status.json"))["pipelines"][0]["stats"]["remote"]
    assert status["requests"] == len(server.ranges) and status["waiting"] == 0
    assert f'penstock_pipeline_fetch_requests_total{{pipeline="p"}} {len(server.ranges)}' in page(daemon, "/metrics")
    # One that reads no addresses says nothing of them.
    (tmp_path / "local").write_bytes(server.objects["/bucket/train/b"])
    assert command("create", spec(tmp_path, "local", "near")).code == 0
    assert len(numbers(daemon, "near")) == 500
    assert "remote" not in json.loads(command("stats", "near", "--json").out)


class Taker(threading.Thread):
    """Takes all batches of a pipeline, or those up to its error. `taken`: how many; `last`: what `look` made of the last one."""

    def __init__(self, daemon, look=lambda batch: None):
        super().__init__(daemon=True)
        self._socket = daemon.socket
        self._look = look
        self.taken = 0
        self.last = self.error = None
        self.start()

    def run(self):
        try:
            with penstock.attach("p", socket=self._socket) as batches:
                for batch in batches:
                    self.last = self._look(batch)
                    self.taken += 1
        except penstock.Error as error:
            self.error = error


def remote_of(command):
    return json.loads(command("stats", "p", "--json").out).get("remote", {})


def test_fault_29_a_pipeline_whose_server_hangs_says_so_and_is_deleted(server, serve, tmp_path):
    server.objects["/bucket/long"] = server.objects["/bucket/train/a"] * 200
    daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/" memory_bytes: 16777216')
    assert command("create", spec(tmp_path, server.url + "/bucket/long", more="stage { repeat {} }")).code == 0
    taker = Taker(daemon)
    eventually(lambda: taker.taken > 0)
    server.hang()
    eventually(lambda: remote_of(command).get("waiting", 0) > 0)
    # It is told as soon as it has been so for some looks.
    eventually(lambda: "for bytes of files at addresses" in command("explain", "p").out)
    assert re.search(r"fetching for \d+ read", command("stats", "p").out)
    assert command("delete", "p").code == 0
    taker.join()
    assert taker.error is not None
    # It hangs still.
    assert daemon.stop() == 0


def test_what_single_records_need_is_asked_for_many_steps_ahead(server, serve, tmp_path):
    for i in range(2000):
        server.objects[f"/bucket/small/{i:04}"] = bytes([i % 256]) * 20_000
    daemon, command = serve(f'allow: "s3://" place {{ prefix: "s3://" endpoint: "{server.url}" }} memory_bytes: 16777216')
    files = tmp_path / "files.textproto"
    files.write_text('name: "p"\nstage { files { files: "s3://bucket/small/*" } }\nstage { batch { batch_size: 8 } }\n')
    made = command("create", files)
    assert made.code == 0, made
    server.hang()
    taker = Taker(daemon, lambda batch: bytes(batch["bytes"][7]))

    def asked():
        remote = remote_of(command)
        return remote.get("under_way", 0) + remote.get("queued", 0)

    # The ring has three slots, of eight files each.
    eventually(lambda: asked() >= 100)
    server.go_on()
    taker.join()
    assert taker.error is None and taker.taken == 250
    assert taker.last == bytes([1999 % 256]) * 20_000


def test_fault_29_no_secret_is_in_any_message_log_page_or_file_of_the_daemon(server, serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(_SECRET + "\n")
    program = tmp_path / "keys.sh"
    program.write_text(f"#!/bin/sh\necho {_SECRET}\necho {_SECRET} >&2\nexit 3\n")
    program.chmod(0o755)
    server.refuses = True
    daemon, command = serve(
        f'allow: "*" place {{ prefix: "s3://bucket/" endpoint: "{server.url}" '
        f'aws_key {{ access_key_id: "AKID" secret_access_key_file: "{secret}" }} }} '
        f'place {{ prefix: "s3://programs/" endpoint: "{server.url}" credential_process: "{program}" }} '
        f'place {{ prefix: "s3://variables/" endpoint: "{server.url}" environment: true }}',
        AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY=_SECRET, AWS_SESSION_TOKEN="TOKEN" + _SECRET,
    )
    addresses = [
        "s3://bucket/train/a", "s3://bucket/train/*", "s3://programs/a", "s3://variables/a",
        f"https://user:{_SECRET}@host.example/a", f"https://host.example/a?signature={_SECRET}",
        f"ftp://user:{_SECRET}@host.example/a", f"s3://AKID:{_SECRET}@bucket/a", f"s3://bucket/a?X-Amz-Signature={_SECRET}",
    ]
    told = ""
    for address in addresses:
        for words in (["create"], ["validate"], ["index"], ["verify"], ["inspect"]):
            files = [spec(tmp_path, address)] if words[0] in ("create", "validate") else [address]
            done = command(*words, *files, AWS_ENDPOINT_URL_S3=server.url, AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY=_SECRET)
            assert done.code != 0, (words, address)
            told += done.out + done.err
    # And one that runs.
    server.refuses = False
    assert command("create", spec(tmp_path, "s3://bucket/train/a", "runs")).code == 0
    assert len(numbers(daemon, "runs")) == _RECORDS
    for words in (["get", "runs"], ["stats", "runs", "--json"], ["top", "--count", "1"], ["events"], ["explain", "runs"], ["list"]):
        told += command(*words).out
    told += page(daemon, "/status.json") + page(daemon, "/metrics") + page(daemon, "/")
    kept = b"".join(path.read_bytes() for path in pathlib.Path(daemon.socket + ".state").rglob("*") if path.is_file())
    assert b"s3://bucket/train/a" in kept
    assert daemon.stop() == 0
    told += daemon.process.stderr.read()
    assert "AccessDenied" in told and "credential_process ended with status 3" in told
    assert _SECRET not in told
    assert _SECRET.encode() not in kept
    # The server was sent a signature, and no key.
    assert all(_SECRET not in head.replace("TOKEN" + _SECRET, "") for head in server.heads)


def test_commands_index_verify_and_inspect_what_lies_at_addresses(server, serve, tmp_path):
    indices = tmp_path / "cache"
    command = Penstock(tmp_path)
    address = server.url + "/bucket/train/a"
    local = tmp_path / "local"
    local.write_bytes(server.objects["/bucket/train/a"])
    done = command("verify", address)
    assert done.code == 0 and f"verified {_RECORDS} records of 1 files" in done.out, done
    told = command("inspect", address)
    assert told.code == 0 and told.out.replace(address, "F") == command("inspect", local).out.replace(str(local), "F"), told
    done = command("index", address, PENSTOCK_CACHE_DIR=str(indices))
    assert done.code == 0 and f"{_RECORDS} records" in done.out and str(indices) in done.out, done
    done = command("index", address, PENSTOCK_CACHE_DIR=str(indices))
    assert ", has " in done.out, done
    for words in (["index"], ["verify"], ["inspect"]):
        done = command(*words, server.url + "/bucket/none")
        assert done.code == 1 and "there is no such object" in done.err
    done = command("verify", "s3://bucket/train/*", AWS_ENDPOINT_URL_S3=server.url, AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY="S")
    assert done.code == 0 and "of 2 files" in done.out, done
    # A daemon of the same user takes the index, and shuffles without reading the object for one.
    daemon, command = serve(f'allow: "http://" allow_local: "{server.url}/"', PENSTOCK_CACHE_DIR=str(indices))
    before = len(server.ranges)
    assert command("create", spec(tmp_path, address, shuffled=True)).code == 0
    # The pipeline may have begun to read ahead.
    assert len(server.ranges) - before <= 6
    shuffled = numbers(daemon)
    assert shuffled != list(range(_RECORDS)) and sorted(shuffled) == list(range(_RECORDS))


def test_etags_that_are_trusted_save_the_looks_at_each_files_ends(server, serve, tmp_path):
    for i in range(40):
        server.objects[f"/bucket/many/{i:02}"] = bytes([i]) * 10_000
    place = f'allow: "s3://" place {{ prefix: "s3://" endpoint: "{server.url}" }}'
    made = tmp_path / "many.textproto"
    made.write_text('name: "p" stage { list_files { files: "s3://bucket/many/*" } } stage { batch { batch_size: 10 } }')
    for more, looks in (("", 80), ("trust_etags: true", 0)):
        daemon, command = serve(f"{place} {more}", f"trusts{looks}")
        before = len(server.ranges), len(server.paths)
        assert command("create", made).code == 0
        with penstock.attach("p", socket=daemon.socket) as batches:
            assert sum(len(batch) for batch in batches) == 40
        # On a busy machine one in twenty is asked for once more.
        asked = server.ranges[before[0] :]
        assert len(set(asked)) == looks and len(asked) <= looks * 1.1
        # One list; and the index of the first object is looked for.
        assert len(server.paths) - before[1] <= len(asked) + 2


def test_fault_29_a_killed_daemon_leaves_a_cache_that_gives_whole_bytes(server, serve, tmp_path):
    server.objects["/bucket/long"] = server.objects["/bucket/train/a"] * 100
    remote = f'allow: "http://" allow_local: "{server.url}/" memory_bytes: 16777216 cache_folder: "{tmp_path / "kept"}"'
    address = server.url + "/bucket/long"
    for batches in (1, 40, 400):
        daemon, command = serve(remote, f"killed{batches}")
        assert command("create", spec(tmp_path, address)).code == 0
        with penstock.attach("p", socket=daemon.socket) as source:
            taken = iter(source)
            for _ in range(batches):
                next(taken)
            daemon.kill()
    daemon, command = serve(remote, "whole")
    for name in ("p", "again"):
        assert command("create", spec(tmp_path, address, name)).code == 0
        assert numbers(daemon, name) == list(range(_RECORDS)) * 100
    # The second pipeline asks for nothing but the object's size.
    before = len(server.ranges)
    daemon, command = serve(remote, "third")
    assert command("create", spec(tmp_path, address)).code == 0
    assert numbers(daemon) == list(range(_RECORDS)) * 100
    assert len(server.ranges) == before
    cached = json.loads(command("stats", "p", "--json").out)["remote"]
    assert int(cached.get("bytes", 0)) == 0 and int(cached.get("cached_bytes", 0)) > 0
