import subprocess
from pathlib import Path

import pytest

from raykueue.clusters.embedded.mounts import can_mount, mounted

needs_namespaces = pytest.mark.skipif(not can_mount(), reason="this kernel or container allows no user namespaces")


@needs_namespaces
def test_a_process_sees_the_folder_at_the_path_it_insists_on(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("certificate")

    argv = mounted(["cat", "/etc/kueue/metrics/certs/tls.crt"], {"/etc/kueue/metrics/certs": tmp_path})

    assert subprocess.run(argv, capture_output=True, timeout=10, check=True).stdout == b"certificate"


@needs_namespaces
def test_the_machine_itself_does_not(tmp_path: Path) -> None:
    argv = mounted(["test", "-d", "/etc/raykueue-test/x"], {"/etc/raykueue-test/x": tmp_path})

    assert subprocess.run(argv, timeout=10, check=False).returncode == 0
    assert subprocess.run(["test", "-e", "/etc/raykueue-test"], timeout=10, check=False).returncode == 1


@needs_namespaces
def test_arguments_reach_the_process_as_they_are(tmp_path: Path) -> None:
    argv = mounted(["printf", "%s|", "a b", "$HOME", "'"], {"/etc/x": tmp_path})

    assert subprocess.run(argv, capture_output=True, timeout=10, check=True).stdout == b"a b|$HOME|'|"


def test_only_paths_below_etc_are_taken(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="below /etc"):
        mounted(["true"], {"/usr/x": tmp_path})
