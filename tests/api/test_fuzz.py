"""schemathesis tries every call of the schema, and finds nothing: no 5xx, no answer off it.

`make fuzz REQUESTS=20000` goes on until so many requests were answered as each account; FUZZ_SEED
is where it begins.
"""

import itertools
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.db import connection
from django.urls import resolve

from tests.api import scene
from tests.benchmarks import loopback

pytestmark = pytest.mark.long

REQUESTS = int(os.environ.get("FUZZ_REQUESTS") or 0)
SEED = int(os.environ.get("FUZZ_SEED") or 1)
ACCOUNTS = ("anonymous", "reader", "site-admin", "administrator")
# `make fuzz` has a server for each, two at a time; else one does for all. A reader is left out
# then: it reads as a site's admin does, and is refused as that is elsewhere.
SERVERS = (
    [(one,) for one in ACCOUNTS] if REQUESTS else [("anonymous", "site-admin", "administrator")]
)
# What is made of each parameter one by one takes most of the requests.
FEW = ("--phases=examples,fuzzing,stateful", "--max-examples=5")
# What nobody writes is refused before it is read (tests/test_rights.py), and what a site's admin
# reads is read as an administrator reads it: with few requests, each does what it alone does.
FEW_OF = {"anonymous": ("--include-method=GET",), "site-admin": ("--exclude-method=GET",)}
# Those are made four times as fast as whole cases, and with another seed go to other ends.
MANY = ("--max-examples=30",)
UNLIMITED = {"SONAR_RATE_ANONYMOUS": "off", "SONAR_RATE_ACCOUNT": "off"}
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


@pytest.fixture
def access_log(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.fixture
def web(real_commits: None, tmp_path: Path, access_log: Path) -> Iterator[loopback.Web]:
    """Run Sonar's own web server on the database of this test, without limits of rate."""
    base = os.environ["DATABASE_URL"].rpartition("/")[0]
    settings = UNLIMITED | {
        "DATABASE_URL": f"{base}/{connection.settings_dict['NAME']}",
        "GUNICORN_CMD_ARGS": f"--access-logfile={access_log}",
    }
    with loopback.sonar(tmp_path, settings) as running:
        yield running


@pytest.mark.parametrize("accounts", SERVERS, ids="-".join)
def test_no_request_is_answered_off_the_schema(web, access_log, accounts: tuple[str, ...]):
    tokens = {"anonymous": ""} | scene.make().tokens
    for account in accounts:
        tried_as(account, tokens[account], web, access_log)
    assert "Traceback" not in (access_log.parent / "gunicorn.log").read_text()


def tried_as(account: str, token: str, web: loopback.Web, access_log: Path) -> None:
    began = time.monotonic()
    runs: list[Run] = []
    options = MANY if REQUESTS else (*FEW, *FEW_OF.get(account, ()))
    for seed in itertools.count(SEED):
        runs.append(run(web.url, account, token, seed, *options))
        told = answered(access_log)
        passed = time.monotonic() - began
        print(progress(runs[-1], told.total(), REQUESTS, passed), flush=True)
        if told.total() >= REQUESTS:
            break
    print(summary(told, runs), flush=True)
    assert [one.seed for one in runs if not one.clean] == []
    assert [(call, status) for call, status in told if status >= 500] == []
