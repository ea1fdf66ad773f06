"""Datasets of servers that others wrote: radosgw and rclone, whose S3 checks signatures; moto, which has roles and a metadata service; and an
emulator of Google Cloud Storage, which checks nothing.

`./dev test remote` installs them and runs this; it is none of the default suite.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import urllib.request

import pytest

import penstock
from real_servers import BIN, Process, digest, free_port, use_keys

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")


@pytest.fixture(scope="module")
def rclone(folder):
    rclone = shutil.which("rclone", path=BIN)
    port = free_port()
    server = Process(port, rclone, "serve", "s3", str(folder.parent), "--addr", f"127.0.0.1:{port}", "--auth-key", "AKIDEXAMPLE,SECRETEXAMPLE")
    yield f"http://127.0.0.1:{port}"
    server.end()


@pytest.mark.parametrize("pattern", ["train/part-*.tfrecord", "train/part-{0,2}.tfrecord", "**/part-1.tfrecord", "train/odd +=&%@,()'!ü~ name"])
def test_rclones_s3_gives_what_the_files_give(pattern, folder, rclone, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", rclone)
    variables.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    variables.setenv("AWS_SECRET_ACCESS_KEY", "SECRETEXAMPLE")
    local = str(folder / pattern.replace("**/", "train/"))
    assert digest(penstock.TFRecordDataset(f"s3://bucket/{pattern}")) == digest(penstock.TFRecordDataset(local))


def test_rclone_refuses_a_wrong_key_and_the_message_has_none(rclone, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", rclone)
    variables.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    variables.setenv("AWS_SECRET_ACCESS_KEY", "WRONGSECRET")
    with pytest.raises(penstock.PermissionDeniedError, match="refuses") as refused:
        list(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord"))
    assert "SECRET" not in str(refused.value)


@pytest.fixture(scope="module")
def emulator(folder):
    port = free_port()
    server = Process(port, shutil.which("gcp-storage-emulator", path=BIN), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=bucket")
    base = f"http://127.0.0.1:{port}"
    for path in sorted((folder / "train").glob("part-*")):
        request = urllib.request.Request(
            f"{base}/upload/storage/v1/b/bucket/o?uploadType=media&name=train/{path.name}", data=path.read_bytes(), method="POST",
            headers={"Content-Type": "application/octet-stream"},
        )
        urllib.request.urlopen(request).read()
    yield base
    server.end()


@pytest.mark.parametrize("pattern", ["train/part-*.tfrecord", "train/part-1.tfrecord"])
def test_the_emulator_of_gcs_gives_what_the_files_give(pattern, folder, emulator, variables):
    variables.setenv("STORAGE_EMULATOR_HOST", emulator)
    variables.setenv("NO_GCE_CHECK", "true")
    assert digest(penstock.TFRecordDataset(f"gs://bucket/{pattern}")) == digest(penstock.TFRecordDataset(str(folder / pattern)))


@pytest.mark.parametrize("pattern", ["train/part-*.tfrecord", "train/part-{0,2}.tfrecord", "**/part-1.tfrecord", "train/odd +=&%@,()'!ü~ name"])
def test_ceph_gives_what_the_files_give(pattern, folder, radosgw, variables):
    use_keys(variables, radosgw[0])
    local = str(folder / pattern.replace("**/", "train/"))
    assert digest(penstock.TFRecordDataset(f"s3://bucket/{pattern}")) == digest(penstock.TFRecordDataset(local))


def test_ceph_gives_single_records_in_a_global_shuffle(folder, radosgw, variables):
    use_keys(variables, radosgw[0])

    def shuffled(place):
        return digest(penstock.TFRecordDataset(f"{place}/train/part-*.tfrecord").global_shuffle(seed=5))

    assert shuffled("s3://bucket") == shuffled(folder)


def test_fault_29_ceph_refuses_a_wrong_key(radosgw, variables):
    use_keys(variables, radosgw[0], "WRONGSECRET")
    with pytest.raises(penstock.PermissionDeniedError, match="SignatureDoesNotMatch|refuses") as refused:
        list(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord"))
    assert "WRONGSECRET" not in str(refused.value)


def test_fault_29_ceph_gives_empty_objects_and_says_what_is_not_there(folder, radosgw, variables):
    use_keys(variables, radosgw[0])
    with_empty = [f"{{}}/train/{name}" for name in ("empty", "part-1.tfrecord")]
    (folder / "train" / "empty").touch()
    far, near = ([name.format(place) for name in with_empty] for place in ("s3://bucket", folder))
    assert digest(penstock.TFRecordDataset(far)) == digest(penstock.TFRecordDataset(near))
    # As of files of this machine, nothing but empty ones is taken for a mistake.
    for files in (far[:1], near[:1]):
        with pytest.raises(penstock.InvalidArgumentError, match="all 1 files are empty"):
            list(penstock.TFRecordDataset(files).batch(2))
    with pytest.raises(penstock.NotFoundError, match="no such object|no object matches"):
        list(penstock.TFRecordDataset("s3://bucket/train/none"))
    with pytest.raises(penstock.NotFoundError, match="no object matches"):
        list(penstock.TFRecordDataset("s3://bucket/none/*"))


def test_fault_29_an_object_of_ceph_that_is_replaced_ends_the_pipeline(folder, radosgw, variables):
    url, store = radosgw
    use_keys(variables, url)
    data = (folder / "train" / "part-0.tfrecord").read_bytes() * 10
    store.put_object(Bucket="bucket", Key="changing", Body=data)
    taken = iter(penstock.TFRecordDataset("s3://bucket/changing").repeat().batch(50))
    next(taken)
    store.put_object(Bucket="bucket", Key="changing", Body=data + data)
    with pytest.raises(penstock.Error, match="was replaced since the pipeline was created"):
        for _ in range(2000):
            next(taken)


@pytest.mark.parametrize("keys", [1001, 2500])
def test_ceph_lists_more_than_a_page(keys, radosgw, variables):
    url, store = radosgw
    use_keys(variables, url)
    with concurrent.futures.ThreadPoolExecutor(16) as several:
        list(several.map(lambda i: store.put_object(Bucket="bucket", Key=f"many-{keys}/{i:05}", Body=b""), range(keys)))
    assert len(list(penstock.Dataset.list_files(f"s3://bucket/many-{keys}/*"))) == keys


def expected(folder):
    return digest(penstock.TFRecordDataset(str(folder / "train" / "part-0.tfrecord")))


def test_motos_metadata_service_gives_a_role(folder, moto, variables):
    variables.setenv("AWS_ENDPOINT_URL_S3", moto)
    variables.setenv("AWS_EC2_METADATA_DISABLED", "false")
    variables.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", moto)
    assert digest(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord")) == expected(folder)


def test_motos_sts_gives_a_role_for_a_web_identity(folder, moto, variables, tmp_path):
    token = tmp_path / "token"
    token.write_text("eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl")
    variables.setenv("AWS_ENDPOINT_URL_S3", moto)
    variables.setenv("AWS_ENDPOINT_URL_STS", moto)
    variables.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    variables.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader")
    assert digest(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord")) == expected(folder)


def test_a_program_gives_keys_of_a_profile(folder, radosgw, variables, tmp_path):
    config = tmp_path / "config"
    keys = json.dumps({"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "SECRETEXAMPLE"})
    (tmp_path / "keys.json").write_text(keys)
    config.write_text(f"[profile train]\ncredential_process = cat {tmp_path / 'keys.json'}\n")
    variables.setenv("AWS_ENDPOINT_URL_S3", radosgw[0])
    variables.setenv("AWS_CONFIG_FILE", str(config))
    variables.setenv("AWS_PROFILE", "train")
    assert digest(penstock.TFRecordDataset("s3://bucket/train/part-0.tfrecord")) == expected(folder)


def test_the_command_indexes_and_verifies_objects_of_ceph(radosgw, variables, tmp_path):
    use_keys(variables, radosgw[0])
    variables.setenv("PENSTOCK_CACHE_DIR", str(tmp_path))
    program = os.path.join(os.environ["PENSTOCK_BIN"], "penstock")
    for words in (["verify"], ["index"]):
        done = subprocess.run([program, *words, "s3://bucket/train/part-*"], capture_output=True, text=True)
        assert done.returncode == 0, done
        assert "900 records" in done.stdout and "3 files" in done.stdout
