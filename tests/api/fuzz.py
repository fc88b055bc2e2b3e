"""schemathesis, as a program, against a web server of Sonar: what it sent and what it found."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from django.urls import resolve

HERE = Path(__file__).parent
# How gunicorn notes what it answered, of the API.
NOTED = re.compile(r'"(?P<method>[A-Z]+) (?P<path>/api/[^ ?"]+)[^"]*" (?P<status>[0-9]{3}) ')


@dataclass(frozen=True)
class Run:
    """What schemathesis says at the end of a run as one account; nothing found is ``clean``."""

    account: str
    seed: int
    clean: bool
    report: str


def run(url: str, account: str, token: str, seed: int, *options: str) -> Run:
    """Let schemathesis try every call as an account; nobody has no token."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli"),
        f"--config-file={HERE / 'schemathesis.toml'}",
        *("run", f"{url}/api/v1/schema/", f"--seed={seed}", *options),
        *([f"--header=Authorization: Token {token}"] if token else []),
    ]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=HERE.parent.parent,
        env={**os.environ, "FUZZ_AS": account, "FUZZ_PASS": str(seed)},
    )
    return Run(account, seed, done.returncode == 0, done.stdout + done.stderr)


def answered(access_log: Path) -> Counter[tuple[str, int]]:
    """Count the requests that the server answered, by call (`GET links`) and status."""
    return Counter(noted(access_log.read_text()))


def noted(log: str) -> Iterator[tuple[str, int]]:
    for match in NOTED.finditer(log):
        yield f"{match['method']} {route_of(match['path'])}", int(match["status"])


def route_of(path: str) -> str:
    """Return the name of the call at a path, or that there is none."""
    return (resolve(unquote(path)).url_name or "nothing").removeprefix("api-")


def progress(last: Run, sent: int, wanted: int, seconds: float) -> str:
    """Say how far the runs as an account are, in a line, and what the last one found."""
    line = (
        f"{last.account}: {sent:,} of {max(wanted, sent):,} requests, seed {last.seed}, "
        f"{seconds:.0f} s"
    )
    return line if last.clean else f"{line}; found:\n{last.report}"


def summary(counts: Mapping[tuple[str, int], int], runs: list[Run]) -> str:
    """Say how many requests there were, how each call answered, and which runs found something."""
    by_call: dict[str, list[str]] = {}
    for (call, status), count in sorted(counts.items()):
        by_call.setdefault(call, []).append(f"{status}: {count}")
    broken = sum(count for (_, status), count in counts.items() if status >= 500)
    found = [str(one.seed) for one in runs if not one.clean]
    return "\n".join(
        [
            f"{runs[0].account}: {sum(counts.values()):,} requests in {len(runs)} runs, seeds "
            f"{runs[0].seed} to {runs[-1].seed}: {broken} answers of 5xx, "
            f"{len(found)} runs with violations of the schema or of a check"
            + (f" (seeds {', '.join(found)})" if found else ""),
            *(f"  {call}: {', '.join(statuses)}" for call, statuses in by_call.items()),
        ]
    )
