"""The few things done to etcd directly, over its JSON gateway, before any API server looks at it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from raykueue.errors import ClusterError

_OPENER = build_opener(ProxyHandler({}))  # never through a proxy: it is on loopback


class Etcd:
    """One etcd on loopback."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/v3"

    def answers(self) -> bool:
        """Whether it serves reads, that is, has elected itself."""
        try:
            self._post("kv/range", {"key": _b64(b"/")})
        except ClusterError:
            return False
        return True

    def delete(self, prefix: str) -> None:
        """Deletes every key that begins with `prefix`."""
        self._post("kv/deleterange", {"key": _b64(prefix.encode()), "range_end": _after(prefix)})

    def replace(self, prefix: str, texts: Mapping[bytes, bytes]) -> int:
        """Replaces texts by texts of the same length in every value below `prefix`; returns how many changed.

        The same length, since some values are protobuf, where a length stands before each text. All at once, so that
        what replaced one text is not taken for another: the new port of one may be the old port of the next.
        """
        if not texts:
            return 0
        for old, new in texts.items():
            if len(old) != len(new):
                raise ValueError(f"{old!r} and {new!r} differ in length")
        wanted = re.compile(b"|".join(re.escape(old) for old in texts))
        changed = 0
        for pair in self._post("kv/range", {"key": _b64(prefix.encode()), "range_end": _after(prefix)}).get("kvs", []):
            before = base64.b64decode(pair.get("value", ""))  # an empty value is left out of the answer
            value = wanted.sub(lambda found: texts[found[0]], before)
            if value != before:
                self._post("kv/put", {"key": pair["key"], "value": _b64(value)})
                changed += 1
        return changed

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        # Always http on loopback (see __init__), so the check for other schemes is silenced.
        request = Request(f"{self._base}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
        try:
            with _OPENER.open(request, timeout=5) as answer:
                decoded: dict[str, Any] = json.load(answer)
                return decoded
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise ClusterError(f"etcd at {self._base}/{path}: {error}") from error


def _after(prefix: str) -> str:
    raw = prefix.encode()
    return _b64(raw[:-1] + bytes([raw[-1] + 1]))


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
