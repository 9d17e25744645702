"""References of container images, which may be spelled in several ways. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_DOCKER = "docker.io"
_OLD_NAME = "index.docker.io"


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference with all that its spelling may leave out."""

    repository: str
    """With its registry: "docker.io/library/busybox"."""
    tag: str
    """Empty only beside a digest."""
    digest: str
    """ "sha256:…", or empty."""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """As docker and containerd read it (github.com/distribution/reference normalize.go)."""
        named, _, digest = text.strip().partition("@")
        head, slash, last = named.rpartition("/")
        last, _, tag = last.partition(":")
        named = f"{head}{slash}{last}"
        first, slash, rest = named.partition("/")
        if not slash or not (first == "localhost" or set(".:") & set(first) or first != first.lower()):
            first, rest = _DOCKER, named
        if first == _OLD_NAME:
            first = _DOCKER
        if first == _DOCKER and "/" not in rest:
            rest = f"library/{rest}"
        return cls(f"{first}/{rest}", tag or ("" if digest else "latest"), digest)


def same_image(one: str, other: str) -> bool:
    """Whether two references name the same image, as far as references tell.

    With a digest on both sides that decides, since it names the content; else repository and tag do.
    """
    if not one or not other:
        return False
    a, b = Reference.parse(one), Reference.parse(other)
    if a.repository != b.repository:
        return False
    return a.digest == b.digest if a.digest and b.digest else bool(a.tag) and a.tag == b.tag
