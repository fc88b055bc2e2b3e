"""Questions to the REST interface of an FTS3 server, and answers that are bounded and checked.

Each question has a connection of its own: they are few, and a server that closes a kept one
would leave in doubt whether a job was submitted. No redirect is followed: whoever has our token,
and those that endpoints lend, is the host that was registered.
"""

import html
import http.client
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson
from urllib3 import PoolManager
from urllib3.response import BaseHTTPResponse
from urllib3.util import Timeout

from sonar.movers.base import End, Limits, MoverError, Service, Stopped, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import FOREIGN, authorization, in_time, new_pool
from sonar.movers.http.failures import foreign_failure, lasts, refused
from sonar.movers.messages import one_line

Json = dict[str, Any]

PATIENCE = Limits(connect=10.0, answer=30.0)
MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""A poll of 100 jobs is some 150 KB, and 0.5 MB if each gives a long reason."""
MAX_WORDS_BYTES = 64 * 1024
"""Of a refusal, whose words are read for people."""
FILE_FIELDS = (
    "file_state",
    "reason",
    "start_time",
    "finish_time",
    "tx_duration",
    "internal_file_params",
    "transfer_host",
    "log_file",
    "scitag",
)
HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "Connection": "close"}
MEANINGS = {
    419: "FTS requires a delegated X.509 certificate, which Sonar does not support",
    424: "a service that FTS depends on has failed",
}
NOT_MODIFIED = 304
"""Answer to the cancellation of a job that has ended; 3.13 gives it within a 200."""
UNKNOWN = 404
UNAUTHORIZED = 401
FORBIDDEN = 403
DOUBTFUL = {FORBIDDEN, http.client.INTERNAL_SERVER_ERROR}
"""Answers of 3.13 to a token that it does not accept: 500 where a job is asked after or cancelled.

It says the same to others, too.
"""
NOBODY = "unauthenticated"
"""Method that it reports for a token that it does not accept, or for none."""
NOT_TAKEN = (
    "FTS, GET whoami: the token is not accepted. It may have expired, be for another audience, or "
    "come from an issuer that FTS does not know"
)
OK = "200"
"""How the status of a job begins, in an answer about several."""
PARAGRAPH = re.compile("<p>([^<]{1,500})<", re.IGNORECASE)
"""Of a web page: the first one gives the reason, Apache's second one names the administrator."""


class Refusal(MoverError):
    """It answered, and did not do it: nothing was begun."""

    def __init__(
        self, status: int, message: str, words: str, *, permanent: bool, is_json: bool = False
    ) -> None:
        super().__init__(Where.CONTROL, message, permanent=permanent)
        self.status, self.words = status, words
        self.is_json = is_json
        """Whether FTS gave it, and not the web server in front of it."""


class UnreadableError(MoverError):
    """A success was answered, but with a text that is not FTS's, or is too long to be read."""


class NotAsked(MoverError):
    """The question has not left: nothing was begun."""


JobAnswer = Json | Refusal | None
"""Its answer about a job: None if it knows no such job, a Refusal if we may not see it."""


@dataclass(frozen=True)
class Question:
    """One request, below the URL of the service."""

    method: str
    path: str
    body: Json | None = None

    @property
    def place(self) -> str:
        """Name it as every message begins: without a host, and without the ids in it."""
        return f"FTS, {self.method} {re.split('[/?]', self.path)[0]}"


