from __future__ import annotations

import stat
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

import pytest
import yaml

from raykueue.clusters.embedded import seats as seats_module
from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.embedded.ports import Ports
from raykueue.clusters.embedded.seats import Components, answers, clean_environment
from raykueue.clusters.protocol import ComponentSpec, Process, Seat, ServiceAccount
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.client import Api
from tests.clusters.processes import ends_with, sleeper, until
from tests.clusters.server import served


class NotYet(BaseHTTPRequestHandler):
    """Answers 503 twice, then 200."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(200 if self.asked > 2 else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def spec(argv: list[str], ready_url: str = "", **files: str) -> ComponentSpec:
    def process(seat: Seat) -> Process:
        return Process(argv, env={"HTTP_PROXY": "http://ray"}, files=files, ready_url=ready_url)

    return ComponentSpec("part", None, process)


def components(keeping: Keeping, *specs: ComponentSpec) -> Components:
    return Components(keeping.folder, Ports(), keeping, specs)


def test_a_component_has_its_files_before_it_starts_and_only_its_user_can_read_them(keeping: Keeping) -> None:
    argv = ["sh", "-c", "cat certs/tls.key; echo $HTTP_PROXY; exec sleep 300"]
    parts = components(keeping, spec(argv, **{"certs/tls.key": "secret"}))
    parts.folder_of("part").mkdir(mode=0o700)
    parts.start("part")
    until(lambda: (keeping.folder / "part.log").read_text() == "secrethttp://ray\n")
    path = keeping.folder / "part" / "certs" / "tls.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_is_ready_once_its_url_answers(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotYet, "asked", 0)
    with served(NotYet) as port:
        parts = components(keeping, spec(sleeper(), ready_url=f"http://127.0.0.1:{port}/readyz"))
        parts.folder_of("part").mkdir()
        parts.start("part")
        parts.wait_ready("part")
        assert NotYet.asked == 3


def test_one_that_ends_instead_is_told_at_once_with_its_last_words(keeping: Keeping) -> None:
    parts = components(keeping, spec(ends_with("no certificate", 1), ready_url="http://127.0.0.1:1/"))
    parts.folder_of("part").mkdir()
    parts.start("part")
    with pytest.raises(ComponentDied, match="no certificate"):
        parts.wait_ready("part")


def test_one_that_is_never_ready_is_given_up_with_its_last_words(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats_module, "READY_SECONDS", 0.05)
    parts = components(keeping, spec(sleeper(), ready_url="http://127.0.0.1:1/"))
    parts.folder_of("part").mkdir()
    parts.start("part")
    with pytest.raises(ClusterError, match="part was not ready after 0 s; the end of its log"):
        parts.wait_ready("part")


def test_an_account_gets_a_token_of_its_own_and_nobody_else_the_administrators(keeping: Keeping) -> None:
    asked: list[tuple[str, Any]] = []

    class TokenApi:
        server = "https://127.0.0.1:1"

        def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
            asked.append((path, body["spec"]))
            return {"status": {"token": "of the account"}}

    admin = keeping.folder / "kubeconfig"
    admin.write_text("of the administrator")
    with_account = replace(spec(sleeper()), account=ServiceAccount("kueue-system", "manager"))
    components(keeping, with_account).give_identity("part", cast("Api", TokenApi()), admin)
    written = keeping.folder / "part" / "kubeconfig"
    document = yaml.safe_load(written.read_text())
    assert document["users"] == [{"name": "raykueue", "user": {"token": "of the account"}}]
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert asked == [
        (
            "/api/v1/namespaces/kueue-system/serviceaccounts/manager/token",
            {"expirationSeconds": seats_module.TOKEN_SECONDS},
        )
    ]
    components(keeping, spec(sleeper())).give_identity("part", cast("Api", None), admin)
    assert written.read_text() == "of the administrator"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_ports_of_services_are_known_by_their_names(keeping: Keeping) -> None:
    parts = components(keeping)
    port = parts.service_port("kueue-system", "webhook")
    assert parts.service_ports() == {"kueue-system/webhook": port}


def test_nothing_in_the_environment_leads_a_component_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "https_proxy", "NO_PROXY", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "RAYKUEUE_STATE"):
        monkeypatch.setenv(name, "elsewhere")
    found = clean_environment({"HTTP_PROXY": "http://ray", "GOGC": "400"})
    assert "elsewhere" not in found.values()
    assert (found["HTTP_PROXY"], found["GOGC"]) == ("http://ray", "400")
    assert "PATH" in found


def test_only_200_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoHttp(NotYet):
        def handle(self) -> None:
            self.wfile.write(b"this is no http\r\n\r\n")

    monkeypatch.setattr(NotYet, "asked", 0)
    with served(NotYet) as port:
        assert [answers(f"http://127.0.0.1:{port}/") for _ in range(3)] == [False, False, True]
    with served(NoHttp) as port:
        assert not answers(f"http://127.0.0.1:{port}/")
    assert not answers(f"http://127.0.0.1:{port}/")
