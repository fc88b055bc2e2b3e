#!/usr/bin/env python3
"""Sonar from scripts and terminals. One file to copy; needs Python 3.9, requests and pandas.

    sonar = Sonar("https://sonar.example.org")
    sonar.matrix(size="large", window="24h")         # a DataFrame, sources by destinations
    sonar.matrix(compare="week", window="24h")       # ratios to the same day a week earlier
    sonar.links(source_cloud="UK", max_age=10800)    # a DataFrame, a row for each link
    for result in sonar.transfers(state="failed"):   # a stream of dicts, newest first
        print(result["error"])
    sonar.events(type="slower", window="30d")        # a DataFrame: what became slower, and when
    sonar.diagnosis("RAL_DISK", "DESY_DISK")         # why a link is slow or fails

Parameters are those of the REST API, which `/api/v1/docs/` lists: a list repeats one, `from_`
stands for `from`, and one with a dot goes as `**{"large.ok.min": 3}`.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from textwrap import fill
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pandas as pd
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

MOST_RESULTS, MOST_BYTES = 10_000, 7_500_000  # of one POST transfers/
CONNECT_SECONDS, SILENT_SECONDS = 10, 120
TRIES_AGAIN, LONGEST_WAIT_SECONDS = 5, 300
KEPT_SECONDS = 30 * 86_400
MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "markdown": "text/markdown",
    "plotly": "application/vnd.plotly.v1+json",
    "html": "text/html",
}
# What columns of CSV hold, by the last part of their names.
TEXTS = (
    *("name", "source", "destination", "site", "cloud", "country", "label", "state", "change"),
    *("kind", "scope", "type", "size", "end", "sentence", "near", "comparison_url"),
    *("error", "error_where", "congestion_control"),
)
TIMES = (
    *("last", "last_ok", "last_failed", "start", "started_at"),
    *("at", "earliest", "latest", "found_at"),
)
# Of cells of the matrix: numbers that may be blank.
FACTORS = ("value", "std", "rate", "other", "ratio", "low", "high", "p")
# What CSV of `transfers/` says besides a result, which is not sent with one.
BESIDES = ("size", "rate_mb_s", "moved_bytes", "verified")
NUMBERS = {
    "seconds": float,
    "bytes": int,
    "streams": int,
    "streams_used": int,
    "ip_version": int,
    "concurrent_at_source_mean": float,
    "concurrent_at_source_max": int,
    "concurrent_at_destination_mean": float,
    "concurrent_at_destination_max": int,
    "prepare_seconds": float,
    "queue_seconds": float,
    "first_byte_seconds": float,
    "transfer_seconds": float,
    "checksum_seconds": float,
    "tcp_buffer_bytes": int,
    "tcp_buffer_used_bytes": int,
    "scitag": int,
}

TITLE = "Query transfer rates in Sonar, order tests, and store results."

Record = dict[str, Any]
log = logging.getLogger("sonar")


class SonarError(Exception):
    """What was refused or failed, in a sentence; ``status`` is None where nothing answered.

    ``errors`` are the API's sentences by parameter or field.
    """

    def __init__(
        self, sentence: str, status: int | None = None, errors: Record | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.errors: dict[str, list[str]] = errors or {}

    def __str__(self) -> str:
        told = super().__str__()
        rest = [(name, one) for name, some in self.errors.items() for one in some]
        return told + "".join(f"\n  {name}: {one}" for name, one in rest if one not in told)

    @classmethod
    def of(cls, response: requests.Response) -> SonarError:
        status = response.status_code
        try:
            answer = response.json()
            return cls(answer["detail"], status, answer["errors"])
        except (requests.RequestException, ValueError, TypeError, KeyError):
            told = f"{status} {response.reason} {response.headers.get('Location', '')}".strip()
            return cls(f"{response.url} was not answered by the Sonar API: {told}", status)


class Pushed(NamedTuple):
    accepted: int
    duplicates: int


class Patience(Retry):
    """Tries again what does no harm when it is done twice, and waits as Retry-After asks."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        # A 429 says that nothing was done, whatever it was.
        refused = status_code == 429 and bool(self.total)
        return refused or bool(super().is_retry(method, status_code, has_retry_after))

    def get_retry_after(self, response: Any) -> float | None:  # noqa: ANN401 - of urllib3
        wait = min(super().get_retry_after(response) or 0, LONGEST_WAIT_SECONDS)
        if wait:
            log.warning("Sonar responded with %s. Trying again in %.0f s.", response.status, wait)
        return wait or None


