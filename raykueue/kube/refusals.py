"""Whether an answer of the API server is a refusal of what was sent, and by which webhook."""

from __future__ import annotations

import re

from raykueue.kube.client import ApiError

DENIED = re.compile(r'admission webhook "(?P<webhook>[^"]+)" denied the request: (?P<text>.*)', re.DOTALL)
_REFUSING = (400, 422)


def refused(error: ApiError) -> bool:
    """It is about what was sent: not about who sent it, or about the cluster."""
    return error.code in _REFUSING or (error.code == 403 and DENIED.search(error.message) is not None)
