from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raykueue.clusters.kind.commands import CommandFailed, Commands
from raykueue.clusters.kind.docker import Docker
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools

STOPPED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@pytest.fixture
def docker(commands: Commands) -> Docker:
    return Docker(commands)


def test_what_docker_says_of_itself(tools: Tools, docker: Docker) -> None:
    tools.answer("info", out='{"DockerRootDir": "/var/lib/docker"}')
    assert docker.info() == {"DockerRootDir": "/var/lib/docker"}


@pytest.mark.parametrize(
    "answer",
    [
        {"err": STOPPED, "code": 1},
        {"out": f'{{"ServerErrors": ["{STOPPED}"]}}'},
        {"out": "", "err": STOPPED},
    ],
    ids=["fails", "answers for itself", "says nothing"],
)
def test_a_docker_that_is_stopped_is_told_in_one_line(tools: Tools, docker: Docker, answer: dict[str, Any]) -> None:
    tools.answer("info", **answer)
    with pytest.raises(ClusterError) as told:
        docker.info()
    text = str(told.value)
    assert text.startswith("Docker does not answer (the default context): ")
    assert "set DOCKER_HOST; `--cluster embedded` needs no Docker" in text
    assert "\n" not in text


def test_an_image_that_is_not_there_has_no_id(tools: Tools, docker: Docker) -> None:
    tools.answer("there:1", out="sha256:abc")
    tools.answer("missing:1", err="Error response from daemon: No such image: missing:1", code=1)
    tools.answer("broken:1", err="permission denied", code=1)
    assert docker.image_id("there:1") == "sha256:abc"
    assert docker.image_id("missing:1") == ""
    with pytest.raises(CommandFailed, match="permission denied"):
        docker.image_id("broken:1")


def test_only_the_nodes_of_one_cluster_are_asked_for(tools: Tools, docker: Docker) -> None:
    tools.answer("ps", out="raykueue-dev-worker running\nraykueue-dev-control-plane exited\n")
    assert docker.nodes("raykueue-dev") == {"raykueue-dev-worker": "running", "raykueue-dev-control-plane": "exited"}
    assert "label=io.x-k8s.kind.cluster=raykueue-dev" in tools.calls[0]


def test_an_image_is_saved_and_pulled_by_its_reference(tools: Tools, docker: Docker, tmp_path: Path) -> None:
    docker.save("a:1", tmp_path / "a.tar")
    docker.pull("a:1")
    assert tools.calls == [
        ["docker", "save", "--output", str(tmp_path / "a.tar"), "a:1"],
        ["docker", "pull", "--quiet", "a:1"],
    ]