@dataclass(frozen=True)
class Fts:
    """One FTS3 server, as one account knows it."""

    service: Service
    ca_bundle: str = ""

    def submit(self, job: Json) -> str:
        """Ask for a job; return its id. Raises Refusal, NotAsked, or MoverError if in doubt."""
        answer = self._ask("POST", "jobs", job)
        number = answer.get("job_id") if isinstance(answer, dict) else None
        if not isinstance(number, str) or not is_plain(number):
            raise MoverError(Where.CONTROL, "FTS, POST jobs: the answer contains no job id")
        return number

    def jobs(self, numbers: Sequence[str]) -> dict[str, JobAnswer]:
        """Return these jobs as it knows them.

        Only a job that FTS itself calls unknown is None: a web server in front of it answers 404
        to a path that is too long for it.
        """
        fields = ",".join(FILE_FIELDS)
        try:
            answer = self._ask("GET", f"jobs/{','.join(numbers)}?files={fields}")
        except Refusal as error:
            if error.status == UNKNOWN and error.is_json and len(numbers) == 1:
                return {numbers[0]: None}
            raise
        return dict(_of_jobs(answer, set(numbers)))

    def unfinished(self, destination: str, source: str = "") -> dict[str, object]:
        """Return the metadata, by id, of our unfinished jobs to a storage, ``scheme://host``.

        Without the ``dlg_id`` FTS lists everybody's jobs, 13 MB of them at a large site. It has no
        index by the destination alone: give the source where it is known.
        """
        query = {"fields": "job_id,job_metadata", "dest_se": destination, "source_se": source}
        query["dlg_id"] = self.introduce()
        filters = urlencode({name: value for name, value in query.items() if value})
        answer = self._ask("GET", f"jobs?{filters}")
        if not isinstance(answer, list):
            raise UnreadableError(Where.CONTROL, "FTS, GET jobs: the answer is not a list of jobs")
        rows = [row for row in answer if isinstance(row, dict)]
        return {
            number: row.get("job_metadata")
            for row in rows
            if isinstance(number := row.get("job_id"), str) and is_plain(number)
        }

    def cancel(self, numbers: Sequence[str]) -> None:
        """Cancel jobs in one request; that one has ended, or is not known, is fine."""
        try:
            self._ask("DELETE", f"jobs/{','.join(numbers)}")
        except Refusal as error:
            if error.status != NOT_MODIFIED and not (error.status == UNKNOWN and error.is_json):
                raise

    def introduce(self) -> str:
        """Return the id by which it lists our jobs; raise MoverError if our token is not taken.

        The error has the trouble of the credential. The id is empty where it is not known.

        It needs no rights: who is refused there is so as such, for being banned, of a VO that is
        not served, or without the scope that it wants. A server that does not know the question
        is fine; one that cannot answer it just now raises MoverError without a trouble.
        """
        try:
            answer = self._answer(Question("GET", "whoami"))
        except Refusal as error:
            if error.status in (UNAUTHORIZED, FORBIDDEN):
                error.credential_trouble = str(error)
            elif error.permanent:
                return ""
            raise
        if not isinstance(answer, dict):
            return ""
        if answer.get("method") == NOBODY and self.service.credential:
            failure = MoverError(Where.CONTROL, NOT_TAKEN, permanent=True)
            failure.credential_trouble = NOT_TAKEN
            raise failure
        number = answer.get("delegation_id")
        return number if isinstance(number, str) else ""

    def _ask(self, method: str, path: str, body: Json | None = None) -> Json | list[Any]:
        """Make one request; return what its JSON says, an object or a list.

        What refuses it may be that our token is not taken, which is asked for then.
        """
        try:
            return self._answer(Question(method, path, body))
        except Refusal as error:
            if self.service.credential and error.status in DOUBTFUL:
                error.credential_trouble = one_line(self._trouble(), *secrets_in(body))
                error.permanent = error.permanent or bool(error.credential_trouble)
            raise

    def _trouble(self) -> str:
        """Say why our token is not taken; nothing if it is, or if that cannot be known."""
        try:
            self.introduce()
        except Stopped:
            raise
        except MoverError as error:
            return error.credential_trouble
        return ""

    def _answer(self, question: Question) -> Json | list[Any]:
        """Make one request; return what its JSON says, an object or a list."""
        try:
            end = End(Where.CONTROL, self.service.url, self.service.url, self.service.token())
            headers, pool = {**authorization(end), **HEADERS}, new_pool(self.ca_bundle)
        except Stopped:
            raise
        except MoverError as error:
            failure = NotAsked(error.where, str(error), permanent=error.permanent)
            failure.credential_trouble = error.credential_trouble
            raise failure from error
        with _sent(question, end, pool, headers) as response:
            if not 200 <= response.status < 300:
                raise refusal(response, end, question)
            content = response.read(MAX_ANSWER_BYTES + 1, decode_content=False)
        if len(content) > MAX_ANSWER_BYTES:
            message = f"{question.place}: the answer is longer than {MAX_ANSWER_BYTES} bytes"
            raise UnreadableError(Where.CONTROL, message)
        return _json(content, question.place)


