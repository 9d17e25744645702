from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from raykueue.clusters.kind.commands import Commands, environment
from tests.clusters.kind.tools import Tools


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools(tmp_path / "tools")
    monkeypatch.setenv("PATH", tools.path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return tools


@pytest.fixture
def commands(tools: Tools, tmp_path: Path) -> Commands:
    return Commands(environment(tmp_path / "kind.kubeconfig", "raykueue-dev"))


class PytestKindsCluster:
    """What we use of pytest_kind.KindCluster (pytest_kind/cluster.py@26.7.0), so that the extra need not be there."""

    def __init__(
        self, name: str, kubeconfig: Path, image: str | None = None, kind_path: Any = None, kubectl_path: Any = None
    ) -> None:
        self.name, self.image = name, image
        self.path = Path(".pytest-kind") / name
        self.path.mkdir(parents=True, exist_ok=True)
        self.kubeconfig_path, self.kind_path, self.kubectl_path = kubeconfig, kind_path, kubectl_path

    def ensure_kubectl(self) -> None:
        raise AssertionError("something is downloaded")

    def kubectl(self, *words: str, **_: Any) -> str:
        self.ensure_kubectl()
        return f"{self.kubectl_path} {self.kubeconfig_path} {' '.join(words)}"


@pytest.fixture
def extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if pytest-kind were installed."""
    module = ModuleType("pytest_kind")
    monkeypatch.setattr(module, "KindCluster", PytestKindsCluster, raising=False)
    monkeypatch.setitem(sys.modules, "pytest_kind", module)
    monkeypatch.chdir(tmp_path)
