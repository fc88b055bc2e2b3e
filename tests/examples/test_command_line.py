"""sonar_client.py in a terminal: what it prints, and its exit codes."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import requests
import sonar_client
from django.utils import timezone

from sonar import scheduler
from sonar.models import Probe, Transfer
from sonar.movers.base import MoverError, Receipt, Where
from sonar.movers.measure import Outcome
from sonar.results import endings
from sonar.work import probes
from tests.examples.conftest import EXAMPLES, Run, Said, Say, result
from tests.examples.road import Road
from tests.matrix.changed import change
from tests.matrix.world import World

CLIENT = "sonar_client.py"
READING = (
    *("matrix", "links", "transfers", "series", "sites", "endpoints", "status"),
    *("events", "causes", "diagnosis", "inside", "network"),
)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def test_the_matrix_is_drawn_with_what_it_is(say: Say) -> None:
    done = say("matrix", "--window", "24h", "--source-cloud", "UK")
    title, _, head, glasgow, _ral = done.stdout.splitlines()
    assert title.startswith("Mean rate of large-file transfers, the last 24 hours")
    assert title.endswith("(MB/s)")
    assert head.split()[-1] == "RAL_DATADISK"
    assert glasgow.split() == ["Glasgow_DATADISK", "-", "-", "-", "52"]
    assert "failing" in say("matrix", "--fields=state").stdout


def test_parameters_go_to_sonar_as_they_are(say: Say) -> None:
    asked = ["--source-cloud", "UK", "--source-cloud", "DE", "--destination-site", "!DESY"]
    done = say("links", *asked, "--ordering", "-large.mean_mb_s", "--large.ok.min", "1")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        "Glasgow_DATADISK",
        "DESY_SCRATCHDISK",
        "DESY_DATADISK",
    ]
    assert "2026-11-20T11:40:30Z" in done.stdout


def test_the_address_may_stand_before_and_after_the_command(say: Say, url: str) -> None:
    for words in (["--url", url, "sites"], ["sites", "--url", url]):
        assert "Glasgow" in say(*words, SONAR_URL="http://127.0.0.1:9").stdout


@pytest.mark.long
def test_formats_are_the_answers_of_the_api(run: Run, say: Say, url: str) -> None:
    forms = [("transfers", f"format={form}") for form in ("csv", "json", "ndjson")]
    for command, form in (*forms, ("matrix", "format=plotly"), ("links", "format=ndjson")):
        answer = requests.get(f"{url}/api/v1/{command}/?window=24h&{form}", timeout=120)
        done = say(command, "--window=24h", f"--{form}")
        assert (done.returncode, done.stdout) == (0, answer.content.decode())
    assert len(rows(run(CLIENT, "links", "--format", "csv").stdout)) == 12
    wide = say("matrix", "--format=csv", "--shape=wide").stdout
    assert len(rows(wide)) == 5
    assert wide.splitlines()[-1].startswith("mean,")


def test_results_series_sites_endpoints_and_status_have_tables(say: Say) -> None:
    transfers = say("transfers", "--state", "failed", "--page-size", "2").stdout
    assert transfers.count("503 Service Unavailable") == 2
    ends = ["--source", "Glasgow_DATADISK", "--destination", "RAL_DATADISK"]
    series = say("series", *ends, "--points", "1").stdout
    assert [line.split()[-1] for line in series.splitlines()[1:]] == ["66", "50", "40"]
    assert say("sites", "--search", "glas").stdout.split()[-1] == "2026-11-20T11:40:30Z"
    assert say("endpoints", "--site", "DESY").stdout.count("DISK") == 4
    assert json.loads(say("status").stdout)["probes"]["queued"] == 0
    assert say("links", "--search", "nothing").stdout == "No results match.\n"


WRONG: list[tuple[list[str], int, str]] = [
    (["links", "--cluod", "UK"], 1, "There is no parameter “cluod”"),
    (["links", "--path", "UK"], 1, "There is no parameter “path”"),
    (["matrix", "--size", "huge"], 1, "size “huge” is not known: use "),
    (["matrix", "--format", "ndjson"], 1, "format “ndjson” is not known: use json, csv, plotly"),
    (["matrix", "--shape=wide", "--format=json"], 1, "shape=wide requires format=csv"),
    (["sites", "--format=plotly"], 1, "format “plotly” is not known: use json, csv or ndjson."),
    (["series", "--source", "RAL_DATADISK"], 1, "“destination” is missing"),
    (["push", "nowhere.csv"], 1, "No such file or directory: 'nowhere.csv'"),
    (["links", "--token-file", "nowhere"], 1, "No such file or directory: 'nowhere'"),
    (["links", "--foo"], 2, "unrecognised argument: --foo"),
    (["links", "UK"], 2, "unrecognised argument: UK"),
    (["links", "--format", "xml"], 2, "invalid choice: 'xml'"),
    (["probe", "RAL_DATADISK"], 2, "DESTINATION"),
    (["probe", "A", "B", "--site", "RAL"], 2, "unrecognised argument: --site=RAL"),
    (["lynx"], 2, "invalid choice: 'lynx'"),
    ([], 2, "COMMAND"),
]


def test_what_is_wrong_is_said_with_an_exit_code(say: Say) -> None:
    for words, code, sentence in WRONG:
        done = say(*words)
        assert (done.returncode, done.stdout) == (code, ""), words
        assert sentence in done.stderr, words


def test_without_an_address_it_asks_for_one_and_a_server_that_is_away_is_said(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sonar_client, "TRIES_AGAIN", 0)
    done = say("status", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.startswith("sonar_client: http://127.0.0.1:9/api/v1/ is not responding: ")
    assert done.stderr.endswith("Connection refused\n")
    monkeypatch.delenv("SONAR_URL")
    asked = "sonar_client: The URL of Sonar is missing: use --url or set SONAR_URL.\n"
    assert say("links") == Said(1, "", asked)


@pytest.mark.long
def test_a_token_comes_from_the_environment_or_a_file(
    run: Run, say: Say, token: str, token_file: Path
) -> None:
    results = [result()]
    assert say("push", "-", stdin=ndjson(results)).returncode == 1
    assert run(CLIENT, "push", "-", stdin=ndjson(results), SONAR_TOKEN=token).returncode == 0
    pushed = say("push", "-", "--token-file", token_file, stdin=ndjson(results))
    assert pushed.stdout == "0 accepted, 1 duplicate\n"
    assert token not in pushed.stderr
    wrong = say("status", SONAR_TOKEN="sonar_" + "0" * 64)
    assert wrong.returncode == 1
    assert "This token is not valid" in wrong.stderr
    assert "sonar_0" not in wrong.stderr


@pytest.mark.long
def test_it_waits_as_a_busy_server_asks_and_says_so(run: Run, road: Road) -> None:
    road.events.append("429 1")
    began = time.monotonic()
    done = run(CLIENT, "--url", road.url, "sites")
    assert time.monotonic() - began > 1
    assert (done.returncode, done.stderr) == (0, "Sonar responded with 429. Trying again in 1 s.\n")


def test_unchanged_answers_come_from_the_cache_and_a_cut_one_ends_with_a_failure(
    say: Say, road: Road, tmp_path: Path
) -> None:
    words = ["--url", road.url, "--cache", tmp_path / "cache", "matrix", "--window", "24h"]
    first, second = say(*words), say(*words)
    assert first.stdout == second.stdout
    assert road.statuses == [200, 304]
    road.events.append("cut")
    done = say("--url", road.url, "transfers", "--format", "ndjson")
    assert done.returncode == 1
    assert "sonar_client: The response was cut off after " in done.stderr


def test_a_reader_that_has_seen_enough_is_no_failure(url: str) -> None:
    command = [sys.executable, EXAMPLES / CLIENT, "--url", url, "links", "--format", "csv"]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert client.stdout
    assert client.stderr
    client.stdout.close()
    assert client.stderr.read() == b""
    client.stderr.close()
    client.wait(120)


def ndjson(results: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in results)


def test_results_are_pushed_from_csv_as_an_editor_writes_it(
    say: Say, token: str, tmp_path: Path
) -> None:
    said = 'the server said:\r\n"no", twice'
    failed = result(state="failed", error=said, error_where="destination", streams="")
    path = tmp_path / "results.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(failed))
        writer.writeheader()
        writer.writerows([failed, result(streams=4)])
    done = say("push", path, SONAR_TOKEN=token)
    assert (done.returncode, done.stdout) == (0, "2 accepted, 0 duplicates\n"), done.stderr
    assert Transfer.objects.get(id=failed["id"]).error == said
    assert Transfer.objects.filter(profile__streams=4, profile__ip_version=6).count() == 1


def test_wrong_results_are_named_and_a_refused_order_says_why(say: Say, token: str) -> None:
    wrong = [result(), result(bytes=0), result(seconds="fast"), result(source="NOWHERE")]
    done = say("push", "-", stdin=ndjson(wrong), SONAR_TOKEN=token)
    assert done.returncode == 1
    assert (
        "Nothing was stored: 3 of 4 results are wrong. The first error is in 1.bytes: "
        in done.stderr
    )
    assert "\n  2.seconds: seconds 'fast' is not a number of seconds" in done.stderr
    assert "\n  3.source: source 'NOWHERE' is not registered" in done.stderr
    done = say("push", "-", stdin="id,seconds,bytes\n1\n2,,,4\n", SONAR_TOKEN=token)
    assert "Nothing was stored: 2 of 2 results are wrong." in done.stderr
    done = say("push", "-", stdin="{broken\n", SONAR_TOKEN=token)
    assert (done.returncode, done.stdout) == (1, "")
    done = say("probe", "RAL_DATADISK", "RAL_DATADISK", SONAR_TOKEN=token)
    assert (done.returncode, done.stdout) == (1, "")
    assert "“destination” must be a different endpoint from “source”." in done.stderr


@pytest.fixture
def watched(url: str, token: str) -> Callable[..., tuple[str, str, int]]:
    """Return what runs a command until the tests that it orders have ended, as a worker would.

    It gives its first two lines, which are seen while tests are queued, the others, and its code.
    """

    def watch(*words: str) -> tuple[str, str, int]:
        env = {**os.environ, "SONAR_TOKEN": token, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, EXAMPLES / CLIENT, "--url", url, *words, "--wait"]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert client.stdout
        first = client.stdout.readline() + client.stdout.readline()
        end_tests()
        told, _ = client.communicate(timeout=120)
        return first, told, client.returncode

    return watch


@pytest.mark.long
def test_tests_are_ordered_and_watched_until_they_have_ended(
    watched: Callable[..., tuple[str, str, int]],
) -> None:
    words = ("probe", "RAL_DATADISK", "Glasgow_DATADISK", "--sizes", "small,large")
    first, told, code = watched(*words)
    lines = [line.split(maxsplit=2)[1:] for line in (first + told).splitlines()]
    assert lines[:2] == [
        ["small", "queued"],
        ["large", "waiting Another test of this link is running."],
    ]
    assert ["small", "done 4.0"] in lines
    assert ["large", "failed no room left"] in lines
    assert code == 1


def end_tests() -> None:
    """Let the ordered tests end as a worker would: the small one well."""
    for row in Probe.objects.select_related("size_class").order_by("requested_at", "id"):
        scheduler.start_waiting(timezone.now())
        probe = probes.claim(row.id, timezone.now())
        assert probe
        receipt = Receipt(probe.bytes, probe.bytes / 4e6)
        error = MoverError(Where.DESTINATION, "no room left")
        small = row.size_class.name == "small"
        outcome = Outcome(receipt, None, None, 5) if small else Outcome(None, error, None, 5)
        endings.end_probe(probe, outcome)


def test_what_changed_and_why_is_said(say: Say, known_world: World) -> None:
    change(known_world.ral, known_world.glasgow, 0.5)
    done = say("events", "--type", "slower")
    assert done.stdout.splitlines()[1].split() == [
        *("slower", "link", "RAL_DATADISK", "Glasgow_DATADISK", "large"),
        *("2026-11-17T12:00:30Z", "-", "0.5", "0.4", "0.62"),
    ]
    causes = say("causes", "--window", "24h").stdout
    assert causes.startswith("Median rate of large-file transfers, the last 24 hours")
    assert re.search(r"\nsources\n.*name.*factor", causes)
    assert re.search(r"\ndestinations\n", causes)
    ends = ("--source", "Glasgow_DATADISK", "--destination", "DESY_DATADISK")
    said = say("diagnosis", *ends, "--window", "24h").stdout
    assert "  Next: " in said
    silent = say("diagnosis", "--source=RAL_DATADISK", "--destination=DESY_DATADISK").stdout
    assert silent == "There are no results for large files to diagnose in this time range.\n"
    assert say("inside", *ends).stdout == "No transfer has enough progress samples.\n"


def test_what_is_compared_is_said_by_options(say: Say) -> None:
    done = say(
        "matrix", "--window", "24h", "--compare", "previous", "--compare.origin", "production"
    )
    assert "compared with the 24 hours before, only with origin production (×)" in done.stdout
    around = say("links", "--compare.around", "2026-11-20T11:00:00Z", "--format", "csv").stdout
    assert "large.compared_ratio" in around.splitlines()[0]


def test_an_sweep_is_ordered_and_its_finding_said(say: Say, token: str) -> None:
    ends = ("RAL_DATADISK", "Glasgow_DATADISK")
    done = say("sweep", *ends, "--values", "1,4", "--repeats", "2", SONAR_TOKEN=token)
    title, count = done.stdout.splitlines()
    assert title.endswith("1 and 4 streams with large files, pull")
    assert count == "0 of 4 tests have ended"
    assert list(Probe.objects.order_by("id").values_list("streams", flat=True)) == [1, 4, 4, 1]
    refused = say("sweep", *ends, "--values", "1,100", SONAR_TOKEN=token)
    assert refused.returncode == 1
    assert "values “100” is not allowed for streams" in refused.stderr


@pytest.mark.long
def test_an_sweep_is_followed_to_its_end(watched: Callable[..., tuple[str, str, int]]) -> None:
    words = ("--vary", "mode", "--repeats", "1", "--size", "small")
    first, told, code = watched("sweep", "RAL_DATADISK", "Glasgow_DATADISK", *words)
    assert first.endswith("\n0 of 2 tests have ended\n")
    *_, pull, push, finding = told.splitlines()
    assert pull.split() == ["pull", "4", "MB/s", "(n", "=", "1)"]
    assert push.split() == ["push", "4", "MB/s", "(n", "=", "1)"]
    assert "Too few tests succeeded to compare pull and push" in finding
    assert code == 0


def test_the_help_of_a_command_names_all_parameters_of_its_call(say: Say, url: str) -> None:
    schema = requests.get(f"{url}/api/v1/schema/?format=json", timeout=120).json()
    for command in READING:
        call = schema["paths"][f"/api/v1/{command}/"]["get"]
        known = {one["name"] for one in call["parameters"] if one["in"] == "query"}
        # What only makes sense for the matrix, and columns by name, which depend on the classes.
        known -= {"stat", "rows", "columns"} if command == "links" else set()
        known = {name.replace("_", "-") for name in known if "." not in name}
        shown = set(re.findall(r"--([a-z-]+)", say(command, "--help").stdout))
        shown -= {"help", "url", "token-file", "cache"}
        assert shown >= known, command
        assert shown - {"large", "compare"} == known - {"compare"}, command


def test_every_command_has_a_help_with_the_exit_codes(say: Say) -> None:
    commands = say("--help").stdout
    for command in (*READING, "probe", "sweep", "push"):
        assert f"\n    {command} " in commands
        told = say(command, "--help").stdout
        assert "Exit code: 0: success; 1: a request or test failed; 2: " in told
