"""The oldest version that has a docker-compose.yml, as it stands in the history of this clone."""

import shutil
import subprocess
from pathlib import Path

from tests.containers.compose import PROJECT


def git(*arguments: str) -> str:
    """Return what git says of this clone; empty where there is no git, or no clone."""
    try:
        done = subprocess.run(
            ["git", "-C", PROJECT, *arguments], capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def oldest() -> str:
    """Return its commit; empty where the clone is shallow, or none."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    made = git("log", "--diff-filter=A", "--format=%H", "--", "docker-compose.yml")
    return made.splitlines()[-1]


def take_out(commit: str, place: Path) -> Path:
    """Write its files into a directory, and return that."""
    archive, files = place / "older.tar", place / "older"
    git("archive", "--output", str(archive), commit)
    shutil.rmtree(files, ignore_errors=True)
    shutil.unpack_archive(archive, files)
    archive.unlink()
    return files
