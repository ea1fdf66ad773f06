"""Certificates for servers that tests and benchmarks start. Debian package: openssl."""

import subprocess


def make_certificate(folder, name="localhost", days=2):
    """The paths of a certificate of that name, signed by itself, and of its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", str(days),
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"], check=True, capture_output=True)  # fmt: skip
    return certificate, key
