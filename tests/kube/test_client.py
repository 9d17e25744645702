from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from raykueue.clusters.pki import write_cluster_pki
from raykueue.errors import ClusterError
from raykueue.kube import client as client_module
from raykueue.kube.access import Access
from raykueue.kube.client import Api, ApiError
from raykueue.kube.session import ApiSession
from tests.clusters.server import served


class Server:
    """An API server that answers what a test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        """(method, path with query, headers, body)."""
        self.hangs = threading.Event()
        """Set: it answers. Otherwise it waits, for tests about deadlines."""
        self.hangs.set()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                server.asked.append((self.command, self.path, dict(self.headers), body))
                server.hangs.wait(10)
                status, what = server.answers.pop(0) if server.answers else (200, {})
                if status == 0:  # hangs up
                    self.close_connection = True
                    return
                raw = what if isinstance(what, bytes) else json.dumps(what).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.send_header("Connection", "close")  # so that no thread waits for another request
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with served(server.handler()) as port:
        yield Api(Access(f"http://127.0.0.1:{port}", ca_file="", token="secret"))  # noqa: S106 - of a fake
        server.hangs.set()


def test_a_status_becomes_an_error_with_its_fields(server: Server, api: Api) -> None:
    status = {
        "kind": "Status",
        "code": 409,
        "reason": "AlreadyExists",
        "message": "it exists",
        "details": {"name": "a"},
    }
    server.answers = [(409, status)]
    with pytest.raises(ApiError) as caught:
        api.create("/api/v1/nodes", {"kind": "Node"})
    error = caught.value
    assert (error.code, error.reason, error.message) == (409, "AlreadyExists", "it exists")
    assert error.body["details"] == {"name": "a"}
    assert str(error) == "POST /api/v1/nodes: 409 AlreadyExists: it exists"
    assert isinstance(error, ClusterError)


@pytest.mark.parametrize("body", [b"upstream is down", b"[]", b"", b"\xff\xfe"])
def test_an_error_that_is_no_status_keeps_what_was_said(server: Server, api: Api, body: bytes) -> None:
    server.answers = [(502, body)]
    with pytest.raises(ApiError) as caught:
        api.get("/api")
    assert caught.value.code == 502
    assert caught.value.message == body.decode(errors="replace")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_is_asked_a_second_time(server: Server, api: Api, method: str) -> None:
    server.answers = [(0, None)] * 3
    with pytest.raises(ClusterError, match=rf"{method} /api/v1/pods: no answer from http://127.0.0.1:\d+: "):
        api.request(method, "/api/v1/pods", {"kind": "Pod"})
    assert len(server.asked) == 1


def test_a_redirect_is_no_answer(server: Server, api: Api) -> None:
    server.answers = [(302, {})]
    with pytest.raises(ApiError, match="302"):
        api.get("/api")
    assert len(server.asked) == 1


def test_a_server_that_does_not_answer_is_given_up(server: Server, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    server.hangs.clear()
    monkeypatch.setattr(client_module, "REQUEST_SECONDS", 0.05)
    with pytest.raises(ClusterError, match=r"GET /api: no answer.*timed out"):
        api.get("/api")
    with pytest.raises(ClusterError, match="timed out"):
        api.text("/readyz", seconds=0.05)


def test_nobody_there_is_told_with_the_address() -> None:
    api = Api(Access("http://127.0.0.1:1", ca_file=""))
    with pytest.raises(ClusterError, match=r"GET /api: no answer from http://127.0.0.1:1: .*refused"):
        api.get("/api")


def test_an_answer_that_is_no_json_is_told(server: Server, api: Api) -> None:
    server.answers = [(200, b"<html>")]
    with pytest.raises(ClusterError, match=r"GET /api: .* answered b'<html>', expected JSON"):
        api.get("/api")


def test_deleting_what_is_gone_is_no_error_and_options_are_sent(server: Server, api: Api) -> None:
    server.answers = [(404, {"reason": "NotFound"}), (200, {}), (403, {"reason": "Forbidden"})]
    api.delete("/api/v1/pods/a")
    api.delete("/api/v1/pods/a", propagationPolicy="Foreground")
    assert [body for *_, body in server.asked] == [None, {"propagationPolicy": "Foreground"}]
    with pytest.raises(ApiError, match="Forbidden"):
        api.delete("/api/v1/pods/a")


def test_existence_is_told_and_other_errors_are_raised(server: Server, api: Api) -> None:
    server.answers = [(200, {}), (404, {}), (500, {})]
    assert api.exists("/a")
    assert not api.exists("/a")
    with pytest.raises(ApiError, match="500"):
        api.exists("/a")


@pytest.mark.parametrize(
    ("call", "method", "content", "query"),
    [
        ("create", "POST", "application/json", {}),
        ("merge", "PATCH", "application/merge-patch+json", {}),
        ("apply", "PATCH", "application/apply-patch+yaml", {"fieldManager": ["raykueue"], "force": ["true"]}),
    ],
)
def test_each_way_to_write_has_its_own_form(
    server: Server, api: Api, call: str, method: str, content: str, query: dict[str, list[str]]
) -> None:
    server.answers = [(201, {"stored": True})]
    assert getattr(api, call)("/a", {"b": "ü"}) == {"stored": True}
    ((asked, url, headers, body),) = server.asked
    assert (asked, headers["Content-Type"], body) == (method, content, {"b": "ü"})
    assert parse_qs(urlsplit(url).query) == query


def test_a_query_is_encoded_and_the_token_is_sent(server: Server, api: Api) -> None:
    api.get("/api/v1/pods", labelSelector="a=b,c in (d)")
    ((_, url, headers, _),) = server.asked
    assert parse_qs(urlsplit(url).query) == {"labelSelector": ["a=b,c in (d)"]}
    assert headers["Authorization"] == "Bearer secret"
    assert "Content-Type" not in headers


def test_a_text_is_given_as_it_is(server: Server, api: Api) -> None:
    server.answers = [(200, b"ok"), (200, "cut off ä".encode()[:-1]), (500, b"[-]etcd failed")]
    assert api.text("/readyz") == "ok"
    assert api.text("/log") == "cut off \ufffd"
    with pytest.raises(ApiError, match="etcd failed"):
        api.text("/readyz")


def test_no_proxy_of_the_environment_is_used(server: Server, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    Api(Access(api.server, ca_file="")).get("/api")
    assert len(server.asked) == 1


class Tls:
    """A server that speaks TLS and asks for a client certificate."""

    def __init__(self, folder: Path) -> None:
        write_cluster_pki(folder)
        self.folder = folder
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "api.crt", folder / "api.key")
        self.context.load_verify_locations(folder / "ca.crt")
        self.context.verify_mode = ssl.CERT_REQUIRED

    def access(
        self, port: int, ca_file: str = "ca.crt", cert_file: str = "admin.crt", key_file: str = "admin.key"
    ) -> Access:
        ca, cert, key = (str(self.folder / file) for file in (ca_file, cert_file, key_file))
        return Access(f"https://127.0.0.1:{port}", ca, cert, key)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return Tls(tmp_path_factory.mktemp("tls") / "pki")


def test_over_tls_both_sides_prove_who_they_are(server: Server, tls: Tls) -> None:
    with served(server.handler(), tls.context) as port:
        assert Api(tls.access(port)).get("/api") == {}


def test_a_server_of_another_authority_is_not_talked_to(server: Server, tls: Tls, tmp_path: Path) -> None:
    write_cluster_pki(tmp_path / "other")
    with served(server.handler(), tls.context) as port:
        api = Api(tls.access(port, ca_file=str(tmp_path / "other" / "ca.crt")))
        with pytest.raises(ClusterError, match=r"no answer.*CERTIFICATE_VERIFY_FAILED"):
            api.get("/api")
    assert server.asked == []


@pytest.mark.parametrize("file", ["ca_file", "cert_file"])
def test_a_certificate_that_is_gone_is_an_error_of_the_cluster(server: Server, tls: Tls, file: str) -> None:
    with served(server.handler(), tls.context) as port:
        api = Api(tls.access(port, **{file: "gone"}))
        with pytest.raises(ClusterError, match=r"GET /api: .*No such file"):
            api.get("/api")


def test_what_is_refused_for_now_is_asked_again(server: Server, api: Api) -> None:
    server.answers = [(429, {"reason": "TooManyRequests", "message": "storage is (re)initializing"}), (201, {"a": 1})]
    assert api.create("/api/v1/namespaces", {"b": 2}) == {"a": 1}
    assert [body for _, _, _, body in server.asked] == [{"b": 2}, {"b": 2}]


def test_what_stays_refused_is_an_error_in_the_end(server: Server, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "REQUEST_SECONDS", 0.25)
    server.answers = [(429, {"reason": "TooManyRequests", "message": "not now"})] * 20
    with pytest.raises(ApiError, match="429 TooManyRequests: not now"):
        api.get("/api/v1/namespaces")
    assert 2 <= len(server.asked) < 20


def test_who_says_so_trusts_whoever_answers(server: Server, tls: Tls) -> None:
    with served(server.handler(), tls.context) as port:
        blind = replace(tls.access(port), ca_file="", verify=False)
        assert Api(blind).get("/api") == {}
        with pytest.raises(ClusterError, match="no answer"):
            Api(replace(blind, verify=True)).get("/api")


def test_the_certificate_must_have_the_name_that_is_asked_for(server: Server, tls: Tls) -> None:
    with served(server.handler(), tls.context) as port:
        assert Api(replace(tls.access(port), server_name="localhost")).get("/api") == {}
        with pytest.raises(ClusterError, match="no answer"):
            Api(replace(tls.access(port), server_name="api.internal")).get("/api")


def test_requests_go_through_the_proxy_that_is_named(server: Server) -> None:
    with served(server.handler()) as port:
        access = Access("http://api.internal:6443", ca_file="", proxy=f"http://127.0.0.1:{port}")
        assert Api(access).get("/api") == {}
        assert server.asked[0][1] == "http://api.internal:6443/api"

        async def by_session() -> None:
            async with ApiSession(access) as session:
                await session.get("/apis")

        asyncio.run(by_session())
        assert server.asked[1][1] == "http://api.internal:6443/apis"


def test_each_request_has_the_token_of_its_moment(server: Server) -> None:
    tokens = iter(["one", "two", "three"])
    with served(server.handler()) as port:
        access = Access(f"http://127.0.0.1:{port}", ca_file="", token="old", renewed=lambda: next(tokens))  # noqa: S106
        api = Api(access)
        api.get("/api")
        api.get("/api")

        async def by_session() -> None:
            async with ApiSession(access) as session:
                await session.get("/api")

        asyncio.run(by_session())
    assert [headers["Authorization"] for _, _, headers, _ in server.asked] == [
        "Bearer one",
        "Bearer two",
        "Bearer three",
    ]
