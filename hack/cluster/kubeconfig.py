"""Kubeconfig files, with the certificates inside: such a file can be copied anywhere on the machine."""

import base64
from pathlib import Path


def write(path: Path, *, certs: Path, user: str, port: int) -> None:
    """Let `path` log in to the API server on `port` with the certificate `user`.crt."""
    text = f"""\
apiVersion: v1
kind: Config
clusters:
- name: cronwright
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority-data: {_encoded(certs / "ca.crt")}
users:
- name: {user}
  user:
    client-certificate-data: {_encoded(certs / f"{user}.crt")}
    client-key-data: {_encoded(certs / f"{user}.key")}
contexts:
- name: cronwright
  context: {{cluster: cronwright, user: {user}}}
current-context: cronwright
"""
    path.touch(mode=0o600)
    path.write_text(text)


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
