"""Who refuses a RayJob, which field, and in which words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from raykueue.errors import ProductDefect, WaitFailed
from raykueue.kube.client import ApiError
from raykueue.kube.refusals import DENIED
from raykueue.model.deletion.expected import By, Refusal
from raykueue.model.views import status
from raykueue.run.job import Job
from raykueue.run.states import Running, ValidationFailed
from raykueue.run.timeouts import DEFAULT, Timeouts

_WEBHOOKS: Mapping[str, By] = {"rayjob.kb.io": "Kueue"}
"""By the end of a webhook's name. KubeRay's own is not installed by default."""
_CAUSE = re.compile(r"(?P<field>[A-Za-z][\w.\[\]]*): (?P<kind>[A-Z][\w ]+?)(?: value)?: (?P<rest>.*)", re.DOTALL)
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s:"]+): ')
_KINDS = ("Invalid value", "Unsupported value", "Required value", "Forbidden")


class Refused(ProductDefect):
    """The API server or a webhook did not take a RayJob. Where nobody expected it, that is the product's failure."""

    def __init__(self, error: ApiError) -> None:
        self.error = error
        super().__init__(f"a RayJob was refused: {error.message}")


def refusal(
    submit: Callable[[Mapping[str, Any]], Job], manifest: Mapping[str, Any], timeouts: Timeouts = DEFAULT
) -> Refusal:
    """Submits a RayJob that somebody refuses.

    Raises:
        WaitFailed: nobody does; it runs, or nothing is said in time.
    """
    try:
        job = submit(manifest)
    except Refused as answer:
        return of_answer(answer.error.message, answer.error.body)

    def look(_: object) -> bool | None:
        if job.history.is_in(Running):
            raise WaitFailed(f"{job}: expected to be refused, but it runs")
        return True if job.history.is_in(ValidationFailed) else None

    try:
        job.history.feed.wait(look, time.monotonic() + timeouts.state)
    except TimeoutError:
        raise WaitFailed(
            f"{job}: expected to be refused within {timeouts.state:g} s, but nobody did; it is {job.said}"
        ) from None
    return Refusal("KubeRay", "", str(status(job.history.rayjob() or {}).get("message", "")))


def of_answer(message: str, body: Mapping[str, Any]) -> Refusal:
    """What an answer of the API server says: that a webhook denied it, or that it did itself."""
    denied = DENIED.search(message)
    if denied is not None:
        webhook = denied["webhook"]
        who = next((by for end, by in _WEBHOOKS.items() if webhook.endswith(end)), None)
        if who is None:
            raise WaitFailed(f"the webhook {webhook}, which nobody expected, denied the RayJob: {denied['text']}")
        return _of_cause(who, denied["text"])
    causes = (body.get("details") or {}).get("causes") or ()
    if causes:
        return Refusal("API server", str(causes[0].get("field", "")), _without_value(str(causes[0]["message"])))
    return _of_cause("API server", message)


def _of_cause(who: By, text: str) -> Refusal:
    """`spec.field: Invalid value: false: the words`, as k8s.io/apimachinery's field errors are written."""
    found = _CAUSE.match(text)
    if found is None:
        return Refusal(who, "", text)
    return Refusal(who, found["field"], _VALUE.sub("", found["rest"], count=1))


def _without_value(text: str) -> str:
    """Of a cause only the words: `Invalid value: "object": the words`."""
    kind, _, rest = text.partition(": ")
    return _VALUE.sub("", rest, count=1) if rest and kind in _KINDS else text
