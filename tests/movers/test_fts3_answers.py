"""What FTS3 says, read from what a real one has said; and whatever else it may say."""

import http.client
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.base import MoverError, Service, Where
from sonar.movers.fts3 import poll, rest
from sonar.movers.fts3.mover import Fts3, job_for, receipt, submit
from sonar.movers.fts3.poll import Job, Poller, Pollers, Progress, failure_of, progress_of
from sonar.movers.fts3.rest import Fts
from sonar.movers.mover import AsksService
from sonar.movers.watch import Watch
from sonar.notation.csv_text import LOG_URL, REMOTE_ID, kept
from sonar.notation.units import LONGEST_SECONDS
from tests.api import edges
from tests.movers.orders import order_between
from tests.movers.scripted import scripted, status
from tests.storage import fts
from tests.storage.fts import (
    FILE,
    JOB,
    REFUSALS,
    SAMPLES,
    FtsServer,
    fts_server,
    sample,
    unknown,
)
from tests.storage.fts import Job as ServedJob

ORDER = order_between("davs://glasgow.example:1094", "davs://ral.example:1094")

Json = dict[str, Any]


SUBMITTED = FILE
ACTIVE = sample("GET files (row set ACTIVE")[0]
FINISHED = sample("GET files (FINISHED by SQL)")[0]


def progress(file: Json, **job: object) -> Progress:
    return progress_of(JOB | job | {"files": [file]})


def test_a_job_in_the_queue_has_begun_nothing():
    assert progress(SUBMITTED) == Progress("SUBMITTED")
    assert not progress(SUBMITTED).is_final


def test_a_job_that_runs_says_how_it_does():
    seen = progress(ACTIVE)
    assert not seen.is_final
    assert seen == Progress("ACTIVE", "", 21.0, None, 2)


def test_a_job_that_is_done_says_for_how_long():
    seen = progress(FINISHED | {"log_file": "/var/log/fts3/2026-11-20/a__b/x", "scitag": 139})
    assert seen.is_final
    assert (seen.seconds, seen.queue_seconds, seen.scitag) == (17.1, 21.0, 139)
    assert kept(LOG_URL, seen.log_url) == "https://fts-here:8449/var/log/fts3/2026-11-20/a__b/x"
    assert kept(REMOTE_ID, JOB["job_id"])


def test_its_seconds_and_its_rate_agree():
    # MiB a second, of the length that was asked for.
    rate = FINISHED["user_filesize"] / 2**20 / FINISHED["tx_duration"]
    assert rate == pytest.approx(FINISHED["throughput"], rel=0.02)


@pytest.mark.parametrize("state", ["TOKEN_PREP", "ARCHIVING", "ON_HOLD", "NOT_USED", "PONDERING"])
def test_a_state_that_nobody_knows_is_not_the_last(state: str):
    assert not progress(SUBMITTED | {"file_state": state}).is_final
    assert not progress_of(JOB | {"job_state": state}).is_final


@pytest.mark.parametrize("state", ["FAILED", "CANCELED", "FINISHEDDIRTY"])
def test_a_job_that_is_over_is_so_whatever_its_file_is_said_to_be(state: str):
    seen = progress(SUBMITTED, job_state=state, reason="of the job")
    assert seen.is_final
    assert seen.reason == "of the job"


@pytest.mark.parametrize(
    ("reason", "where", "permanent"),
    [
        ("SOURCE [2] HTTP 404 : File not found", "source", True),
        ("SOURCE SRM_GET_TURL [110] timed out", "source", False),
        ("DESTINATION [17] Destination file exists and overwrite is not enabled", "destination", 1),
        ("DESTINATION [13] HTTP 403 : Permission refused", "destination", True),
        ("DESTINATION OVERWRITE [5] no", "destination", False),
        ("TRANSFER [28] No space left on device", "destination", False),
        ("TRANSFER CHECKSUM MISMATCH Source and destination checksums do not match", "transfer", 0),
        ("GENERAL_FAILURE [125] Transfer canceled because the gsiftp", "control", False),
        ("AGENT [70] could not fork", "control", False),
        ("SOURCES are odd", "control", False),
        ("", "control", False),
    ],
)
def test_a_reason_says_whose_fault_it_is(reason: str, where: str, permanent: bool):
    error = failure_of(Progress("FAILED", reason))
    assert (error.where, error.permanent) == (where, bool(permanent))
    assert str(error).startswith("FTS: ")
    assert reason in str(error)


