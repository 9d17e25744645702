"""Requests to one API server as plain JSON."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

from urllib3 import PoolManager, ProxyManager
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from raykueue.errors import ClusterError
from raykueue.kube.access import Access

REQUEST_SECONDS = 20.0
"""No single request of ours may take longer: on a full machine the slowest seen took 2 s."""
RETRY_SECONDS = 0.1
"""Until we ask again what was refused for now. The server says 1 s, to a crowd; a start waits for each of these."""
_TOO_MANY = 429


class ApiError(ClusterError):
    """The API server answered with an error; `code`, `reason` and `body` are its own."""

    def __init__(self, method: str, path: str, code: int, body: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", ""))
        self.body = body
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.message}")


class Api:
    """One API server, one identity. Safe to use from several threads."""

    def __init__(self, access: Access, connections: int = 16) -> None:
        self.server = access.server
        self._access = access
        options: dict[str, Any] = {
            "num_pools": 1,
            "maxsize": connections,
            "ca_certs": access.ca_file or None,
            "cert_file": access.cert_file or None,
            "key_file": access.key_file or None,
        }
        if not access.verify:
            options |= {"cert_reqs": "CERT_NONE", "assert_hostname": False}
        elif access.server_name:
            options |= {"server_hostname": access.server_name, "assert_hostname": access.server_name}
        self._pool = ProxyManager(access.proxy, **options) if access.proxy else PoolManager(**options)
        if not access.verify:  # said once in its kubeconfig; not again with each request
            warnings.filterwarnings("ignore", category=InsecureRequestWarning)

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The object or list at `path`.

        Raises:
            ApiError: any status but 2xx; `.code` tells which.
            ClusterError: no answer.
        """
        return self.request("GET", path, query=query)

    def exists(self, path: str) -> bool:
        """Whether there is an object at `path`."""
        try:
            self.get(path)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def create(self, path: str, body: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Posts `body` to the collection at `path` and returns what was stored."""
        return self.request("POST", path, body, query=query)

    def merge(self, path: str, patch: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """JSON merge patch of one object."""
        return self.request("PATCH", path, patch, query=query, content="application/merge-patch+json")

    def apply(self, path: str, body: Mapping[str, Any], manager: str = "raykueue") -> dict[str, Any]:
        """Server-side apply of one object, as its only owner."""
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, body, query=query, content="application/apply-patch+yaml")

    def delete(self, path: str, **options: Any) -> None:
        """Deletes one object; one that is gone already is no error. `options` are DeleteOptions."""
        try:
            self.request("DELETE", path, options or None)
        except ApiError as error:
            if error.code != 404:
                raise

    def text(self, path: str, seconds: float = REQUEST_SECONDS) -> str:
        """The body of an answer that is no JSON, such as /readyz."""
        return self._send("GET", path, None, {}, "application/json", seconds).decode(errors="replace")

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> dict[str, Any]:
        """One request, one decoded answer."""
        answer = self._send(method, path, body, query or {}, content, REQUEST_SECONDS)
        try:
            return cast("dict[str, Any]", json.loads(answer))
        except ValueError as error:
            raise ClusterError(f"{method} {path}: {self.server} answered {answer[:300]!r}, expected JSON") from error

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        content: str,
        seconds: float,
    ) -> bytes:
        url = self.server + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", **self._access.headers()}
        if body is not None:
            headers["Content-Type"] = content
        data = None if body is None else json.dumps(body, separators=(",", ":"))
        deadline = time.monotonic() + seconds
        while True:
            try:
                # No retries: a repeated create would hide that the first one worked.
                answer = self._pool.request(method, url, body=data, headers=headers, timeout=seconds, retries=False)
            except (HTTPError, OSError) as error:  # OSError: a certificate or key is gone
                raise ClusterError(f"{method} {path}: no answer from {self.server}: {error}") from error
            if answer.status != _TOO_MANY or time.monotonic() > deadline:
                break
            # It did nothing: too much at once, or the storage of a new kind is just being prepared.
            time.sleep(RETRY_SECONDS)
        if answer.status >= 300:
            raise ApiError(method, path, answer.status, _status(answer.data))
        return bytes(answer.data)


def _status(data: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(data)
    except ValueError:
        return {"message": data[:300].decode(errors="replace")}
    return body if isinstance(body, dict) else {"message": str(body)}
