"""schemathesis tries every call of the schema, and finds nothing: no 5xx, no answer off it.

`make fuzz REQUESTS=20000` goes on until so many requests were answered as each account; FUZZ_SEED
is where it begins.
"""

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from django.db import connection

from tests.api import fuzz, scene
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
# Those are made four times as fast as whole cases, and with another seed go to other ends.
MANY = ("--max-examples=30",)
UNLIMITED = {"SONAR_RATE_ANONYMOUS": "off", "SONAR_RATE_ACCOUNT": "off"}


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
    runs: list[fuzz.Run] = []
    for seed in count(SEED):
        runs.append(fuzz.run(web.url, account, token, seed, *(MANY if REQUESTS else FEW)))
        answered = fuzz.answered(access_log)
        passed = time.monotonic() - began
        print(fuzz.progress(runs[-1], answered.total(), REQUESTS, passed), flush=True)
        if answered.total() >= REQUESTS:
            break
    print(fuzz.summary(answered, runs), flush=True)
    assert [one.seed for one in runs if not one.clean] == []
    assert [(call, status) for call, status in answered if status >= 500] == []
