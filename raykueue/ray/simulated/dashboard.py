"""Every head's dashboard at one port: KubeRay sends its plain HTTP calls here as to a proxy, with absolute URLs.

Paths and answers are those of ray-project/ray python/ray/dashboard/modules/job/job_head.py@017deaf, of which KubeRay
reads little (ray-operator controllers/ray/utils/dashboardclient/dashboard_httpclient.go@v1.6.2).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web

from raykueue.ray.simulated.jobs import Job
from raykueue.ray.simulated.simulation import EndSubmitter, Simulation

HEALTH_PATHS = ("/api/gcs_healthz", "/api/local_raylet_healthz", "/api/healthz")
UNKNOWN = "(unknown path)"


class Dashboard:
    """The HTTP side of a simulation. `end` is given the submitters that a call ends; `read` is told of terminal reads.

    Attributes:
        calls: how often each (method, path pattern, HTTP status) was answered.
        unexpected: calls that no answer is known for, as "GET http://…", with how often.
    """

    def __init__(
        self,
        simulation: Simulation,
        end: Callable[[list[EndSubmitter]], None],
        read: Callable[[Job], None],
    ) -> None:
        self.calls: Counter[tuple[str, str, int]] = Counter()
        self.unexpected: Counter[str] = Counter()
        self._simulation = simulation
        self._end = end
        self._read = read

    def application(self) -> web.Application:
        """To be served by an aiohttp runner."""
        application = web.Application(middlewares=[self._counted])
        application.router.add_get("/api/jobs/", self._list)
        application.router.add_post("/api/jobs/", self._submit)
        application.router.add_get("/api/jobs/{id}", self._get)
        application.router.add_post("/api/jobs/{id}/stop", self._stop)
        application.router.add_get("/api/jobs/{id}/logs", self._logs)
        application.router.add_get("/api/version", self._version)
        for path in HEALTH_PATHS:
            application.router.add_get(path, self._healthy)
        return application

    @web.middleware
    async def _counted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        resource = request.match_info.route.resource
        try:
            answer = await handler(request)
        except web.HTTPException as error:
            answer = web.Response(status=error.status, text=error.text)
        if resource is None:
            called = f"{request.method} http://{request.host.partition(':')[0]}{request.rel_url.raw_path}"
            if called not in self.unexpected:
                print(f"unexpected call: {called}", file=sys.stderr, flush=True)  # noqa: T201 - a process's log
            self.unexpected[called] += 1
        path = resource.canonical if resource is not None else UNKNOWN
        self.calls[request.method, path, answer.status] += 1
        return answer

    async def _get(self, request: web.Request) -> web.Response:
        job = self._find(request)
        answer = web.json_response(job.details())
        self._read(job)
        return answer

    async def _list(self, request: web.Request) -> web.Response:
        jobs = self._simulation.jobs_of(*_addressed(request))
        if jobs is None:
            return _no_head(request)
        return web.json_response([job.details() for job in jobs])

    async def _submit(self, request: web.Request) -> web.Response:
        try:
            body = await request.json()
            submission_id = str(body["submission_id"])
        except (ValueError, KeyError, TypeError) as error:
            return web.Response(status=400, text=f"not a job submission: {error!r}")
        try:
            _, ends = self._simulation.submit(*_addressed(request), body)
        except LookupError:
            return _no_head(request)
        except ValueError:
            # KubeRay knows this sentence by heart.
            text = f"Job with submission_id {submission_id} already exists. Please use a different submission_id."
            return web.Response(status=500, text=text)
        self._end(ends)
        return web.json_response({"job_id": submission_id, "submission_id": submission_id})

    async def _stop(self, request: web.Request) -> web.Response:
        was_running, ends = self._simulation.stopped(self._find(request))
        self._end(ends)
        return web.json_response({"stopped": was_running})

    async def _logs(self, request: web.Request) -> web.Response:
        self._find(request)
        return web.json_response({"logs": ""})

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "4", "ray_version": "simulated", "ray_commit": "", "session_name": ""})

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="success")

    def _find(self, request: web.Request) -> Job:
        submission_id = request.match_info["id"]
        job = self._simulation.find(*_addressed(request), submission_id)
        if job is None:
            raise web.HTTPNotFound(text=f"Job {submission_id} does not exist")
        return job


def _addressed(request: web.Request) -> tuple[str, str]:
    """Namespace and Service of `<service>.<namespace>.svc.<domain>:<port>`."""
    service, _, rest = request.host.partition(".")
    return rest.partition(".")[0], service


def _no_head(request: web.Request) -> web.Response:
    """What takes the place of a refused connection."""
    return web.Response(status=503, text=f"no Ray head runs behind {request.host}")
