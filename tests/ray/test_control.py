"""The control client against sockets that misbehave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raykueue.errors import InfraError, UsageError
from raykueue.ray.control import RayControl, SimulatedRay


@contextmanager
def answering(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[SimulatedRay]:
    """A socket that takes one connection, reads one request, and does `answer`."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            answer(connection)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield SimulatedRay(path, deadline_s=5)
        thread.join()


def test_the_simulated_ray_is_a_ray_control(tmp_path: Path) -> None:
    control: RayControl = SimulatedRay(tmp_path / "ray.sock")
    with pytest.raises(InfraError, match=r"finish ns/a: .*ray\.sock does not answer"):
        control.finish("ns", "a")


def test_an_answer_in_pieces_is_put_together(tmp_path: Path) -> None:
    def answer(connection: socket.socket) -> None:
        for piece in (b'{"id": 1, "ok"', b': {"status": "RUNNING"}}', b"\n"):
            connection.sendall(piece)

    with answering(tmp_path / "s", answer) as control:
        assert control.state("ns", "a") == {"status": "RUNNING"}


@pytest.mark.parametrize(("kind", "expected"), [("usage", UsageError), ("infra", InfraError)])
def test_a_refusal_names_the_job_and_says_whose_fault_it_is(
    tmp_path: Path, kind: str, expected: type[Exception]
) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b'{"id": 1, "error": "no", "kind": "%s"}\n' % kind.encode())

    with answering(tmp_path / "s", answer) as control, pytest.raises(expected, match="simulated Ray, stop ns/a: no"):
        control.stop("ns", "a")


def test_a_connection_that_is_closed_without_an_answer_is_infrastructure(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "s", lambda connection: connection.sendall(b'{"id"')) as control,
        pytest.raises(InfraError, match="simulated Ray, calls: the connection was closed"),
    ):
        control.calls()


def test_silence_ends_at_the_deadline(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        with pytest.raises(InfraError, match=r"no answer within 0\.05 s"):
            SimulatedRay(tmp_path / "s", deadline_s=0.05).times()
