"""The files for Kubernetes against the API's own schemas (PyPI's kubernetes-validate carries them): of the oldest release and of the newest.

A PodMonitor is no kind of Kubernetes itself but of the Prometheus operator: it is read into the classes that PyPI's
cloudcoil.models.prometheus-operator generates from the operator's definition. tests/installed/test_container.py compares its labels with
the DaemonSet's. A JobSet is of its own operator, too: the Jobs that it makes are compared with Kubernetes' schema of a Job.
"""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

_FOLDER = pathlib.Path(__file__).parents[2] / "docker" / "kubernetes"
_OF_KUBERNETES = sorted(path.name for path in _FOLDER.glob("*.yaml") if path.name not in ("podmonitor.yaml", "training-jobset.yaml"))

pytestmark = pytest.mark.skipif(not shutil.which("kubernetes-validate"),
                                reason="kubernetes-validate is not installed; ./dev test service installs it")


def _validate(path, *options):
    done = subprocess.run(["kubernetes-validate", "--strict", *options, path], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", _OF_KUBERNETES)
@pytest.mark.parametrize("options", [(), ("--kubernetes-version", "1.25")], ids=["newest", "oldest"])
def test_files_keep_to_the_schema(name, options):
    code, text = _validate(_FOLDER / name, *options)
    assert code == 0 and re.search(r"passed for resource", text), text


def _jobs(text):
    """The Jobs that a JobSet makes, a file's text each."""
    jobset = yaml.safe_load(text)
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    # Those of its fields that it has.
    assert set(jobset["spec"]) <= {"network", "failurePolicy", "replicatedJobs"}
    for job in jobset["spec"]["replicatedJobs"]:
        assert set(job) == {"name", "replicas", "template"}
        yield yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, **job["template"]})


@pytest.mark.parametrize("options", [(), ("--kubernetes-version", "1.25")], ids=["newest", "oldest"])
@pytest.mark.parametrize("before, after", [("", ""), ("completionMode:", "completionsMode:"), ("mountPath:", "mountPat:")])
def test_the_jobs_of_a_jobset_keep_to_the_schema(options, before, after, tmp_path):
    jobs = list(_jobs((_FOLDER / "training-jobset.yaml").read_text()))
    assert len(jobs) == 1
    assert before in jobs[0]
    path = tmp_path / "job.yaml"
    path.write_text(jobs[0].replace(before, after) if before else jobs[0])
    code, said = _validate(path, *options)
    assert (code == 0) == (before == ""), said


def test_the_number_of_hosts_is_that_of_the_pods():
    """What Kubernetes does not say to a pod stands twice in its file."""
    job = yaml.safe_load((_FOLDER / "training-job.yaml").read_text())["spec"]
    jobset = yaml.safe_load((_FOLDER / "training-jobset.yaml").read_text())["spec"]["replicatedJobs"][0]
    for spec in (job, jobset["template"]["spec"]):
        (trainer,) = spec["template"]["spec"]["containers"]
        hosts = {int(one["value"]) for one in trainer["env"] if one["name"] == "PENSTOCK_HOSTS"}
        assert hosts == {spec["completions"]} == {spec["parallelism"]}
        assert spec["completionMode"] == "Indexed"
    assert jobset["replicas"] == 1
    # The Service that its pods' names are of.
    service = yaml.safe_load((_FOLDER / "training-service.yaml").read_text())
    assert job["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": yaml.safe_load((_FOLDER / "training-job.yaml").read_text())["metadata"]["name"]}


@pytest.mark.parametrize("before, after", [("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: often"),
                                           ("containers:", "contaners:"), ("mountPath:", "mountPat:")])
def test_a_mistake_is_seen(before, after, tmp_path):
    text = (_FOLDER / "daemonset.yaml").read_text()
    assert before in text
    path = tmp_path / "daemonset.yaml"
    path.write_text(text.replace(before, after))
    code, said = _validate(path)
    assert code != 0, said


def _validate_pod_monitor(path):
    # The linters share an environment.
    python = pathlib.Path(shutil.which("kubernetes-validate")).parent / "python"
    done = subprocess.run([python, pathlib.Path(__file__).parent / "validate_pod_monitor.py", path], capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_the_pod_monitor_keeps_to_the_operators_definition():
    code, said = _validate_pod_monitor(_FOLDER / "podmonitor.yaml")
    assert code == 0 and "is a PodMonitor of monitoring.coreos.com/v1" in said, said


@pytest.mark.parametrize("before, after, where", [
    ("/v1\n", "/v2\n", "apiVersion"),
    ("kind: PodMonitor", "kind: PodMonitors", "kind"),
    ("  selector:", "  selectors:", "spec.selectors"),
    ("matchLabels:", "matchLabel:", "spec.selector.matchLabel"),
    ("podMetricsEndpoints:", "pod_metrics_endpoints:", "spec.pod_metrics_endpoints"),
    ("path: /metrics", "paths: /metrics", "spec.podMetricsEndpoints.0.paths"),
    ("interval: 15s", "interval: often", "spec.podMetricsEndpoints.0.interval"),
])
def test_a_mistake_in_the_pod_monitor_is_seen(before, after, where, tmp_path):
    text = (_FOLDER / "podmonitor.yaml").read_text()
    assert before in text
    path = tmp_path / "podmonitor.yaml"
    path.write_text(text.replace(before, after))
    code, said = _validate_pod_monitor(path)
    assert code == 1 and f"\n{where}\n" in said, said
