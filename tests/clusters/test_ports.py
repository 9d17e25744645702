from __future__ import annotations

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from raykueue.clusters.embedded import ports as ports_module
from raykueue.clusters.embedded.ports import Ports
from raykueue.errors import ClusterError


def test_a_purpose_has_the_same_port_ever_after_and_no_other_has_it() -> None:
    ports = Ports()
    first = [ports(str(number)) for number in range(50)]
    assert len(set(first)) == 50
    assert [ports(str(number)) for number in range(50)] == first
    assert ports.table() == {str(number): port for number, port in enumerate(first)}


def test_ports_have_five_digits_and_are_none_that_connections_get() -> None:
    assert all(10000 <= port < 30000 for port in (Ports()("a") for _ in range(50)))


def test_a_taken_port_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports_module, "_FIRST", port)
        monkeypatch.setattr(ports_module, "_LAST", port)
        with pytest.raises(ClusterError, match=f"no free port between {port} and {port} on 127.0.0.1 after 200 tries"):
            Ports()("etcd")


def test_ports_of_a_running_cluster_are_taken_over_without_a_look() -> None:
    ports = Ports()
    ports.restore({"etcd": 1})
    assert ports("etcd") == 1
    assert ports("other") != 1


def test_threads_that_ask_for_one_purpose_at_once_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    ports, together = Ports(), threading.Barrier(2, timeout=0.2)

    def both_look(_port: int) -> bool:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait()  # passed only if both look at the same time
        return True

    monkeypatch.setattr(ports_module, "_is_free", both_look)
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(ports, ["ray dashboard"] * 2))) == 1
