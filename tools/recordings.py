"""Fetch the human speech that the simulator and the tests use: pocketsphinx's own test recordings.

usage: recordings.py VERSION DIRECTORY

They come from the source package on PyPI, which pip downloads and checks. Only `test/data` is
kept.
"""

import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile


def fetch(version: str, target: pathlib.Path) -> None:
    """Unpack `test/data` of pocketsphinx into `target`; a half-done one never stays."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            "pocketsphinx",
        ]
        command += ["--disable-pip-version-check", "-d", scratch, f"pocketsphinx=={version}"]
        if subprocess.run(command).returncode:
            sys.exit(
                f"cannot download the recordings (pocketsphinx {version}); is PyPI reachable?"
            )
        archive = next(pathlib.Path(scratch).glob("pocketsphinx-*.tar.gz"))
        prefix = f"pocketsphinx-{version}/test/data/"
        with tarfile.open(archive) as tar:
            members = [m for m in tar.getmembers() if m.name.startswith(prefix) and m.isfile()]
            tar.extractall(scratch, members=members, filter="data")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(pathlib.Path(scratch, prefix), target)
    (target / ".complete").touch()


if __name__ == "__main__":
    fetch(sys.argv[1], pathlib.Path(sys.argv[2]))
