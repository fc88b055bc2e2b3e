"""Child processes: started so that they cannot outlive us, stopped so that they can tidy up."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# Any program needs them; Sonar's settings, and secrets of whoever started it, are not among them.
OF_THE_SYSTEM = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"),
)
# Who logs in, and what signs sessions. A file takes the place of the key where a process starts.
OF_THE_WEB = (
    *("SONAR_OIDC_", "SONAR_SECRET_KEY", "SONAR_LOGIN_ROLES", "SONAR_X509_PROXIES"),
    *("SONAR_PASSWORDS", "DATABASE_READ_URL"),
)


def plain() -> dict[str, str]:
    """Return the environment of what has no settings: PostgreSQL, Redis, the storage nodes."""
    return {name: value for name, value in os.environ.items() if name in OF_THE_SYSTEM}


def of_sender() -> dict[str, str]:
    """Return that of workers and beat: all settings but those of the web."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_THE_WEB)}


def of_web() -> dict[str, str]:
    return dict(os.environ)


# A program starts in two seconds: a machine that does a lot beside it takes a minute.
START_SECONDS = 120
STOP_SECONDS = 20
PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec a child must not wait for a lock of another thread.
LIBC = ctypes.CDLL(None)


class StartError(Exception):
    """Something did not start; the message is a sentence for the person who started it."""


def die_with_parent() -> None:
    """Ask the kernel to end this child if its parent dies without a word (SIGKILL).

    A worker that is stopping already ends in its time all the same (sonar.work.probes).
    """
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def start(
    command: Sequence[str], log: Path, env: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a child in its own process group, its output in a log file.

    Its own group, so that Ctrl-C in the terminal reaches only the parent, which then ends
    the children in the right order.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            process_group=0,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock
        )


def stop(
    process: subprocess.Popen[bytes],
    how: signal.Signals = signal.SIGTERM,
    seconds: float = STOP_SECONDS,
) -> None:
    """End a child with a signal; with SIGKILL for its whole group if it does not listen."""
    stop_together([process], how, seconds)


def stop_together(
    children: Sequence[subprocess.Popen[bytes]],
    how: signal.Signals = signal.SIGTERM,
    seconds: float = STOP_SECONDS,
) -> None:
    """End children at the same time, as `stop` does; all of them share the seconds."""
    running = [child for child in children if child.poll() is None]
    for child in running:
        child.send_signal(how)
    deadline = time.monotonic() + seconds
    for child in running:
        try:
            child.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def start_noting(
    noted: Path, begin: Callable[[], subprocess.Popen[bytes]], name: str, log: Path
) -> subprocess.Popen[bytes]:
    """Start what notes in a file where it listens; return once it has."""
    before = noted.stat().st_mtime_ns if noted.is_file() else 0
    process = begin()
    wait_until(lambda: noted.is_file() and noted.stat().st_mtime_ns > before, process, name, log)
    return process


def tail(log: Path, lines: int = 5) -> str:
    text = log.read_text(errors="replace") if log.is_file() else ""
    return "\n".join(text.strip().splitlines()[-lines:])


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Say what is known of a process that is gone: its exit code, or the signal that ended it."""
    code = process.returncode
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], name: str, log: Path
) -> None:
    """Wait until a started process answers; raise StartError with its last words if not."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            stop(process)
            raise StartError(f"{name} did not start. Last lines of its log, {log}:\n{tail(log)}")
        time.sleep(0.05)