@pytest.mark.parametrize("name", sorted({*FINISHED, *JOB}))
def test_no_field_at_the_ends_of_its_range_says_what_a_result_cannot(name: str):
    """A year 9999 in a queue once made a page of what is computed of it an error."""
    for value in (*edges.NUMBERS, math.inf, *edges.TIMES, *edges.LOOSE_TIMES, *edges.TEXTS):
        for seen in (progress(FINISHED | {name: value}), progress(FINISHED, **{name: value})):
            assert seen.seconds is None or 0 < seen.seconds <= LONGEST_SECONDS, value
            assert 0 <= (seen.queue_seconds or 0.0) <= LONGEST_SECONDS, value


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=5,
)
names = st.sampled_from([*FINISHED, *JOB, "files"])


@given(st.dictionaries(names, anything), st.dictionaries(names, anything) | anything)
def test_whatever_a_job_says_is_read(job: Json, file: object):
    for files in (file, [file], [file, file]):
        job["files"] = files
        seen = progress_of(job)
        assert seen.seconds is None or seen.seconds > 0
        assert seen.queue_seconds is None or seen.queue_seconds >= 0
        assert isinstance(failure_of(seen), MoverError)
        polled = Job("1")
        polled.learn(job)
        assert polled.over.is_set() == seen.is_final


@given(st.dictionaries(names, anything), anything)
def test_a_sample_with_anything_in_its_fields_is_read(fields: Json, files: object):
    progress(FINISHED | fields)
    progress_of(JOB | fields | {"files": files})


