from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from raykueue.clusters.embedded.etcd import Etcd
from raykueue.errors import ClusterError
from tests.clusters.server import served


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


class FakeEtcd:
    """The JSON gateway of one etcd."""

    def __init__(self, **values: bytes) -> None:
        self.values = {key.encode(): value for key, value in values.items()}
        self.puts: list[bytes] = []
        self.broken = False

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        key = base64.b64decode(body["key"])
        end = base64.b64decode(body["range_end"]) if "range_end" in body else key + b"\0"
        keys = [one for one in sorted(self.values) if key <= one < end]
        match path:
            case "/v3/kv/range":
                # As the gateway does it: what is empty is left out.
                pairs = [{"key": b64(k), **({"value": b64(self.values[k])} if self.values[k] else {})} for k in keys]
                return {"header": {}, **({"kvs": pairs, "count": str(len(pairs))} if pairs else {})}
            case "/v3/kv/put":
                self.puts.append(key)
                self.values[key] = base64.b64decode(body["value"])
            case "/v3/kv/deleterange":
                for one in keys:
                    del self.values[one]
        return {"header": {}}


@contextmanager
def running(fake: FakeEtcd) -> Iterator[Etcd]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if fake.broken:
                self.send_error(503, "etcdserver: no leader")
                return
            answer = json.dumps(fake.answer(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with served(Handler) as port:
        yield Etcd(port)


def test_it_answers_once_it_serves_reads() -> None:
    fake = FakeEtcd()
    with running(fake) as etcd:
        assert etcd.answers()
        fake.broken = True
        assert not etcd.answers()
    assert not etcd.answers()


def test_an_error_names_the_request_and_the_reason() -> None:
    fake = FakeEtcd()
    fake.broken = True
    with running(fake) as etcd, pytest.raises(ClusterError, match=r"v3/kv/deleterange: .*503.*no leader"):
        etcd.delete("/a/")


def test_every_key_below_a_prefix_is_deleted_and_no_other() -> None:
    fake = FakeEtcd(**{"/a/1": b"", "/a/2/3": b"", "/a": b"", "/a0": b"", "/b/1": b""})
    with running(fake) as etcd:
        etcd.delete("/a/")
    assert sorted(fake.values) == [b"/a", b"/a0", b"/b/1"]


def test_texts_are_replaced_below_the_prefix_only_and_only_what_changes_is_written() -> None:
    fake = FakeEtcd(**{"/a/1": b"\x0a\x05 :11111/ :11111/", "/a/2": b"other", "/a/3": b"", "/b/1": b":11111/"})
    with running(fake) as etcd:
        assert etcd.replace("/a/", {b":11111/": b":22222/"}) == 1
    assert fake.values[b"/a/1"] == b"\x0a\x05 :22222/ :22222/"
    assert fake.values[b"/b/1"] == b":11111/"
    assert fake.puts == [b"/a/1"]


def test_a_new_text_is_not_taken_for_another_old_one() -> None:
    fake = FakeEtcd(**{"/a/1": b":11111/ :22222/"})
    with running(fake) as etcd:
        etcd.replace("/a/", {b":11111/": b":22222/", b":22222/": b":11111/"})
    assert fake.values[b"/a/1"] == b":22222/ :11111/"


def test_a_text_is_no_pattern() -> None:
    fake = FakeEtcd(**{"/a/1": b"127x0 127.0"})
    with running(fake) as etcd:
        etcd.replace("/a/", {b"127.0": b"127.1"})
    assert fake.values[b"/a/1"] == b"127x0 127.1"


def test_without_texts_nothing_is_asked() -> None:
    assert Etcd(1).replace("/a/", {}) == 0


def test_texts_of_different_length_are_refused_before_anything_changes() -> None:
    fake = FakeEtcd(**{"/a/1": b":11111/ :222/"})
    with running(fake) as etcd, pytest.raises(ValueError, match="differ in length"):
        etcd.replace("/a/", {b":11111/": b":33333/", b":222/": b":4444/"})
    assert fake.puts == []