def patient(*methods: str) -> HTTPAdapter:
    """Return what sends requests, and those of these methods again where they fail."""
    again = Patience(
        total=TRIES_AGAIN,
        read=2,
        allowed_methods=methods,
        status_forcelist=(502, 503, 504),
        backoff_factor=0.5,
        raise_on_status=False,
    )
    return HTTPAdapter(max_retries=again)


class Cache:
    """Answers with their ETags, a file for each question: what is unchanged is not sent again."""

    def __init__(self, directory: str | Path, token: str | None) -> None:
        self.directory = Path(directory).expanduser()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.token = token

    def path(self, *asked: object) -> Path:
        # Who asks is a part of the question: not everybody sees the same.
        digest = hashlib.sha256(repr((self.token, *asked)).encode()).hexdigest()
        return self.directory / f"{digest}.sonar"

    def read(self, path: Path) -> tuple[str, bytes]:
        etag, _, body = path.read_bytes().partition(b"\n") if path.is_file() else (b"", b"", b"")
        return etag.decode(), body

    def keep(self, path: Path, etag: str, body: bytes) -> None:
        """Write the file whole, for its owner only, and forget those that are old."""
        with NamedTemporaryFile(dir=self.directory, suffix=".sonar", delete=False) as file:
            file.write(etag.encode() + b"\n" + body)
        Path(file.name).replace(path)
        for one in self.directory.glob("*.sonar"):
            if one.stat().st_mtime < time.time() - KEPT_SECONDS:
                one.unlink()


