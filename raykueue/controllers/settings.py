"""How the controllers are configured beyond what they ship: what a test may ask for, and the suite's own defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of both controllers, compared by content: equal settings need no restart."""

    kuberay_gates: Mapping[str, bool] = field(default_factory=dict)
    kueue_gates: Mapping[str, bool] = field(default_factory=dict)
    kueue_config: Mapping[str, Any] = field(default_factory=dict)
    """Merged into Kueue's shipped configuration file: {"waitForPodsReady": {"timeout": "10s"}}."""
    kuberay_env: Mapping[str, str] = field(default_factory=dict)

    def key(self) -> str:
        """The same for equal settings; sorts."""
        return json.dumps(self.as_dict(), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kuberay_gates": dict(self.kuberay_gates),
            "kueue_gates": dict(self.kueue_gates),
            "kueue_config": dict(self.kueue_config),
            "kuberay_env": dict(self.kuberay_env),
        }


DEFAULT = Settings()


def merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `extra` laid over it, mapping by mapping."""
    result = dict(base)
    for key, value in extra.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def gates_flag(gates: Mapping[str, bool]) -> list[str]:
    """`--feature-gates=A=true,B=false`, or nothing."""
    return [f"--feature-gates={','.join(f'{k}={str(v).lower()}' for k, v in sorted(gates.items()))}"] if gates else []
