"""What a test needs beyond Python: skipped by name where it is absent, failed where CI=true."""

import os
import shutil
from typing import NoReturn

import pytest


def needs(*programs: str) -> None:
    """Skip the running test if a program is missing; in CI a missing program is a failure."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        lacks(f"needs {', '.join(missing)} on the PATH")


def lacks(reason: str) -> NoReturn:
    """Skip the running test, or fail it in CI, for what this machine does not have."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def find(program: str) -> str:
    """Return the path of a program, also of those that only root has on the PATH; needs it."""
    everywhere = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return shutil.which(program, path=everywhere) or lacks(f"needs {program}")
