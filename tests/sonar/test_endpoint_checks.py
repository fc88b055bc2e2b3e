"""Checks of registered endpoints: ordered, carried out, kept; and the command."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from sonar import tasks
from sonar.models import Credential, Endpoint, EndpointCheck, Leftover, RefusedRedirect
from sonar.movers.base import End, Where
from sonar.notation import check_steps
from sonar.notation.check_steps import StepState
from sonar.ordering import request_checks
from sonar.ordering.request_checks import EVERY, LONGEST, CheckRefusedError
from sonar.scheduler import dispatch
from sonar.work import cleanup, endpoint_checks
from sonar.work.credential_words import credential_step
from tests import dav
from tests.dav import says
from tests.sonar import world
from tests.sonar.world import NOW, endpoint

pytestmark = pytest.mark.django_db
SECRET = "the-secret-token-that-nobody-may-read"
OTHERS = "what-another-endpoint-lent-to-this-one"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the checks that are sent to workers, which are none."""
    runs: list[str] = []
    monkeypatch.setattr(request_checks, "send_check", lambda run, _: runs.append(str(run)))
    return runs


@pytest.fixture
def person() -> User:
    return User.objects.create_user("anna")


def ordered(row: Endpoint, person: User, now=NOW) -> EndpointCheck:
    return request_checks.order(row, person, now)


def steps_of(row: Endpoint) -> dict[str, check_steps.CheckStep]:
    kept = EndpointCheck.objects.get(endpoint=row)
    return {step.name: step for step in check_steps.read(kept.steps)}


def test_an_ordered_check_is_carried_out_by_a_worker_and_kept(
    sent, person, django_capture_on_commit_callbacks
):
    with dav.serving() as server:
        row = endpoint("RAL", base_url=server.base_url)
        with django_capture_on_commit_callbacks(execute=True):
            check = ordered(row, person)
        assert (check.started_at, check.steps, sent) == (None, [], [str(check.run)])
        tasks.check_endpoint(sent[0])
        requests = len(server.requests)
        tasks.check_endpoint(sent[0])  # a message that comes twice does nothing
        assert len(server.requests) == requests
        assert server.files == {}
    check.refresh_from_db()
    assert check.started_at <= check.ended_at
    assert list(steps_of(row)) == [*list(check_steps.STEPS)]
    well = {StepState.FINE, StepState.NOT_CHECKED}
    assert not [step for step in steps_of(row).values() if step.state not in well]
    assert not Leftover.objects.exists()


def test_a_check_whose_place_a_newer_one_took_is_not_carried_out(sent, person):
    row = endpoint("RAL", base_url="http://127.0.0.1:1/base")
    before = ordered(row, person).run
    ordered(row, person, NOW + EVERY)
    tasks.check_endpoint(str(before))
    assert EndpointCheck.objects.get().started_at is None


def test_an_endpoint_is_checked_once_at_a_time_and_once_a_minute(sent, person):
    row = endpoint("RAL")
    check = ordered(row, person)
    with pytest.raises(CheckRefusedError, match="again in 59 s"):
        ordered(row, person, NOW + timedelta(seconds=1))
    EndpointCheck.objects.update(started_at=NOW)
    with pytest.raises(CheckRefusedError, match="is running"):
        ordered(row, person, NOW + EVERY)
    assert ordered(row, person, NOW + LONGEST).run != check.run  # its worker is dead
    assert EndpointCheck.objects.count() == 1
    Endpoint.objects.update(retired_at=NOW)
    with pytest.raises(CheckRefusedError, match="retired"):
        ordered(row, person, NOW + 2 * LONGEST)


def test_several_who_order_at_once_get_one_check(transactional_db, sent):
    row, refused = endpoint("RAL"), []

    def order() -> None:
        try:
            request_checks.begin(row, None, NOW)
        except CheckRefusedError as error:
            refused.append(error)

    world.in_threads(4, order)
    assert (EndpointCheck.objects.count(), len(refused)) == (1, 3)


