"""As much of an HTTP client as `up` needs: is a part healthy, is there a node, create one."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

_TIMEOUT = 5.0


class UnansweredError(Exception):
    """Nobody listens, or what listens is not ready to talk."""


class Api:
    """The API server, spoken to as admin and only if its certificate is from the cluster's own authority."""

    def __init__(self, port: int, certs: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(certs / "ca.crt"))
        self._context.load_cert_chain(certs / "admin.crt", certs / "admin.key")

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=_TIMEOUT, context=self._context)
        status, content = _exchange(connection, method, path, json.dumps(body) if body else None)
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content.decode(errors="replace")


def healthy(port: int, path: str, *, tls: bool) -> bool:
    """Whether a part answers its health check. Unverified: some serve a certificate of their own making."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
    try:
        return _exchange(connection, "GET", path, None)[0] == 200
    except UnansweredError:
        return False


def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: str | None) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise UnansweredError(str(error)) from error
    finally:
        connection.close()
