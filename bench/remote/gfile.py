"""What TensorFlow's gfile says to an object of S3. One JSON line.

    python gfile.py s3://BUCKET/NAME
"""

import json
import sys

import tensorflow as tf


def main():
    try:
        with tf.io.gfile.GFile(sys.argv[1], "rb") as file:
            print(json.dumps({"version": tf.__version__, "bytes": len(file.read(1024))}))
    except tf.errors.OpError as error:
        print(json.dumps({"version": tf.__version__, "cannot": error.message[:300]}))


main()
