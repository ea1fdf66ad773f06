"""Puts files into a bucket of an S3 server, by boto3.

    python put_objects.py URL_OF_THE_SERVER KEY SECRET BUCKET FILE…
"""

import pathlib
import sys

import boto3


def main():
    server, key, secret, bucket, *files = sys.argv[1:]
    store = boto3.client("s3", endpoint_url=server, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1")
    store.create_bucket(Bucket=bucket)
    for file in map(pathlib.Path, files):
        store.put_object(Bucket=bucket, Key=file.name, Body=file.read_bytes())


main()