def answering(content: bytes, line: str = "200 OK") -> Any:
    head = f"HTTP/1.1 {line}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return scripted(lambda connection: connection.sendall(head.encode() + content))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"1", b'"x"', b"{", b"[[[", b"[" * 100_000, b"{}", b"[]"),
        *(b"[1, null, [], {}]", b'{"job_id": 5}', b'{"job_id": "../../x"}'),
        *(b'{"job_id": "a,b"}', b"\xff\xfe", b'[{"a":NaN}]'),
    ],
)
def test_an_answer_that_is_none_is_an_error_or_nothing(content: bytes):
    with answering(content) as server:
        fts = Fts(Service(server.url))
        assert where_of(lambda: fts.submit({"files": []})) == Where.CONTROL
        assert where_of(lambda: fts.unfinished("davs://a")) in (Where.CONTROL, {})
        assert where_of(lambda: fts.jobs(["a"])) in (Where.CONTROL, {})


@given(anything | st.lists(st.dictionaries(names, anything), max_size=3), st.integers(200, 599))
def test_whatever_a_server_answers_is_an_answer_or_an_error(content: object, code: int):
    with answering(json.dumps(content).encode(), f"{code} X") as server:
        fts = Fts(Service(server.url))
        for question in (
            lambda: fts.submit({"files": []}),
            lambda: fts.jobs(["a", "b"]),
            lambda: fts.unfinished("davs://a"),
            lambda: fts.cancel(["a"]),
        ):
            where_of(question)


def where_of(ask: Callable[[], object]) -> object:
    """Return what somebody says, or where the error is that he raises."""
    try:
        return ask()
    except MoverError as error:
        return error.where


def test_an_answer_that_does_not_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(rest, "MAX_ANSWER_BYTES", 1000)
    too_long = pytest.raises(MoverError, match="longer than 1000 bytes")
    with answering(b'["' + b"x" * 2000 + b'"]') as server, too_long:
        Fts(Service(server.url)).jobs(["a", "b"])


def test_jobs_are_taken_from_an_answer_in_parts():
    refused = {"job_id": "not-ours", "http_status": "403 Forbidden", "http_message": "no"}
    rows = [JOB | {"http_status": "200 Ok"}, unknown("nope"), refused, {"job_id": "foreign"}, 7]
    with answering(json.dumps(rows).encode(), "207 Multi-Status") as server:
        answer = Fts(Service(server.url)).jobs([JOB["job_id"], "nope", "not-ours", "out"])
    withheld = answer.pop("not-ours")
    assert answer == {JOB["job_id"]: rows[0], "nope": None}
    assert isinstance(withheld, rest.Refusal)
    assert str(withheld) == "FTS, GET jobs: 403 Forbidden for this job"
    assert withheld.permanent


@pytest.mark.parametrize(
    ("state", "finished", "may_write"),
    [
        ("FINISHED", "2026-11-20T07:47:24", False),
        ("FAILED", "2026-11-20T07:47:24", False),
        ("CANCELED", "2026-11-20T07:47:24", False),
        ("CANCELED", None, True),  # url_copy has not been ended yet
        ("TOKEN_PREP", None, True),
        ("ON_HOLD", None, True),
        ("ACTIVE", None, True),
        (None, None, True),
    ],
)
def test_a_cancelled_job_may_write_until_its_file_is_over(state, finished, may_write: bool):
    file = SUBMITTED | {"file_state": state, "finish_time": finished}
    seen = progress(file, job_state="CANCELED")
    assert (seen.is_final, seen.may_write) == (True, may_write)


@pytest.mark.parametrize("page", fts.PAGES)
def test_only_the_first_paragraph_of_a_page_is_told(page: str):
    words = rest.words_of_page(fts.PAGES[page].encode())
    assert re.match("The (requested URL|server encountered an internal error)", words)
    assert "@" not in words
    assert "<" not in words


def test_whom_to_write_to_is_in_no_error():
    plain = "Ask admin@fts.example or <root@localhost>, see https://fts.example/a@b."
    assert "@" not in str(refused(400, plain)).partition("https")[0]
    reason = "DESTINATION [112] HTTP 500 : Please contact webmaster@se.example now"
    assert "contact (mail address) now" in str(failure_of(Progress("FAILED", reason)))


def test_a_lent_token_that_expired_in_the_queue_is_named():
    reason = Progress("FAILED", "SOURCE [1] HTTP 403 : Permission refused")
    for until, words in ((None, None), (9e9, None), (1e9, "has expired in the meantime")):
        order = replace(ORDER, source=replace(ORDER.source, lent_until=until))
        with pytest.raises(MoverError) as caught:
            receipt(order, reason, "")
        assert caught.value.where == Where.SOURCE
        assert caught.value.permanent == (words is None)
        assert (words or "") in str(caught.value)
        assert ("expired" in str(caught.value)) == (words is not None)


def test_a_refusal_is_told_in_its_own_words():
    words = sample("bad submit")
    assert words["message"] in str(refused(400, words))
    lost = SAMPLES.partition("### bad submit")[2]
    known = json.loads(re.search(r'^\{"job_id": "nope".*$', lost, re.MULTILINE)[0])  # type: ignore[index]
    assert 'No job with the id "nope"' in str(refused(404, known))
    assert "<html>" in str(refused(502, "<html>Bad Gateway</html>"))


def refused(code: int, content: object) -> MoverError:
    text = content if isinstance(content, str) else json.dumps(content)
    with scripted(status(f"{code} X", text)) as server, pytest.raises(MoverError) as caught:
        submit(Fts(Service(server.url)), {"files": [], "params": {}})
    return caught.value


def test_what_is_asked_for_has_no_field_that_a_server_does_not_know():
    known_of_file = set(sample("POST /jobs body")["files"][0]) | {
        *("scitag", "activity", "source_tokens", "destination_tokens")
    }
    last = SAMPLES.partition("### DELETE (cancel)")[2].partition("\n{ ")[2].partition("\n")[0]
    known_of_job = set(json.loads("{ " + last)["params"])
    job = job_for(order_between("davs://a.example", "davs://b.example", streams=4), has_token=False)
    assert set(job["files"][0]) <= known_of_file
    assert set(job["params"]) <= known_of_job
    assert job["files"][0]["sources"] == ["https://a.example/base/source/2000"]
    assert job["params"]["max_time_in_queue"] == "3600s"


def test_the_server_of_these_tests_answers_as_a_real_one_does():
    asked = sample("POST /jobs body")
    served = ServedJob(asked)
    assert_alike(served.row(), JOB)
    assert_alike(served.file_row(), SUBMITTED)
    served.file_state, served.started = "READY", 1.0
    ready = served.file_row()
    assert_alike(ready, ACTIVE | {"throughput": None, "log_file": "/x"})
    assert ready["internal_file_params"] == "nostreams:2,timeout:0,buffersize:1048576"
    assert ready["log_file"] == f"/var/log/fts3/transfers/{served.number}"
    served.file_state, served.file_finished, served.seconds = "FINISHED", 2.0, 1.0
    done = served.file_row()
    assert_alike(done, FINISHED | {"log_file": "/x"})
    day = "/var/log/fts3/transfers/1970-01-01/localhost__localhost/"
    name = f"1970-01-01-0000__localhost__localhost__{done['file_id']}__{served.number}"
    assert done["log_file"] == day + name
    assert progress(done).log_url.endswith(name)
    waiting = ServedJob(asked | {"params": asked["params"] | {"max_time_in_queue": "3600s"}})
    assert waiting.row()["max_time_in_queue"] == int(waiting.submitted) + 3600


@pytest.fixture(scope="module")
def served() -> Iterator[FtsServer]:
    with fts_server(token="known") as server:
        yield server


PLAYED = [
    one
    for one in REFUSALS
    if one["who"] in ("known", "stranger") and not re.search("macaroon|banned", one["asked"])
]
"""The server of these tests knows no banned storage, and takes whatever the ends lend."""


@pytest.mark.parametrize("one", PLAYED, ids=lambda one: f"{one['who']}: {one['asked']}")
def test_the_server_of_these_tests_refuses_as_a_real_one_does(served: FtsServer, one: Json):
    body = one.get("body")
    if body is None and one["method"] == "POST":
        asked = sample("POST /jobs body")
        body = json.dumps(asked | {"files": [asked["files"][0] | one["file"]]})
    headers = {"Authorization": f"Bearer {one['who']}", "Content-Type": one.get("content_type", "")}
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request(one["method"], one["path"], body, headers)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    assert (answer.status, answer.getheader("Content-Type"), said) == (
        one["status"],
        one["type"],
        one["said"],
    )


def test_a_job_that_has_ended_is_cancelled_in_vain_and_so_it_says(served: FtsServer):
    fts = Fts(Service(served.url, "fts", lambda: "known"))
    number = fts.submit(sample("POST /jobs body"))
    fts.cancel([number])
    fts.cancel([number])
    row = fts._ask("DELETE", f"jobs/{number}")
    assert isinstance(row, dict)
    assert (row["http_status"], row["job_state"]) == ("304 Not Modified", "CANCELED")


QUESTIONS: dict[str, Callable[[Fts], object]] = {
    "submit": lambda fts: fts.submit(sample("POST /jobs body")),
    "poll of one": lambda fts: fts.jobs(["a"]),
    "poll of two": lambda fts: fts.jobs(["a", "b"]),
    "list": lambda fts: fts.unfinished("https://a"),
    "cancel": lambda fts: fts.cancel(["a"]),
    "who": lambda fts: fts.introduce(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_whose_token_is_not_taken_is_told_so_whatever_the_server_says(
    served: FtsServer, question: str
):
    """A real one takes him for nobody: it says 403, or breaks (500)."""
    with pytest.raises(MoverError) as caught:
        QUESTIONS[question](Fts(Service(served.url, "fts", lambda: "stranger")))
    assert caught.value.credential_trouble == rest.NOT_TAKEN
    assert caught.value.permanent


def said_of(asked: str, who: str) -> Json:
    return next(one for one in REFUSALS if (one["asked"], one["who"]) == (asked, who))


def page(one: Json) -> tuple[int, dict[str, str], bytes]:
    said = one["said"] if isinstance(one["said"], str) else json.dumps(one["said"])
    return one["status"], {"Content-Type": one["type"]}, said.encode()


@pytest.mark.parametrize("who", ["banned", "without scope"])
def test_who_is_turned_away_by_a_page_is_told_its_words(served: FtsServer, who: str):
    turned_away = page(said_of("who I am", who))
    served.trick = lambda *_: turned_away
    words = {"banned": "The user has been banned"}.get(who, "(Invalid OAuth2 credentials)")
    for ask in QUESTIONS.values():
        with pytest.raises(MoverError, match=r"403 Forbidden: [^<]+$") as caught:
            ask(Fts(Service(served.url, "fts", lambda: "known")))
        assert words in caught.value.credential_trouble
    served.forget()


@pytest.mark.parametrize(
    "one",
    [
        said_of("a copy from a storage that is banned", "known"),
        said_of("a copy with a macaroon lent", "known"),
        said_of("a copy", "certificate"),
        said_of("a job", "stranger"),
    ],
    ids=lambda one: one["asked"],
)
def test_what_is_refused_to_one_who_is_known_says_nothing_of_his_token(
    served: FtsServer, one: Json
):
    served.trick = lambda _, path, __: None if path == "/whoami" else page(one)
    with pytest.raises(MoverError, match=re.escape(one["said"]["message"])) as caught:
        QUESTIONS["submit"](Fts(Service(served.url, "fts", lambda: "known")))
    served.forget()
    assert (caught.value.credential_trouble, caught.value.permanent) == ("", one["status"] < 500)


def test_a_job_that_we_may_not_see_among_others_ends_its_test_alone(served: FtsServer):
    served.trick = lambda *_: page(said_of("jobs of somebody else", "certificate"))
    poller = Poller(Fts(Service(served.url, "fts", lambda: "known")))
    jobs = [Job("JOB"), Job("out")]
    for _ in range(poll.SURE):
        poller._ask_after(jobs)
    served.forget()
    assert str(jobs[0].error) == "FTS, GET jobs: 403 Forbidden for this job"
    assert not jobs[1].over.is_set()


def test_a_job_that_waited_too_long_was_cancelled_by_nobody():
    reason = "Job has been canceled because it stayed in the queue for too long"
    error = failure_of(Progress("CANCELED", reason))
    assert (error.where, str(error)) == (Where.CONTROL, f"FTS: the job was cancelled: {reason}")


def assert_alike(mine: Json, real: Json) -> None:
    """Hold that these have the same fields, of the same kinds."""
    assert set(mine) == set(real)
    kinds = {name: (type(mine[name]), type(real[name])) for name in mine}
    differ = {name for name, (one, other) in kinds.items() if one is not other}
    # What a job was not asked for is null.
    assert differ <= {"overwrite_flag"}
    assert json.loads(json.dumps(mine)) == mine


def test_who_names_no_service_is_refused():
    with pytest.raises(MoverError, match="no FTS service is configured") as caught:
        Fts3().move(ORDER, Watch())
    assert caught.value.permanent
    assert isinstance(Fts3(), AsksService)


def test_jobs_are_asked_after_with_what_is_registered_now():
    pollers, url = Pollers(), "https://fts.example:8446"
    poller = pollers.of(Service(url, "fts", lambda: "old"), "")
    assert pollers.of(Service(url, "fts", lambda: "new"), "") is poller
    assert poller.fts.service.token() == "new"
    assert pollers.of(Service(url, "another"), "") is not poller


@pytest.mark.parametrize("answers", [KeyError("jobs"), {"1": KeyError("job"), "2": None}])
def test_a_poll_that_breaks_ends_its_jobs_and_no_others(monkeypatch, answers: object):
    """The thread lives on: else all jobs of the process would wait until their deadlines."""

    class Broken:
        def jobs(self, numbers: Sequence[str]) -> object:
            if isinstance(answers, Exception):
                raise answers
            return answers

    def progress(job: object) -> object:
        raise job if isinstance(job, Exception) else AssertionError

    monkeypatch.setattr(poll, "progress_of", progress)
    poller, jobs = Poller(Broken()), [Job("1"), Job("2")]  # type: ignore[arg-type]
    poller._ask_after(jobs)
    ended = [job.over.is_set() for job in jobs]
    assert ended == ([True, True] if isinstance(answers, Exception) else [True, False])
    assert str(jobs[0].error).startswith("internal error in Sonar (KeyError)")