def test_a_queue_that_is_away_leaves_a_check_that_waits(person, monkeypatch, caplog):
    monkeypatch.setattr(dispatch.app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
    dispatch.send_check(uuid4(), "")
    assert "was not sent, as the queue" in caplog.text


def test_the_file_of_a_check_is_remembered_until_it_is_deleted(sent, person):
    """So that `clean` deletes it if the worker dies; one that could not be deleted stays so."""
    with dav.serving(DELETE=says(403)) as server:
        row = endpoint("RAL", base_url=server.base_url)
        check = request_checks.begin(row, None, NOW, here=True)
        path, _ = endpoint_checks.files_of(check.run)
        endpoint_checks.check_registered(row, check.run)
        assert list(server.files) == [f"/base/{path}"]
        assert path in steps_of(row)["delete"].seen
        assert Leftover.objects.get(path=path).next_try > timezone.now()
        server.ways = {}
        Leftover.objects.update(next_try=NOW)
        cleanup.clean_endpoint(row.id, time.monotonic() + 60)
        assert server.files == {}
    assert not Leftover.objects.exists()


def test_where_a_check_was_led_in_vain_is_suggested_to_be_declared(sent, person):
    def away(server: dav.Dav, path: str) -> dav.Reply:
        return 307, {"Location": f"http://st-048.example.org:8443{path}"}, b""

    with dav.serving(PUT=away) as server:
        row = endpoint("RAL", base_url=server.base_url)
        endpoint_checks.check_registered(row, request_checks.begin(row, None, NOW, here=True).run)
    assert RefusedRedirect.objects.get().server == "st-048.example.org:8443"


def test_what_fails_in_a_check_ends_it(sent, person, monkeypatch):
    row = endpoint("RAL", base_url="http://127.0.0.1:1/base")
    monkeypatch.setattr(endpoint_checks, "planned_for", lambda *_: 1 / 0)
    check = ordered(row, person)
    with pytest.raises(ZeroDivisionError):
        tasks.check_endpoint(str(check.run))
    assert EndpointCheck.objects.get().ended_at


@pytest.mark.parametrize(
    ("base_url", "name", "words"),
    [
        ("fake://ral/data", "name", "simulated"),
        ("gsiftp://127.0.0.1:1/data", "write", "Sonar cannot access files over gsiftp"),
        ("iperf3://127.0.0.1:1", "write", "Sonar cannot access files over iperf3"),
        ("root://127.0.0.1:1/data", "write", "xrdcp"),
    ],
)
def test_a_protocol_whose_files_cannot_be_tried_says_so(base_url, name, words, monkeypatch):
    monkeypatch.setattr("sonar.movers.catalogue.which", lambda program: None)
    row = endpoint("RAL", base_url=base_url)
    endpoint_checks.check_registered(row, request_checks.begin(row, None, NOW, here=True).run)
    step = steps_of(row)[name]
    assert (step.state, words in step.seen) == (StepState.NOT_CHECKED, True)


def token_of(**claims: object) -> str:
    parts = [{"alg": "none"}, claims]
    head, body = (
        urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )
    return f"{head}.{body}.{SECRET}"


GOOD = {
    "iss": "https://iam.example",
    "aud": "https://se.example:1094",
    "scope": "storage.read:/ storage.modify:/sonar",
    "exp": time.time() + 7300,
}


@pytest.mark.parametrize(
    ("changes", "state", "seen", "advice"),
    [
        (
            {},
            StepState.FINE,
            "ral (file): issued by https://iam.example, for https://se.example:1094, "
            "with storage.read:/ storage.modify:/sonar; valid until ",
            "",
        ),
        ({"aud": ["https://wlcg.cern.ch/jwt/v1/any"]}, StepState.FINE, "jwt/v1/any", ""),
        (
            {"aud": "https://other.example"},
            StepState.WARNING,
            "for https://other.example",
            "https://se.example:1094",
        ),
        ({"scope": "storage.read:/"}, StepState.WARNING, "with storage.read:/;", "storage.modify"),
        (
            {"exp": None, "iss": 7, "aud": None, "scope": {}},
            StepState.FINE,
            "the token has no readable claims; no expiry time",
            "",
        ),
    ],
)
def test_a_token_is_told_by_its_claims_and_never_itself(changes, state, seen, advice):
    row = endpoint("RAL", base_url="https://se.example:1094/data")
    row.credential = Credential(name="ral", hosts=["se.example"])
    text = token_of(**(GOOD | changes))
    step = credential_step(row, End(Where.DESTINATION, row.base_url, row.base_url, text))
    assert step.state == state
    assert seen in step.seen
    assert advice in step.advice
    assert SECRET not in str(step)
    assert text not in str(step)


def test_a_credential_that_a_mover_does_not_show_is_a_warning():
    row = endpoint("RAL", base_url="https://se.example:1094/data")
    row.credential = Credential(name="ral", hosts=["se.example"], kind="x509")
    end = End(Where.DESTINATION, row.base_url, row.base_url)
    assert credential_step(row, end).state == StepState.WARNING


@pytest.fixture
def with_token(settings: Settings, tmp_path: Path) -> Callable[[str], Endpoint]:
    """Return what makes an endpoint of a server that repeats its token in all that it says."""

    def make(base_url: str) -> Endpoint:
        settings.SONAR_CREDENTIALS_DIR = tmp_path
        (tmp_path / "ral").write_text(SECRET)
        credential = Credential.objects.create(name="ral", hosts=["127.0.0.1"])
        return endpoint("RAL", base_url=base_url, credential=credential)

    return make


def test_no_secret_is_in_a_step_whatever_a_server_repeats(with_token, tmp_path, monkeypatch):
    """Nor that of another endpoint, which a server was lent once."""
    (tmp_path / "other").write_text(OTHERS)
    monkeypatch.setattr("sonar.credentials.rules.IN_CLEAR", ())
    repeated = {
        name: says(418, f"no {SECRET} {SECRET[::-1]} {OTHERS}".encode(), Allow=SECRET, Date=SECRET)
        for name in ("MKCOL", "OPTIONS", "GET")
    }
    with dav.serving(**repeated) as server:
        row = with_token(server.base_url)
        endpoint_checks.check_registered(row, request_checks.begin(row, None, NOW, here=True).run)
        assert server.tokens == {f"Bearer {SECRET}"}
    kept = json.dumps(EndpointCheck.objects.get().steps)
    assert "418" in kept
    assert not [secret for secret in (SECRET, SECRET[::-1], OTHERS) if secret in kept]


def test_a_credential_without_its_file_fails_with_what_to_do(with_token, tmp_path, monkeypatch):
    monkeypatch.setattr("sonar.credentials.rules.IN_CLEAR", ())
    with dav.serving() as server:
        row = with_token(server.base_url)
        (tmp_path / "ral").unlink()
        endpoint_checks.check_registered(row, request_checks.begin(row, None, NOW, here=True).run)
        assert server.requests == []
    step = steps_of(row)["credential"]
    assert step.seen == "ral: No such file or directory."
    assert "manage.py credentials --ask" in step.advice
    assert steps_of(row)["base"].seen == "This step needs “Credential” to succeed first."


def test_the_command_tells_each_step_and_keeps_those_of_a_registered_endpoint(capsys):
    with dav.serving(OPTIONS=says(200, Allow="GET")) as server:
        row = endpoint("RAL", base_url=server.base_url)
        with pytest.raises(CommandError, match="Problems found: third-party copy"):
            call_command("check_endpoint", row.name)
        lines = capsys.readouterr().out.splitlines()
        with pytest.raises(CommandError, match="Not checked: RAL_DATADISK was checked less"):
            call_command("check_endpoint", row.name)
    assert "fine         Write             100 kB uploaded" in "\n".join(lines)
    failed = next(number for number, line in enumerate(lines) if line.startswith("FAILED"))
    assert lines[failed + 1].strip().startswith("-> Load the module")
    assert EndpointCheck.objects.get().ended_at <= timezone.now()
    assert EndpointCheck.objects.get().requested_by is None


def test_the_command_checks_what_is_not_registered_and_keeps_nothing(capsys):
    with dav.serving() as server:
        call_command("check_endpoint", "--base-url", server.base_url)
    assert capsys.readouterr().out.splitlines()[-1] == "No problems found."
    assert not EndpointCheck.objects.exists()
    with dav.serving(DELETE=says(403)) as server, pytest.raises(CommandError, match=r"delete\.$"):
        call_command("check_endpoint", "--base-url", server.base_url)
    assert (
        "The test file could not be deleted; delete it manually: sonar/incoming/"
        in capsys.readouterr().out
    )
    assert not Leftover.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RAL_DATADIKS"], "Did you mean RAL_DATADISK"),
        ([], "required"),
        (["RAL_DATADISK", "--data-host", "a.b.c"], "require --base-url"),
        (["--base-url", "se.example"], "--base-url: Enter a base URL as scheme"),
        (["--base-url", "https://[::1/x"], "--base-url: A base URL needs a host"),
        (
            ["--base-url", "https://169.254.169.254/x"],
            "--base-url: The host of a base URL must not",
        ),
        (["--base-url", "https://se.example/x", "--data-host", "*"], "--data-host: "),
        (["--base-url", "https://se.example/x", "--credential", "rall"], "Did you mean ral"),
        (["--base-url", "https://se.example/x", "--credential", "ral"], "--credential: "),
    ],
)
def test_the_command_names_what_is_wrong_with_its_options(arguments, words):
    endpoint("RAL")
    Credential.objects.create(name="ral", hosts=["other.example"])
    with pytest.raises(CommandError, match=words):
        call_command("check_endpoint", *arguments)
