"""The image, built and run without an engine: buildah in a chroot, crun. A daemon and a trainer in containers that share a folder, and nothing else."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from machine import TIMEOUT_S, TREE, check, eventually, given, run

SPEC = 'name: "counter" stage { range { stop: 1000 } } stage { batch { batch_size: 10 } }'

_COMPILING_S = 3600  # with an empty ccache all is compiled anew

# crun wants control groups of one version; limits are not what is tested here, so it sees none.
_CRUN = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"', "crun"]


class Images:
    """Images in a folder, and what builds them."""

    def __init__(self, folder):
        self.folder = folder
        self.words = ["buildah", "--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "overlay"]
        if run(*self.words, "info").returncode != 0:
            # Copies each layer as a whole, and so works everywhere.
            self.words[-1] = "vfs"
        # What a build from a given package copies.
        self.context = folder / "context"
        (self.context / "build" / "package").mkdir(parents=True)
        shutil.copytree(TREE / "docker", self.context / "docker")
        shutil.copy(given("PENSTOCK_DEB"), self.context / "build" / "package")
        self.base("localhost/base", given("PENSTOCK_RUNTIME_ROOT"))

    def __call__(self, *words, **options):
        return check(*self.words, *words, **options).strip()

    def base(self, name, archive, files=(), environment=()):
        """An image of a Debian root, with files (pairs of path and text) and variables ("NAME=value")."""
        container = self("from", "scratch")
        self("add", container, archive, "/")
        for number, (path, text) in enumerate(files):
            (self.folder / str(number)).write_text(text)
            self("copy", container, self.folder / str(number), path)
        for variable in environment:
            self("config", "--env", variable, container)
        self("commit", "--format", "docker", container, name)
        self("rm", container)

    def build(self, file, name, *options, base="localhost/base", context=None, seconds=TIMEOUT_S):
        """Builds a file of docker/: the image's configuration, and where it is mounted."""
        context = context or self.context
        self("bud", "--isolation", "chroot", "--pull-never", "--format", "docker", "--build-arg", f"BASE={base}", *options,
             "-f", context / "docker" / file, "-t", name, context, timeout=seconds)
        config = json.loads(self("inspect", "--type", "image", name))["Docker"]["config"]
        return config, self("mount", self("from", name))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images with a base of Debian, and a way to build those of docker/."""
    folder = tmp_path_factory.mktemp("images")
    images = Images(folder)
    yield images
    images("umount", "--all")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def image(images):
    """The mounted image, and its configuration."""
    config, mounted = images.build("Dockerfile", "localhost/penstock", "--build-arg", "PACKAGE=given")
    return mounted, config


class Container:
    """A process in namespaces of its own, on a read-only root, without rights and without /dev/shm."""

    def __init__(self, image, folder, name, user, shared, words, state=None):
        mounted, config = image
        self.name = f"penstock-{os.getpid()}-{name}"
        bundle = folder / name
        bundle.mkdir()

        def bind(source, target, *options):
            return {"destination": target, "type": "bind", "source": str(source), "options": ["rbind", "nosuid", "nodev", *options]}

        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2",
            "process": {"terminal": False, "user": {"uid": user[0], "gid": user[1]}, "cwd": "/", "args": words, "env": config["Env"],
                        "noNewPrivileges": True, "capabilities": {}},
            "root": {"path": mounted, "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
                       bind(shared, "/run/penstock", "rw"), bind(folder, "/data", "ro"),
                       *([bind(state, "/var/lib/penstock", "rw")] if state else [])],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")]},
        }))
        self.process = subprocess.Popen([*_CRUN, "run", "--bundle", bundle, self.name], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def kill(self, number):
        run(*_CRUN, "kill", self.name, number)


@pytest.fixture
def shared(tmp_path):
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o5 != 0o5:
            path.chmod(0o755)
    folder = tmp_path / "shared"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    folder.chmod(0o750)
    return folder


def test_what_the_image_says(image):
    _, config = image
    assert config["User"] == "10001:10001"
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"] == ["CMD", "penstock", "list"]
    assert list(config["Volumes"]) == ["/run/penstock"]


def test_the_image_has_what_decodes_sounds(image):
    mounted, _ = image
    assert list(pathlib.Path(mounted).glob("usr/lib/*/libsndfile.so.1"))


def test_the_image_for_cuda_keeps_what_is_in_its_base(images, image):
    """Over another base, which NVIDIA's is in earnest."""
    mounted, plain = image
    images.build("Dockerfile", "localhost/package", "--build-arg", "PACKAGE=given", "--target", "package")
    config, over = images.build("Dockerfile.cuda", "localhost/penstock-cuda", "--build-arg", "PACKAGE=localhost/package")
    assert {name: config[name] for name in ("User", "StopSignal", "Entrypoint", "Healthcheck", "Volumes")} == \
        {name: plain[name] for name in ("User", "StopSignal", "Entrypoint", "Healthcheck", "Volumes")}
    assert set(config["Env"]) - set(plain["Env"]) == {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
    for root in (mounted, over):
        assert "installed" in check("chroot", root, "dpkg-query", "-W", "-f", "${db:Status-Status}", "penstock")
        check("chroot", root, "penstockd", "--config", "/etc/penstock/container.textproto", "--check-config")


def test_the_package_that_the_image_builds_from_source(images):
    """Of the tree as .dockerignore shows it, on a base that has the packages of `./dev deps` and no place to fetch others from."""
    # A compiler in another language gives other messages, so what the cache holds is of one language.
    language = [f"{name}={os.environ[name]}" for name in ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES") if name in os.environ]
    images.base("localhost/builder", given("PENSTOCK_BUILD_ROOT"),
                [("/etc/apt/sources.list", ""), ("/etc/ccache.conf", "cache_dir = /ccache\nbase_dir = /source\n")], language)
    _, stage = images.build("Dockerfile", "localhost/built", "--target", "package", "--volume", f"{given('PENSTOCK_CCACHE')}:/ccache",
                            base="localhost/builder", context=TREE, seconds=_COMPILING_S)
    package, = pathlib.Path(stage, "package").iterdir()

    def names(deb):
        return [line.split(maxsplit=5)[5] for line in check("dpkg-deb", "--contents", deb).splitlines()]

    plain = given("PENSTOCK_DEB")
    assert package.name == plain.name
    assert names(package) == names(plain)
    for field in ("Version", "Depends"):
        assert check("dpkg-deb", "--field", package, field) == check("dpkg-deb", "--field", plain, field)
    # And it runs: as the package that is given to the image itself.
    shutil.copytree(images.context, images.folder / "again")
    shutil.copy(package, images.folder / "again" / "build" / "package")
    _, mounted = images.build("Dockerfile", "localhost/again", "--build-arg", "PACKAGE=given", context=images.folder / "again")
    check("chroot", mounted, "penstockd", "--config", "/etc/penstock/container.textproto", "--check-config")


def test_a_daemon_and_a_trainer_share_a_folder_only(image, shared, tmp_path):
    (tmp_path / "counter.textproto").write_text(SPEC)
    mounted, config = image
    daemon = Container(image, tmp_path, "daemon", (10001, 10001), shared, config["Entrypoint"])
    try:
        eventually(lambda: (shared / "penstock.sock").exists() or daemon.process.poll() is not None)
        assert daemon.process.poll() is None, daemon.process.communicate()
        health = Container(image, tmp_path, "health", (10001, 10001), shared, config["Healthcheck"]["Test"][1:])
        assert health.process.wait(60) == 0
        trainer = Container(image, tmp_path, "trainer", (10002, 10001), shared,
                            ["penstock", "--socket", "/run/penstock/penstock.sock", "run", "/data/counter.textproto"])
        out, error = trainer.process.communicate(timeout=60)
        assert trainer.process.returncode == 0, error
        assert len(out.splitlines()) == 100
        # Somebody else, in the same folder by its group.
        stranger = Container(image, tmp_path, "stranger", (10003, 10001), shared, ["penstock", "list"])
        assert "user 10003 is not in its allowed_uids" in stranger.process.communicate(timeout=60)[1]
        # Outside of the data roots.
        other = Container(image, tmp_path, "other", (10002, 10001), shared,
                          ["penstock", "--socket", "/run/penstock/penstock.sock", "validate", "/data/counter.textproto", "--files", "/etc/passwd"])
        assert other.process.wait(60) == 1
    finally:
        daemon.kill("TERM")
        out, error = daemon.process.communicate(timeout=60)
    assert daemon.process.returncode == 0, error
    lines = [json.loads(line) for line in error.splitlines()]
    assert any("serves /run/penstock/penstock.sock" in line["message"] for line in lines)
    assert list(shared.iterdir()) == []


def test_a_killed_trainer_in_a_container_gives_its_batches_back(image, shared, tmp_path):
    """The daemon does not see the processes of another container: the end of the connection tells."""
    (tmp_path / "counter.textproto").write_text(SPEC + " stage { repeat {} }")
    _, config = image
    daemon = Container(image, tmp_path, "daemon", (10001, 10001), shared, config["Entrypoint"])
    try:
        eventually(lambda: (shared / "penstock.sock").exists())
        socket = shared / "penstock.sock"
        trainer = Container(image, tmp_path, "trainer", (10002, 10001), shared,
                            ["penstock", "--socket", "/run/penstock/penstock.sock", "run", "/data/counter.textproto", "--steps", "100000000", "--name", "c"])
        trainer.process.stdout.readline()
        trainer.kill("KILL")
        trainer.process.communicate(timeout=60)

        def without_consumers():
            look = Container(image, tmp_path, f"look-{os.urandom(4).hex()}", (10002, 10001), shared, ["penstock", "top", "c", "--count", "1"])
            return "no consumers" in look.process.communicate(timeout=60)[0]

        eventually(without_consumers)
        assert socket.exists()
    finally:
        daemon.kill("TERM")
        daemon.process.communicate(timeout=60)


def test_pipelines_outlive_a_container(image, shared, tmp_path):
    """The next container finds those of the one that was killed, where it has the same folder for them."""
    (tmp_path / "counter.textproto").write_text(SPEC)
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 10001, 10001)
    _, config = image
    socket = shared / "penstock.sock"

    def ask(*words):
        asked = Container(image, tmp_path, f"ask-{os.urandom(4).hex()}", (10002, 10001), shared, ["penstock", *words])
        out, error = asked.process.communicate(timeout=60)
        assert asked.process.returncode == 0, error
        return out

    first = Container(image, tmp_path, "first", (10001, 10001), shared, config["Entrypoint"], state)
    eventually(lambda: socket.exists() or first.process.poll() is not None)
    ask("create", "/data/counter.textproto")
    first.kill("KILL")
    first.process.communicate(timeout=60)
    socket.unlink()
    second = Container(image, tmp_path, "second", (10001, 10001), shared, config["Entrypoint"], state)
    try:
        eventually(lambda: socket.exists() or second.process.poll() is not None)
        assert "counter" in ask("list")
    finally:
        second.kill("TERM")
        second.process.communicate(timeout=60)


@pytest.mark.skipif(not shutil.which("hadolint"), reason="hadolint is not installed; ./dev test service installs it")
def test_hadolint():
    for name in ("Dockerfile", "Dockerfile.cuda"):
        check("hadolint", TREE / "docker" / name)


def test_kubernetes_files_hold_together():
    yaml = pytest.importorskip("yaml")
    files = {path.stem: yaml.safe_load(path.read_text()) for path in (TREE / "docker" / "kubernetes").glob("*.yaml")}
    pod = files["daemonset"]["spec"]["template"]["spec"]
    assert files["daemonset"]["spec"]["selector"]["matchLabels"] == files["daemonset"]["spec"]["template"]["metadata"]["labels"]
    assert files["podmonitor"]["spec"]["selector"]["matchLabels"].items() <= files["daemonset"]["spec"]["template"]["metadata"]["labels"].items()
    for one in (pod, files["trainer"]["spec"]):
        names = {volume["name"] for volume in one["volumes"]}
        for container in one["containers"] + one.get("initContainers", []):
            assert {mount["name"] for mount in container["volumeMounts"]} <= names
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    # What the daemon writes in a container outlives it: the socket's folder, and where the pipelines are kept.
    folders = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["state"] == folders["state"] == "/var/lib/penstock"
    compose = yaml.safe_load((TREE / "docker" / "compose.yaml").read_text())
    assert "state:/var/lib/penstock" in compose["services"]["penstockd"]["volumes"]
    for service in compose["services"].values():
        assert not {"ipc", "shm_size", "privileged", "pid"} & set(service)
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
