"""Certificates for servers that tests and benchmarks start. Debian package: openssl."""

import subprocess


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_certificate(folder, name="localhost", days=2):
    """The paths of a certificate of that name, signed by itself, and of its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", days,
            "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")  # fmt: skip
    return certificate, key


class Authority:
    """Signs certificates that live for a day."""

    def __init__(self, folder, name):
        folder.mkdir()
        self.folder = folder
        self.certificate = folder / "authority.pem"
        self.key = folder / "authority.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 1, "-subj", f"/CN={name}",
                "-keyout", self.key, "-out", self.certificate)

    def sign(self, name, alternative=None, days=1):
        """The certificate's and the key's path."""
        key, request, certificate = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        more = []
        if alternative:
            extensions = self.folder / f"{name}.cnf"
            extensions.write_text(f"subjectAltName={alternative}\n")
            more = ["-extfile", extensions]
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", days, "-out", certificate, *more)
        return certificate, key