@contextmanager
def _sent(
    question: Question, end: End, pool: PoolManager, headers: Mapping[str, str]
) -> Iterator[BaseHTTPResponse]:
    """Send a question and hold its answer open, within the step that it belongs to."""
    wait = Wait(PATIENCE.answer, PATIENCE.connect + PATIENCE.answer)
    try:
        with in_time(wait):
            yield pool.urlopen(
                question.method,
                f"{end.url.rstrip('/')}/{question.path}",
                headers=headers,
                body=None if question.body is None else orjson.dumps(question.body),
                redirect=False,
                retries=False,
                preload_content=False,
                timeout=Timeout(connect=PATIENCE.connect, read=PATIENCE.answer),
            )
    except FOREIGN as error:
        place = question.place
        failure = foreign_failure(error, end, place, wait.overdue(end, place))
        if wait.was_sent:
            raise failure from error
        raise NotAsked(Where.CONTROL, str(failure), permanent=failure.permanent) from error
    finally:
        pool.clear()


def _of_jobs(answer: Json | list[Any], numbers: set[str]) -> Iterator[tuple[str, JobAnswer]]:
    """Yield each job that was asked for; one alone comes without a list around it."""
    for job in answer if isinstance(answer, list) else [answer]:
        number = job.get("job_id") if isinstance(job, dict) else None
        if not isinstance(number, str) or number not in numbers:
            continue
        status = str(job.get("http_status", OK))
        if status.startswith(OK):
            yield number, job
        elif status.startswith(str(UNKNOWN)):
            yield number, None
        elif re.match("[1-9][0-9]{2}\\b", status):
            yield number, _withheld(int(status[:3]))


def _withheld(status: int) -> Refusal:
    """Return what it means that one job of several is not told; its own words may quote a token."""
    phrase = http.client.responses.get(status, "")
    message = f"FTS, GET jobs: {status} {phrase} for this job"
    return Refusal(status, message, "", permanent=lasts(status))


def _json(content: bytes, place: str) -> Json | list[Any]:
    try:
        answer = orjson.loads(content)
    except ValueError:  # its own words quote what was sent
        answer = None
    if not isinstance(answer, dict | list):
        raise UnreadableError(Where.CONTROL, f"{place}: the answer is not valid FTS JSON")
    return answer


def refusal(response: BaseHTTPResponse, end: End, question: Question) -> Refusal:
    """Return what it means that it did not do what it was asked."""
    place = question.place
    if response.get_redirect_location():
        message = f"{place}: {response.status}, a redirect, which Sonar does not follow"
        return Refusal(response.status, message, "", permanent=True)
    content = response.read(MAX_WORDS_BYTES, decode_content=False)
    answer = _object_in(content)
    text = words_of_page(content) if answer is None else words_of(answer)
    words = one_line(text, end.token, *secrets_in(question.body))
    meaning = MEANINGS.get(response.status, "")
    text = "; ".join(filter(None, (meaning, words)))
    error = refused(end, place, response.status, text)
    permanent = error.permanent and response.status != http.client.FAILED_DEPENDENCY
    is_json = answer is not None
    failure = Refusal(response.status, str(error), words, permanent=permanent, is_json=is_json)
    if response.status == UNAUTHORIZED:
        failure.credential_trouble = str(error)
    return failure


def _object_in(content: bytes) -> Json | None:
    """Return the object that a refusal of FTS is; None for what a server in front of it says."""
    try:
        answer = orjson.loads(content)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else {}


def words_of(answer: Json) -> str:
    """Return why FTS refuses; empty if it does not say."""
    texts = (answer.get(name) for name in ("message", "http_message"))
    return next((text for text in texts if isinstance(text, str)), "")


def words_of_page(content: bytes) -> str:
    """Return why a web server refuses: the first paragraph of its page, or all of a plain text."""
    text = content.decode("utf-8", "replace")
    first = PARAGRAPH.search(text)
    return html.unescape(first[1]) if first else text


def secrets_in(job: Json | None) -> list[str]:
    """Return the tokens within a job that is asked for."""
    files = job["files"] if job else []
    return [
        token
        for file in files
        for name in ("source_tokens", "destination_tokens")
        for token in file.get(name, [])
    ]


def is_plain(number: str) -> bool:
    """Say whether an id may stand in a URL and in a list of ids: it is one of a few letters."""
    return 0 < len(number) <= 100 and number.isascii() and number.replace("-", "").isalnum()