class Sonar:
    """A Sonar by its address. Every call raises SonarError."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        cache: str | Path | None = None,
        timeout: float = SILENT_SECONDS,
    ) -> None:
        """Take a token where one is needed, a directory to keep answers in, and how many seconds
        the server may be silent."""
        self.base = address(url, token)
        self._timeout = CONNECT_SECONDS, timeout
        self._cache = Cache(cache, token) if cache else None
        self._session = requests.Session()
        # No proxy of the environment leads to this machine itself.
        self._session.trust_env = not is_loopback(url)

        def authorised(request: requests.PreparedRequest) -> requests.PreparedRequest:
            """Send the token; where there is none nothing, and so no password of a .netrc."""
            if token:
                # One of Sonar's own, or one (a JWT) of the issuer at which people log in.
                word = "Bearer" if token.startswith("eyJ") else "Token"
                request.headers["Authorization"] = f"{word} {token}"
            return request

        self._session.auth = authorised
        self._session.headers["User-Agent"] = "sonar-client/1.0"
        self._session.mount(self.base, patient("GET"))
        # Results carry their ids: what arrives twice is stored once.
        self._session.mount(f"{self.base}transfers/", patient("GET", "POST"))

    def matrix(self, cell: str = "value", /, **params: object) -> pd.DataFrame:
        """Return the matrix, sources by destinations; ``attrs`` has `unit`, `average` and so on.

        ``cell`` is `value`, `std`, `ok`, `failed`, `last` or `state`; what is blank is NaN. With
        `compare="previous"` and so on `value` is the ratio, and there is `p`, `low`, `change`...
        """
        answer = self.read("matrix/", **params, fields=cell)
        names = ([one["name"] for one in answer[axis]] for axis in ("sources", "destinations"))
        frame = pd.DataFrame(answer.pop("cells")[cell], *names)
        if cell == "last":
            frame = frame.apply(pd.to_datetime, utc=True)
        frame = frame.astype(float) if cell in FACTORS else frame
        frame.attrs = answer
        return frame

    def links(self, **params: object) -> pd.DataFrame:
        """Return a row for each link, with columns like `large.mean_mb_s`."""
        return self.table("links/", **params)

    def series(self, source: str, destination: str, **params: object) -> pd.DataFrame:
        """Return one link over time: a row for each bucket or, with points=1, each result."""
        return self.table("series/", source=source, destination=destination, **params)

    def sites(self, **params: object) -> pd.DataFrame:
        return self.table("sites/", **params)

    def endpoints(self, **params: object) -> pd.DataFrame:
        return self.table("endpoints/", **params)

    def events(self, **params: object) -> pd.DataFrame:
        """Return a row for each event of a link, an endpoint or a site, newest first."""
        return self.table("events/", **params)

    def causes(self, **params: object) -> Record:
        """Return how fast each source and destination is against its peers, with sentences.

        With `compare="previous"` and so on the causes of the change are in `changes`.
        """
        return self.read("causes/", **params)

    def diagnosis(self, source: str, destination: str, **params: object) -> Record:
        """Return why a link is slow or fails, with the figures that say so."""
        return self.read("diagnosis/", source=source, destination=destination, **params)

    def inside(self, source: str, destination: str, **params: object) -> Record:
        """Return what the rate of a link does while its transfers run."""
        return self.read("inside/", source=source, destination=destination, **params)

    def network(self, **params: object) -> pd.DataFrame:
        """Return a row for each test of the network alone, newest first."""
        return self.table("network/", **params)

    def transfers(self, **params: object) -> Iterator[Record]:
        """Give all single results that match, newest first, while they come in."""
        return self.records("transfers/", **params)

    def transfer(self, id: str) -> Record:  # noqa: A002 - the API's word
        """Return one result with its progress samples."""
        return self.read(f"transfers/{id}/")

    def status(self) -> Record:
        return self.read("status/")

    def probe(
        self, source: str, destination: str, sizes: Sequence[str] = ("small",), **fields: object
    ) -> list[Record]:
        """Order tests of these size classes; ``fields`` are count, streams, mover and mode."""
        wanted = {"source": source, "destination": destination, "sizes": list(sizes), **fields}
        ordered: list[Record] = self.call("POST", "probes/", wanted)["probes"]
        return ordered

    def wait(self, probes: Iterable[Record]) -> Iterator[list[Record]]:
        """Give these tests as they are now, every other second, until all of them have ended."""
        waiting = True
        while waiting:
            now = [self.read(f"probes/{one['id']}/") for one in probes]
            yield now
            waiting = not all(one["ended"] for one in now)
            time.sleep(2 if waiting else 0)

    def sweep(
        self, source: str, destination: str, variable: str = "streams", **fields: object
    ) -> Record:
        """Order tests that differ in `streams`, `size` or `mode`; `values`, `repeats`, `size`,
        `streams`, `mover` and `mode` may be given."""
        wanted = {"source": source, "destination": destination, "variable": variable, **fields}
        return self.call("POST", "sweeps/", wanted)

    def follow(self, sweep: Record) -> Iterator[Record]:
        """Give a sweep as it is now, every other second, until all its tests have ended."""
        now: Record = {"ended": False}
        while not now["ended"]:
            now = self.read(f"sweeps/{sweep['id']}/")
            yield now
            time.sleep(0 if now["ended"] else 2)

    def push(self, results: Iterable[Record] | pd.DataFrame) -> Pushed:
        """Store results from elsewhere, in calls of up to 10,000, each stored whole or not at all.

        It is safe to push them again: what is known counts as a duplicate.
        """
        if isinstance(results, pd.DataFrame):
            results = results.astype(object).where(results.notna(), None).to_dict("records")
        done = Pushed(0, 0)
        for batch in batches(results):
            try:
                answer = self.call("POST", "transfers/", batch)
            except SonarError as error:
                before = (
                    f"{sum(done):,} results were stored before this error: " if sum(done) else ""
                )
                raise SonarError(before + error.args[0], error.status, error.errors) from error
            done = Pushed(*(done[at] + answer[name] for at, name in enumerate(done._fields)))
        return done

    def table(self, path: str, /, **params: object) -> pd.DataFrame:
        """Return all rows of a call that answers in CSV."""
        text = self._get(path, params, "csv")
        columns = text.partition(b"\n")[0].decode().split(",")
        texts = [name for name in columns if name.rpartition(".")[2] in TEXTS]
        blank = {"keep_default_na": False, "na_values": [""]}  # NA is Namibia
        frame = pd.read_csv(BytesIO(text), dtype=dict.fromkeys(texts, str), **blank)
        frame[texts] = frame[texts].fillna("")
        for name in columns:
            if name.rpartition(".")[2] in TIMES:
                frame[name] = pd.to_datetime(frame[name], utc=True, format="ISO8601")
        return frame

    def records(self, path: str, /, **params: object) -> Iterator[Record]:
        """Give all rows of a call that answers in NDJSON, while they come in."""
        rest = b""
        for piece in self.raw(path, "ndjson", **params):
            *lines, rest = (rest + piece).split(b"\n")
            yield from map(json.loads, lines)
        if rest:
            raise SonarError("The response ended in the middle of a row.")

    def raw(self, path: str, form: str, /, **params: object) -> Iterator[bytes]:
        """Give an answer in one of MEDIA_TYPES, piece by piece as it comes in."""
        count = 0
        with self._send("GET", path, form, params=sent(params, form), stream=True) as response:
            try:
                for piece in response.iter_content(65_536):
                    count += len(piece)
                    yield piece
            except requests.RequestException as error:
                raise SonarError(f"The response was cut off after {count:,} bytes.") from error

    def read(self, path: str, /, **params: object) -> Record:
        """Return the JSON answer of any call that reads."""
        answer: Record = json.loads(self._get(path, params, "json"))
        return answer

    def figure(self, path: str, /, **params: object) -> str:
        """Return the figure of matrix/, series/, strip/ or a site, for plotly.io.from_json()."""
        return self._get(path, params, "plotly").decode()

    def call(self, method: str, path: str, body: object = None) -> Record:
        """Make any call that writes, like call("POST", "downtimes/", {...}); return its answer."""
        data = json.dumps(body, default=str).encode()
        headers = {"Content-Type": MEDIA_TYPES["json"]}
        response = self._send(method, path, "json", data=data, headers=headers)
        answer: Record = response.json() if response.content else {}
        return answer

    def _get(self, path: str, params: Record, form: str) -> bytes:
        """Return the body of an answer: the one that was kept, if it has not changed."""
        asked = sent(params, form)
        if self._cache is None:
            return self._send("GET", path, form, params=asked).content
        file = self._cache.path(self.base, path, asked)
        etag, body = self._cache.read(file)
        known = {"If-None-Match": etag} if etag else {}
        response = self._send("GET", path, form, params=asked, headers=known)
        if response.status_code == 304:
            return body
        if "ETag" in response.headers:
            self._cache.keep(file, response.headers["ETag"], response.content)
        return response.content

    def _send(
        self,
        method: str,
        path: str,
        form: str,
        **request: Any,  # noqa: ANN401 - of requests
    ) -> requests.Response:
        """Return an answer in this format; raise SonarError for any other."""
        address = self.base + path
        try:
            response = self._session.request(
                method, address, timeout=self._timeout, allow_redirects=False, **request
            )
        except requests.RequestException as error:
            raise SonarError(f"{self.base} is not responding: {reason(error)}") from error
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.status_code in (204, 304) or (response.ok and kind == MEDIA_TYPES[form]):
            return response
        raise SonarError.of(response)


def address(url: str, token: str | None) -> str:
    """Return where the API is, if it is a place that a token may be sent to."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise SonarError("The URL must be like https://sonar.example.org, without a user name.")
    if token and not re.fullmatch("[!-~]+", token):
        raise SonarError("This is not a token: it contains spaces or other invalid characters.")
    if token and parts.scheme == "http" and not is_loopback(url):
        raise SonarError("Tokens are not sent over plain HTTP: use an https:// URL.")
    return url.rstrip("/").removesuffix("/api/v1") + "/api/v1/"


