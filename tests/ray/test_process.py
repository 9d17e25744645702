"""The simulated Ray as its neighbours see it: KubeRay over HTTP, the API server, and test processes."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from raykueue.errors import UsageError
from tests.ray.fake_api import head, rayjob, submitter
from tests.ray.harness import Harness, scenario


def test_k8s_job_is_unknown_until_its_submitter_runs_and_terminal_before_it_ends(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert await ray.status("c", "a-1") == 404

        ray.api.put(submitter("a", job_id="a-1"))
        await ray.seen()
        assert await ray.status("c", "a-1") == "RUNNING"

        at_the_end = []

        async def patching(pod: str) -> None:
            at_the_end.append((pod, await ray.status("c", "a-1")))

        ray.api.patching = patching
        answer = await ray.control("finish", "ns", "a")
        assert at_the_end == [("a-1", "SUCCEEDED")]
        pod = ray.api.pod("a-1")
        assert pod["status"]["phase"] == "Succeeded"
        terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (terminated["exitCode"], terminated["startedAt"]) == (0, "2025-01-01T00:00:00Z")
        assert {each["type"]: each["status"] for each in pod["status"]["conditions"]} == {
            "Initialized": "True",
            "Ready": "False",
        }
        _, details = await ray.call("GET", "c", "/api/jobs/a-1")
        assert details["message"] == "Job finished successfully."
        assert details["start_time"] <= details["end_time"]
        assert answer["submission_id"] == "a-1"
        assert answer["submitter"] == "a-1"
        assert answer["times"]["ended"] <= answer["times"]["read"] <= answer["times"]["submitter_ended"]

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a", phase="Pending"))


def test_k8s_job_that_fails_has_a_submitter_that_only_followed_its_logs(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        await ray.control("finish", "ns", "a", 3, message="exit 3")
        assert ray.api.pod("a-1")["status"]["phase"] == "Succeeded"
        _, details = await ray.call("GET", "c", "/api/jobs/a-1")
        assert (details["status"], details["message"], details["driver_exit_code"]) == ("FAILED", "exit 3", 3)

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_a_submitter_exit_code_can_be_given(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        await ray.control("finish", "ns", "a", submitter_exit_code=7)
        status = ray.api.pod("a-1")["status"]
        assert status["phase"] == "Failed"
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_sidecar_ends_its_container_only_and_its_head_runs_on(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert await ray.status("c", "a-1") == "RUNNING"
        await ray.control("finish", "ns", "a", 1)
        status = ray.api.pod("c-head-1")["status"]
        assert status["phase"] == "Running"
        states = {each["name"]: each["state"] for each in status["containerStatuses"]}
        assert "running" in states["ray-head"]
        assert states["ray-job-submitter"]["terminated"]["exitCode"] == 1
        assert [each["reason"] for each in status["conditions"] if each["type"] == "Ready"] == ["ContainersNotReady"]
        await ray.seen()
        assert await ray.status("c", "a-1") == "FAILED"

    scenario(tmp_path, body, rayjob("a", mode="SidecarMode", job_id="a-1", cluster="c"), head("c", sidecar=True))


def test_a_submitter_can_be_kept_until_the_terminal_state_was_read(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        finishing = asyncio.create_task(ray.control("finish", "ns", "a", 1, after_read=lambda: None))
        instructions = ray.process.instructions
        await ray.until(lambda: instructions.state("ns", "a")["status"] == "FAILED")
        await ray.seen()
        assert ray.api.patches == []
        assert await ray.status("c", "a-1") == "FAILED"
        await finishing
        assert [pod for pod, _ in ray.api.patches] == ["c-head-1"]

    scenario(tmp_path, body, rayjob("a", mode="SidecarMode", job_id="a-1", cluster="c"), head("c", sidecar=True))


def test_http_job_exists_once_it_was_posted_and_only_once(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert await ray.status("c", "a-1") == 404
        request = {"submission_id": "a-1", "entrypoint": "python x.py", "metadata": {"k": "v"}}
        assert await ray.call("POST", "c", "/api/jobs/", request) == (200, {"job_id": "a-1", "submission_id": "a-1"})
        code, text = await ray.call("POST", "c", "/api/jobs/", request)
        assert code == 500
        assert "Please use a different submission_id" in text
        _, details = await ray.call("GET", "c", "/api/jobs/a-1")
        assert (details["status"], details["entrypoint"], details["metadata"]) == ("RUNNING", "python x.py", {"k": "v"})
        assert (await ray.control("finish", "ns", "a"))["status"] == "SUCCEEDED"
        assert ray.api.patches == []

    scenario(tmp_path, body, rayjob("a", mode="HTTPMode", job_id="a-1", cluster="c"), head("c"))


def test_nobody_can_submit_to_a_head_that_does_not_run(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        code, text = await ray.call("POST", "c", "/api/jobs/", {"submission_id": "a-1", "entrypoint": "x"})
        assert (code, "no Ray head runs" in text) == (503, True)
        assert (await ray.call("POST", "c", "/api/jobs/", ["no", "object"]))[0] == 400

    scenario(tmp_path, body, rayjob("a", mode="HTTPMode", job_id="a-1", cluster="c"), head("c", phase="Pending"))


def test_interactive_job_is_its_rayjobs_before_and_after_the_rayjob_names_it(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        state = await ray.control("submit", "ns", "a", "mine")
        assert (state["submission_id"], state["status"]) == ("mine", "RUNNING")
        ray.api.put(rayjob("a", mode="InteractiveMode", job_id="mine", cluster="c"))
        await ray.seen()
        state = await ray.control("finish", "ns", "a")
        assert (state["status"], state["runs"]) == ("SUCCEEDED", 1)
        with pytest.raises(UsageError, match="can't be submitted"):
            await ray.control("submit", "ns", "a", "mine")

    scenario(tmp_path, body, rayjob("a", mode="InteractiveMode", cluster="c"), head("c"))


def test_kuberay_stops_a_job_once(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert await ray.call("POST", "c", "/api/jobs/a-1/stop") == (200, {"stopped": True})
        assert await ray.status("c", "a-1") == "STOPPED"
        assert await ray.call("POST", "c", "/api/jobs/a-1/stop") == (200, {"stopped": False})
        assert (await ray.call("POST", "c", "/api/jobs/other/stop"))[0] == 404
        await ray.until(lambda: ray.api.pod("a-1")["status"]["phase"] == "Succeeded")

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_a_user_stops_a_sidecar_job_and_its_submitter_exits_with_0(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert (await ray.control("stop", "ns", "a"))["status"] == "STOPPED"
        (entry,) = [
            each
            for each in ray.api.pod("c-head-1")["status"]["containerStatuses"]
            if each["name"] == "ray-job-submitter"
        ]
        assert entry["state"]["terminated"]["exitCode"] == 0

    scenario(tmp_path, body, rayjob("a", mode="SidecarMode", job_id="a-1", cluster="c"), head("c", sidecar=True))


def test_a_head_that_is_gone_knows_no_job_and_neither_does_the_next(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        ray.api.delete(head("c"))
        await ray.seen()
        assert await ray.status("c", "a-1") == 404
        with pytest.raises(UsageError, match="Ray job a-1 is RUNNING, its head pod is gone"):
            await ray.control("finish", "ns", "a")
        # The connection of the submitter is broken with it.
        await ray.until(lambda: ray.api.pod("a-1")["status"]["phase"] == "Failed")

        ray.api.put(head("c", n=2))
        await ray.seen()
        assert await ray.status("c", "a-1") == 404
        ray.api.put(submitter("a", n=2))
        await ray.seen()
        assert await ray.status("c", "a-1") == "RUNNING"
        assert (await ray.control("state", "ns", "a"))["runs"] == 2

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_a_new_attempt_is_a_new_job_even_while_pods_of_the_old_one_are_left(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        ray.api.put(rayjob("a"))
        await ray.seen()
        state = await ray.control("state", "ns", "a")
        assert (state["submission_id"], state["status"]) == ("a-1", "RUNNING")
        with pytest.raises(UsageError, match=r"nothing was started for it yet .jobDeploymentStatus Suspended"):
            await ray.control("finish", "ns", "a")

        ray.api.put(rayjob("a", job_id="a-2", cluster="c2"), head("c2"))
        await ray.seen()
        assert await ray.status("c2", "a-2") == 404
        ray.api.put(submitter("a", job_id="a-2", n=2))
        await ray.seen()
        assert await ray.status("c2", "a-2") == "RUNNING"
        await ray.control("finish", "ns", "a")
        assert [pod for pod, _ in ray.api.patches] == ["a-2"]
        assert await ray.status("c2", "a-2") == "SUCCEEDED"
        assert await ray.status("c", "a-1") == "RUNNING"

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a", job_id="a-1"))


def test_finish_of_a_job_that_does_not_run_tells_where_it_stands(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        for name, told in (
            ("none", "no such RayJob is known"),
            ("a", "nothing has submitted Ray job a-1 yet .K8sJobMode"),
            ("b", "the head pod of its RayCluster d does not run"),
        ):
            with pytest.raises(UsageError, match=told):
                await ray.control("finish", "ns", name)
        ray.api.put(submitter("a"))
        await ray.seen()
        await ray.control("finish", "ns", "a")
        with pytest.raises(UsageError, match="Ray job a-1 is SUCCEEDED"):
            await ray.control("finish", "ns", "a")

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), rayjob("b", job_id="b-1", cluster="d"))


def test_a_finish_planned_before_the_rayjob_exists_comes_as_soon_as_it_runs(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        assert await ray.control("finish", "ns", "a", 2, when_running=True) == {}
        ray.api.put(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
        await ray.until(lambda: ray.api.pod("a-1")["status"]["phase"] == "Succeeded")
        assert await ray.status("c", "a-1") == "FAILED"
        assert (await ray.control("state", "ns", "a"))["planned"] is None

    scenario(tmp_path, body)


def test_a_held_job_stays_pending_until_it_is_released(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.control("hold", "ns", "a")
        ray.api.put(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
        await ray.seen()
        assert await ray.status("c", "a-1") == "PENDING"
        with pytest.raises(UsageError, match="is PENDING"):
            await ray.control("finish", "ns", "a")
        await ray.control("release", "ns", "a")
        assert await ray.status("c", "a-1") == "RUNNING"
        with pytest.raises(UsageError, match="not held"):
            await ray.control("release", "ns", "a")
        with pytest.raises(UsageError, match="can't be held"):
            await ray.control("hold", "ns", "a")

    scenario(tmp_path, body)


def test_submitters_can_fail_before_they_submit(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.control("fail_submission", "ns", "a", 9, attempts=1)
        ray.api.put(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
        await ray.until(lambda: ray.api.pod("a-1")["status"]["phase"] == "Failed")
        await ray.seen()
        assert await ray.status("c", "a-1") == 404
        ray.api.put(submitter("a", n=2))
        await ray.seen()
        assert await ray.status("c", "a-1") == "RUNNING"
        with pytest.raises(UsageError, match="submitted already"):
            await ray.control("fail_submission", "ns", "a")
        ray.api.put(rayjob("h", mode="HTTPMode", job_id="h-1", cluster="c"))
        await ray.seen()
        with pytest.raises(UsageError, match="no submitter in HTTPMode"):
            await ray.control("fail_submission", "ns", "h")

    scenario(tmp_path, body)


def test_a_conflict_on_the_pods_status_is_tried_again(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        ray.api.refuse_patches = 2
        await ray.control("finish", "ns", "a")
        assert ray.api.pod("a-1")["status"]["phase"] == "Succeeded"

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_a_deleted_rayjob_is_forgotten(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        assert [each["submission_id"] for each in await ray.control("times")] == ["a-1"]
        ray.api.delete(rayjob("a"), submitter("a"), head("c"))
        await ray.seen()
        assert await ray.control("times") == []
        simulation = ray.process.simulation
        assert {namespace for namespace, _ in simulation.heads} == {"marks"}
        assert simulation.plans == {}

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_calls_are_counted_and_unexpected_ones_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def body(ray: Harness) -> None:
        await ray.seen()
        await ray.status("c", "a-1")
        await ray.status("c", "other")
        assert await ray.call("GET", "c", "/api/gcs_healthz") == (200, "success")
        for _ in range(2):
            assert (await ray.call("PUT", "c", "/api/serve/applications/"))[0] == 404
        calls = await ray.control("calls")
        assert calls["answered"]["GET /api/jobs/{id}"] == {"200": 1, "404": 1}
        name = "PUT http://c-head-svc.ns.svc.cluster.local/api/serve/applications/"
        assert calls["unexpected"] == {name: 2}
        assert capsys.readouterr().err == f"unexpected call: {name}\n"

    scenario(tmp_path, body, rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))


def test_the_control_socket_is_its_owners_only_and_names_its_instructions(tmp_path: Path) -> None:
    async def body(ray: Harness) -> None:
        assert stat.S_IMODE(ray.socket.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(str(ray.socket))
        writer.write(b'{"id": 5, "do": "dance"}\nnot json\n{"id": 6, "do": "finish"}\n')
        answers = [await reader.readline() for _ in range(3)]
        writer.close()
        assert b"no instruction 'dance'; there are: calls, fail_submission, finish" in answers[0]
        assert all(b'"kind": "usage"' in answer for answer in answers)

    scenario(tmp_path, body)


def test_hundreds_of_jobs_run_and_end_at_once(tmp_path: Path) -> None:
    names = [f"j{n}" for n in range(300)]

    async def body(ray: Harness) -> None:
        ray.api.put(*(submitter(name) for name in names))
        await ray.seen()
        statuses = await asyncio.gather(*(ray.status(f"{name}-c", f"{name}-id") for name in names))
        assert statuses == ["RUNNING"] * len(names)
        finish = ray.process._finish
        await asyncio.gather(*(finish({"namespace": "ns", "name": name}) for name in names))
        assert {ray.api.pod(f"{name}-1")["status"]["phase"] for name in names} == {"Succeeded"}
        assert len(ray.api.patches) == len(names)

    objects = [
        item for name in names for item in (rayjob(name, job_id=f"{name}-id", cluster=f"{name}-c"), head(f"{name}-c"))
    ]
    scenario(tmp_path, body, *objects)