def is_loopback(url: str) -> bool:
    return bool(re.fullmatch(r"localhost|127(\.\d+){3}|::1", urlsplit(url).hostname or ""))


def reason(error: Exception) -> str:
    """Return the last words of a chain of errors: those of the system."""
    inner = getattr(error.args[0], "reason", error) if error.args else error
    return str(inner).rpartition(": ")[2]


def sent(params: Record, form: str) -> Record:
    """Return parameters as they are sent."""
    return {**{name.rstrip("_"): one for name, one in params.items()}, "format": form}


def batches(results: Iterable[Record]) -> Iterator[list[Record]]:
    """Give results in lists that one call takes."""
    batch: list[Record] = []
    size = 0
    for result in results:
        length = len(json.dumps(result, default=str)) + 2
        if batch and (len(batch) == MOST_RESULTS or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(result)
        size += length
    if batch:
        yield batch


def read_results(lines: Iterable[str]) -> Iterator[Record]:
    """Give the results of CSV with a header, or of NDJSON: the first line says which it is."""
    rest = iter(lines)
    first = next(rest, "")
    whole = chain([first], rest)
    if first.lstrip().startswith("{"):
        yield from map(json.loads, filter(str.strip, whole))
        return
    for row in csv.DictReader(whole, restkey="beyond the header"):
        yield {name: of_cell(name, row[name]) for name in row if row[name] and name not in BESIDES}


def of_cell(name: str, text: str) -> object:
    """Return a number as one; where it is none, Sonar will say so."""
    try:
        return NUMBERS.get(name, str)(text)
    except ValueError:
        return text


# The command line: `links --source-cloud UK` asks for links/?source_cloud=UK. ------------------

ENDS = ("site", "cloud", "tier", "country", "label", "endpoint", "tag")
FILTERS = " ".join(end + one for end in ("", "source_", "destination_") for one in ENDS)
WAYS = "mover mode streams ip_version clock origin mesh concurrent purpose data_server"
WINDOW = f"size window from to {WAYS} "
# What each command gives, its parameters, and the columns of its table where not all fit.
READING = {
    "matrix": (
        "The matrix, sources by destinations.",
        f"compare fields shape stat rows columns max_age {WINDOW}{FILTERS}",
        "",
    ),
    "links": (
        "One row per link, with its rates in each size class.",
        "quantiles overhead ordering search min_mb_s max_mb_s max_age only page_size cursor "
        f"compare {WINDOW}{FILTERS}",
        r"source|destination|.+\.(mean_mb_s|ok|failed|last)",
    ),
    "transfers": (
        "Results, newest first. The table shows one page; csv and ndjson contain all.",
        f"state error page_size cursor {WINDOW}{FILTERS}",
        "started_at|source|destination|size|state|rate_mb_s|error",
    ),
    "series": (
        "Rates of a link over time.",
        f"source destination bucket points compare {WINDOW}",
        "",
    ),
    "events": (
        "Links, endpoints and sites that were slower, faster, failing or not tested.",
        f"type scope factor now significant since page_size cursor size window from to {FILTERS}",
        "since|type|scope|source|destination|sizes|factor|low|high|until",
    ),
    "causes": (
        "Sources and destinations compared with peers; with --compare, causes of changes.",
        f"compare fit stat rows columns max_age {WINDOW}{FILTERS}",
        "",
    ),
    "diagnosis": ("Reasons why a link is slow or fails.", f"source destination {WINDOW}", ""),
    "inside": (
        "Rate of a link within its transfers.",
        f"source destination {WINDOW}",
        "",
    ),
    "network": (
        "Network tests (memory to memory), newest first.",
        f"state page_size cursor window from to {FILTERS}",
        "started_at|source|destination|state|rate_mb_s|rtt_mean_ms|loss|error",
    ),
    "sites": (
        "All sites, with their rates.",
        f"ordering search page_size cursor {WINDOW}{FILTERS}",
        "name|cloud|tier|endpoints|source_mean_mb_s|destination_mean_mb_s|success|last",
    ),
    "endpoints": ("All endpoints.", "site cloud label tag enabled retired page_size cursor", ""),
    "status": ("Health of Sonar itself.", "", ""),
}
HELP = """
Parameters are passed to Sonar unchanged. URL/api/v1/docs/ describes these and others, such as
--large.ok.min 3 for links. Filters can be repeated, and !UK excludes UK. To compare, use --compare
with previous, week, reverse or FROM..TO, or use --compare.around TIME. Filters of the other side
begin with --compare, such as --compare.size small or --compare.streams 4.
"""
END = "\n\nExit code: 0: success; 1: a request or test failed; 2: wrong command line."


def which_sonar() -> argparse.ArgumentParser:
    """Return the options that say where Sonar is, as a parent of others; `connected` reads them."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument(
        "--url", help="URL of Sonar, like https://sonar.example.org (default: SONAR_URL)"
    )
    shared.add_argument(
        "--token-file", metavar="FILE", help="file with the token (default: SONAR_TOKEN)"
    )
    shared.add_argument("--cache", metavar="DIR", help="directory to cache responses in")
    return shared


def connected(options: argparse.Namespace) -> Sonar:
    """Return the Sonar that a command line or the environment speaks of."""
    given = vars(options)
    url, token = given.get("url", os.environ.get("SONAR_URL")), os.environ.get("SONAR_TOKEN")
    if "token_file" in given:
        token = Path(given["token_file"]).read_text(encoding="utf-8").strip()
    if not url:
        raise SonarError("The URL of Sonar is missing: use --url or set SONAR_URL.")
    return Sonar(url, token, cache=given.get("cache"))


def parser() -> argparse.ArgumentParser:
    shared: dict[str, Any] = {"parents": [which_sonar()], "allow_abbrev": False}
    shared["formatter_class"] = argparse.RawDescriptionHelpFormatter
    whole = argparse.ArgumentParser(description=TITLE, epilog=END, **shared)
    verbs = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, what: str, more: str = "") -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=what, description=what, epilog=more + END, **shared)

    for name, (what, params, _) in READING.items():
        shown = " ".join(f"--{one.replace('_', '-')}" for one in params.split())
        verb = command(name, what, params and HELP + fill(shown, 96, break_on_hyphens=False))
        verb.add_argument("--format", choices=("table", *MEDIA_TYPES), default="table")
    verb = command("probe", "Run tests of a link.")
    verb.add_argument("source", metavar="SOURCE", help="name of an endpoint")
    verb.add_argument("destination", metavar="DESTINATION", help="name of an endpoint")
    verb.add_argument(
        "--sizes", default="small", metavar="A,B", help="size classes (default: small)"
    )
    verb.add_argument("--count", type=int, default=1, help="tests per size class (default: 1)")
    verb.add_argument("--streams", type=int, default=1, help="streams per test (default: 1)")
    verb.add_argument("--mode", choices=("pull", "push"), default="pull", help="default: pull")
    verb.add_argument("--wait", action="store_true", help="wait until all tests have ended")
    verb = command("sweep", "Run a parameter sweep: tests of a link that differ in one setting.")
    verb.add_argument("source", metavar="SOURCE", help="name of an endpoint")
    verb.add_argument("destination", metavar="DESTINATION", help="name of an endpoint")
    verb.add_argument("--vary", choices=("streams", "size", "mode"), default="streams")
    verb.add_argument(
        "--values",
        metavar="A,B",
        help="default: 1,2,4,8,16 streams; all size classes; or both modes",
    )
    verb.add_argument("--repeats", type=int, default=3, help="tests per value (default: 3)")
    verb.add_argument(
        "--size", default="large", help="size class, unless it varies (default: large)"
    )
    verb.add_argument(
        "--streams", type=int, default=1, help="streams, unless they vary (default: 1)"
    )
    verb.add_argument("--mode", choices=("pull", "push"), default="pull", help="default: pull")
    verb.add_argument("--wait", action="store_true", help="wait until all tests have ended")
    verb = command("push", "Import results of other tools.")
    verb.add_argument(
        "file", metavar="FILE", help="CSV with a header, or NDJSON; - for standard input"
    )
    return whole


def joined(words: Sequence[str]) -> list[str]:
    """Write `--name value` as `--name=value`, so that a value may begin with a dash."""
    found: list[str] = []
    for word in words:
        before = found[-1] if found else ""
        if re.fullmatch("--(?!wait$|help$)[^=]+", before) and not word.startswith("--"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def read_line(words: Sequence[str]) -> tuple[argparse.Namespace, Record]:
    """Return the options of a command line, and the parameters that go to Sonar as they are."""
    known = parser()
    options, others = known.parse_known_args(joined(words))
    params: dict[str, list[str]] = {}
    for word in others:
        name, given, value = word.partition("=")
        if options.command not in READING or not name.startswith("--") or not given:
            known.error(f"unrecognised argument: {word}")
        # Names with a dot are of columns, and a size class may have a dash in its own.
        name = name[2:] if "." in name else name[2:].replace("-", "_")
        params.setdefault(name, []).append(value)
    return options, params


def show(sonar: Sonar, options: argparse.Namespace, params: Record) -> int:
    path = f"{options.command}/"
    if options.format != "table":
        for piece in sonar.raw(path, options.format, **params):
            sys.stdout.buffer.write(piece)
    elif options.command == "status":
        print(json.dumps(sonar.status(), indent=2))
    elif options.command in SENTENCES:
        print("\n".join(SENTENCES[options.command](sonar.read(path, **params))))
    elif options.command == "matrix":
        frame = sonar.matrix(*params.pop("fields", []), **params)
        print(f"{frame.attrs['description']} ({frame.attrs['unit']})\n\n{in_columns(frame)}")
    elif options.command == "transfers":
        page = sonar.read(path, **params)["transfers"]
        print(in_columns(pd.DataFrame(page), READING["transfers"][2]))
    else:
        print(in_columns(sonar.table(path, **params), READING[options.command][2]))
    return 0


def of_causes(answer: Record) -> Iterator[str]:
    """Say what was found, and show both ends of links, the slowest first."""
    yield f"{answer['description']}\n\n{answer['headline']}"
    yield from (one["text"] for one in answer["changes"] or answer["findings"])
    columns = "name|factor|low|high|p|partners|kind"
    for end in ("sources", "destinations"):
        frame = pd.DataFrame(answer[end]).replace({None: float("nan")})
        yield f"\n{end}\n{in_columns(frame, columns)}"


def of_diagnosis(answer: Record) -> Iterator[str]:
    """Say each diagnosis with its figures and what to do next, or why there is none."""
    for one in answer["diagnoses"]:
        yield one["headline"]
        yield from (f"  {line}" for line in one["evidence"])
        yield f"  Next: {one['next']}"
    if not answer["diagnoses"]:
        yield answer["silence"]


def of_inside(answer: Record) -> Iterator[str]:
    inside = answer["inside"]
    yield from inside["sentences"] if inside else ["No transfer has enough progress samples."]


# How commands say an answer that is no table.
SENTENCES: dict[str, Callable[[Record], Iterator[str]]] = {
    "causes": of_causes,
    "diagnosis": of_diagnosis,
    "inside": of_inside,
}


def in_columns(frame: pd.DataFrame, columns: str = "") -> str:
    if frame.empty:
        return "No results match."
    frame = frame.filter(regex=f"^({columns})$") if columns else frame
    for name in frame.select_dtypes("datetimetz"):
        frame = frame.assign(**{name: frame[name].dt.strftime("%Y-%m-%dT%H:%M:%SZ")})
    named = isinstance(frame.index[0], str)
    return frame.to_string(index=named, na_rep="-", float_format="{:.4g}".format)


def probe(sonar: Sonar, options: argparse.Namespace) -> int:
    wanted = {"count": options.count, "streams": options.streams, "mode": options.mode}
    tests = sonar.probe(options.source, options.destination, options.sizes.split(","), **wanted)
    told: dict[str, str] = {}
    for now in sonar.wait(tests) if options.wait else [tests]:
        for one in now:
            if told.get(one["id"]) != state_of(one):
                told[one["id"]] = state_of(one)
                print(f"{one['id']}  {one['size']}  {state_of(one)}", flush=True)
        tests = now
    return int(any(one["state"] in ("failed", "lost") for one in tests))


def sweep(sonar: Sonar, options: argparse.Namespace) -> int:
    wanted = {"repeats": options.repeats, "mode": options.mode}
    wanted |= {} if options.vary == "size" else {"size": options.size}
    wanted |= {} if options.vary == "streams" else {"streams": options.streams}
    if options.values:
        values = options.values.split(",")
        is_number = options.vary == "streams"
        wanted["values"] = [int(one) if is_number and one.isdecimal() else one for one in values]
    ordered = sonar.sweep(options.source, options.destination, options.vary, **wanted)
    print(f"{ordered['id']}  {ordered['title']}", flush=True)
    told = -1
    for now in sonar.follow(ordered) if options.wait else [ordered]:
        if told != now["open"]:
            told = now["open"]
            print(f"{now['tests'] - told} of {now['tests']} tests have ended", flush=True)
        ordered = now
    for value in ordered["values"] if options.wait else []:
        rate = "no rate" if value["median_mb_s"] is None else f"{value['median_mb_s']:.3g} MB/s"
        print(f"{value['value']:>8}  {rate}  (n = {value['done']})")
    if options.wait:
        print(ordered["finding"])
    return int(options.wait and not ordered["done"])


TOLD = ("state", "waits_because", "rate_mb_s", "error")


def state_of(test: Record) -> str:
    return " ".join(str(test[name]) for name in TOLD if test.get(name))


def push(sonar: Sonar, options: argparse.Namespace) -> int:
    if options.file == "-":
        done = sonar.push(read_results(sys.stdin))
    else:
        with Path(options.file).open(encoding="utf-8-sig", newline="") as lines:
            done = sonar.push(read_results(lines))
    duplicates = f"{done.duplicates:,} duplicate{'s' * (done.duplicates != 1)}"
    print(f"{done.accepted:,} accepted, {duplicates}")
    return 0


def main() -> int:
    options, params = read_line(sys.argv[1:])
    own = {"probe": probe, "sweep": sweep, "push": push}
    try:
        sonar = connected(options)
        if options.command in own:
            return own[options.command](sonar, options)
        return show(sonar, options, params)
    except (SonarError, OSError, ValueError) as error:
        print(f"sonar_client: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as for `... | head`
    sys.exit(main())
