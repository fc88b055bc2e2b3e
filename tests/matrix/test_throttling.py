"""How often one may ask, and guess: counted in a real Redis."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings
from redis import Redis

from matrix.http import throttling
from sonar import settings as project
from sonar.models import Token
from sonar.people import tokens
from tests import refusing

CALL = "/api/v1/matrix/"
DAY = 86_400
LONGEST_SECONDS = 30


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """Let no test find what another one counted, nor begin as a day ends."""
    if (rest := DAY - time.time() % DAY) < LONGEST_SECONDS:
        time.sleep(rest)
    forget()


def forget() -> None:
    Redis.from_url(os.environ["REDIS_URL"]).flushdb()


@pytest.fixture
def bob(db: None, settings: Settings) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_user("bob", password="right")


def token(user: User, name: str = "script") -> dict[str, str]:
    return {"authorization": f"Token {tokens.create(user, name, ['read'], 1)[1]}"}


def statuses(times: int, ask: Callable[[], Any]) -> list[int]:
    return [ask().status_code for _ in range(times)]


# How often


@pytest.mark.django_db
def test_one_request_too_many_is_a_429_that_says_when_to_ask_again(client, settings):
    settings.SONAR_RATE_ANONYMOUS = (2, DAY)
    assert statuses(2, lambda: client.get(CALL)) == [200, 200]
    refused = client.get(CALL)
    wait = int(refused["Retry-After"])
    assert refused.status_code == 429
    assert 1 <= wait <= DAY
    assert refused.json() == {
        "detail": "An IP address that sends no token may make at most 2 requests a day: "
        f"wait {wait} s.",
        "errors": {},
    }
    assert client.get(CALL, REMOTE_ADDR="198.51.100.7").status_code == 200


@pytest.mark.django_db
def test_a_new_period_begins_at_nothing(client, settings, monkeypatch):
    settings.SONAR_RATE_ANONYMOUS = (1, 60)
    now = 1_000_000_000.0
    monkeypatch.setattr(throttling.time, "time", lambda: now)
    assert statuses(2, lambda: client.get(CALL)) == [200, 429]
    assert client.get(CALL)["Retry-After"] == str(60 - int(now) % 60)
    now += 60 - now % 60
    assert statuses(2, lambda: client.get(CALL)) == [200, 429]


def test_an_account_is_counted_with_all_its_tokens_also_with_those_that_are_revoked(bob, settings):
    settings.SONAR_RATE_ANONYMOUS = (1, DAY)
    settings.SONAR_RATE_ACCOUNT = (3, DAY)
    session = Client()
    session.force_login(bob)
    one, two = token(bob, "one"), token(bob, "two")
    assert statuses(2, lambda: Client().get(CALL)) == [200, 429]
    assert statuses(1, lambda: Client().get(CALL, headers=one)) == [200]
    assert statuses(1, lambda: session.get(CALL)) == [200]
    assert statuses(2, lambda: Client().get(CALL, headers=two)) == [200, 429]
    Token.objects.filter(user=bob).delete()
    again = Client().get(CALL, headers=token(bob, "three"))
    assert again.status_code == 429
    assert again.json()["detail"].startswith("An account may make at most 3 requests a day")
    other = token(User.objects.create_user("ann"))
    assert statuses(1, lambda: Client().get(CALL, headers=other)) == [200]


@pytest.mark.django_db
def test_wrong_tokens_count_for_their_address_and_right_ones_go_on(bob, settings):
    settings.SONAR_RATE_ANONYMOUS = (3, DAY)
    guess = {"authorization": "Token sonar_" + "0" * 64}
    garbled = {"authorization": "Token x"}
    ask = Client()
    assert statuses(2, lambda: ask.get(CALL, headers=guess)) == [401, 401]
    assert statuses(2, lambda: ask.get(CALL, headers=garbled)) == [401, 429]
    assert ask.post("/api/v1/transfers/", "[]", content_type="application/json").status_code == 429
    assert ask.get(CALL, headers=token(bob)).status_code == 200


def test_a_nest_of_a_thousand_lists_is_a_400(admin_client):
    nest = "[" * 1_000 + "]" * 1_000
    for path, body in (
        ("/api/v1/transfers/", f'[{{"id": {nest}}}]'),
        ("/api/v1/sites/", f'{{"name": {nest}, "tier": 2}}'),
        ("/api/v1/probes/", f'{{"source": {nest}, "destination": "B", "sizes": {nest}}}'),
    ):
        assert admin_client.post(path, body, content_type="application/json").status_code == 400


def test_what_is_refused_counts_once(bob, settings):
    settings.SONAR_RATE_ACCOUNT = (3, DAY)
    ask = Client()
    ask.force_login(bob)
    for _ in range(3):  # refused by the permission, and by the view itself
        assert (
            ask.post(
                "/api/v1/sites/", '{"name": "X", "tier": 2}', content_type="application/json"
            ).status_code
            == 403
        )
    assert ask.post("/api/v1/transfers/", "[]", content_type="application/json").status_code == 429


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("proxies", "forwarded", "seen"),
    [
        (0, "198.51.100.{n}", "127.0.0.1"),
        (1, "198.51.100.{n}, 203.0.113.5", "203.0.113.5"),
        (2, "198.51.100.{n}, 203.0.113.5, 203.0.113.6", "203.0.113.5"),
    ],
)
def test_a_forged_address_changes_nothing(client, settings, proxies, forwarded, seen):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    settings.SONAR_RATE_ANONYMOUS = (3, DAY)
    asked = [client.get(CALL, headers={"x-forwarded-for": forwarded.format(n=n)}) for n in range(4)]
    assert [one.status_code for one in asked] == [200, 200, 200, 429]
    assert throttling.counts.get(f"api:address:{seen}", DAY) == 4


@pytest.mark.parametrize(
    ("given", "known_as"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unix:" + "x" * 300, "unix:" + "x" * 300),
        ("", ""),
    ],
)
def test_an_address_is_a_network_for_ipv6(rf, settings, given, known_as):
    assert throttling.address(rf.get("/", REMOTE_ADDR=given)) == known_as


AWAY = "redis://127.0.0.1:1"


@pytest.fixture
def own_counts(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what makes the counts of a process that has just started, for a Redis."""
    return lambda url: monkeypatch.setattr(throttling, "counts", throttling.Counts(url))


@pytest.mark.django_db
@pytest.mark.parametrize("url", [AWAY, "unix:///nowhere/redis.sock"])
def test_without_redis_a_process_counts_requests_for_itself(
    client, settings, own_counts, caplog, url
):
    settings.SONAR_RATE_ANONYMOUS = (3, DAY)
    own_counts(url)
    assert statuses(5, lambda: client.get(CALL)) == [200] * 3 + [429] * 2
    assert client.get(CALL, REMOTE_ADDR="198.51.100.7").status_code == 200
    assert caplog.text.count("this process counts requests and wrong passwords itself") == 1


@pytest.mark.django_db
@pytest.mark.parametrize("way", refusing.WAYS)
def test_a_redis_that_takes_nothing_does_not_open_the_limits(
    client, settings, own_counts, way, bob
):
    settings.SONAR_RATE_ANONYMOUS = (3, DAY)
    own_counts(os.environ["REDIS_URL"])
    with refusing.WAYS[way][0](os.environ["REDIS_URL"]):
        assert statuses(5, lambda: client.get(CALL)) == [200] * 3 + [429] * 2
        assert statuses(11, lambda: log_in("wrong")) == [200] * 10 + [429]
        assert log_in("right").status_code == 429
        assert log_in("right", REMOTE_ADDR="198.51.100.7").status_code == 302


@pytest.mark.django_db
def test_what_a_process_counted_for_itself_holds_when_redis_is_back(
    client, settings, own_counts, monkeypatch
):
    settings.SONAR_RATE_ANONYMOUS = (4, DAY)
    monkeypatch.setattr(throttling, "PAUSE_SECONDS", 0)
    own_counts(os.environ["REDIS_URL"])
    assert client.get(CALL).status_code == 200
    with refusing.full(os.environ["REDIS_URL"]):
        assert statuses(2, lambda: client.get(CALL)) == [200] * 2
    assert statuses(2, lambda: client.get(CALL)) == [200, 429]


def test_own_counts_are_never_too_small_and_end_with_their_period(monkeypatch):
    now = 1_000_000_000.0
    monkeypatch.setattr(throttling.time, "time", lambda: now)
    own = throttling.OwnCounts()
    monkeypatch.setattr(own, "PLACES", 64)
    names = [f"name {number}" for number in range(200)]
    assert own.get("name 0", 60) == 0
    for done in range(1, 4):
        assert all(own.add(name, 60) >= done for name in names)
    assert all(own.get(name, 60) >= 3 for name in names)
    assert own.get("name 0", 300) == 0
    now += 60
    assert [own.get(name, 60) for name in names] == [0] * 200
    assert own.add("name 0", 60) == 1


def test_own_counts_of_many_names_are_apart_and_take_little_memory():
    own = throttling.OwnCounts()
    for number in range(1_000):
        own.add(f"name {number}", 86_400)
    exact = sum(own.get(f"name {number}", 86_400) == 1 for number in range(1_000))
    assert exact >= 990
    ((_, rows),) = own._periods.values()
    assert sum(len(row) * row.itemsize for row in rows) == 524_288


def waiting(listener: socket.socket) -> int:
    """Return how many connections were made to a listener that has taken none."""
    listener.setblocking(False)
    for number in count():
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError


@pytest.mark.django_db
def test_a_redis_that_never_answers_costs_half_a_second_once(
    client, settings, own_counts, monkeypatch
):
    settings.SONAR_RATE_ANONYMOUS = (5, DAY)
    monkeypatch.setattr(throttling, "ANSWER_SECONDS", 0.25)
    monkeypatch.setattr(throttling, "PAUSE_SECONDS", 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        own_counts(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        assert statuses(5, lambda: client.get(CALL)) == [200] * 5
        assert waiting(silent) == 2  # for the first request alone, which asks twice


# Passwords


def log_in(password: str, name: str = "bob", **where: str) -> Any:
    return Client().post("/login/", {"username": name, "password": password}, **where)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
def test_wrong_passwords_from_one_address_come_to_an_end(bob, monkeypatch, page):
    assert throttling.FROM_ADDRESS == (10, 300)
    # Five minutes may end in the midst of this.
    monkeypatch.setattr(throttling, "FROM_ADDRESS", throttling.Rate(10, DAY))
    sent = {"username": "bob", "password": "wrong"}
    assert statuses(10, lambda: Client().post(page, sent)) == [200] * 10
    refused = Client().post(page, sent | {"password": "right"})
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= DAY
    assert "Too many wrong passwords were sent" in refused.content.decode()
    assert log_in("right", REMOTE_ADDR="198.51.100.7").status_code == 302
    assert Client().get(page).status_code == 200


def test_without_redis_wrong_passwords_come_to_an_end_too(bob, own_counts, monkeypatch):
    own_counts(AWAY)
    monkeypatch.setattr(throttling, "FROM_ADDRESS", throttling.Rate(10, DAY))
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(11, DAY))
    assert statuses(11, lambda: log_in("wrong")) == [200] * 10 + [429]
    assert log_in("right").status_code == 429
    assert log_in("wrong", REMOTE_ADDR="198.51.100.7").status_code == 200
    assert log_in("right", REMOTE_ADDR="198.51.100.9").status_code == 429


def test_wrong_passwords_for_one_account_come_to_an_end(bob, monkeypatch):
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(3, DAY))
    for last in range(3):
        assert log_in("wrong", REMOTE_ADDR=f"198.51.100.{last}").status_code == 200
    assert log_in("right", REMOTE_ADDR="198.51.100.9").status_code == 429
    User.objects.create_user("eve", password="right")
    assert log_in("right", "eve", REMOTE_ADDR="198.51.100.9").status_code == 302


# What Django's form takes for the name of an account that was made with another spelling.
SPELLINGS = ["{}", " {}", "{} ", "\t{}\r\n", "\u3000{}", "\uff42ob", "\u24d1ob", "\u1d47ob"]


@pytest.mark.parametrize("page", ["/login/", "/admin/login/"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_name_that_is_spelled_otherwise_is_the_same_account(bob, monkeypatch, page, spelling):
    """A space before a name let anybody go on guessing for ever."""
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(3, DAY))
    sent = {"username": spelling.format("bob"), "password": "wrong"}
    tries = [Client().post(page, sent, REMOTE_ADDR=f"198.51.100.{n}") for n in range(6)]
    assert [one.status_code for one in tries] == [200] * 3 + [429] * 3
    assert log_in("right", REMOTE_ADDR="198.51.100.9").status_code == 429


def test_of_two_names_the_one_that_is_tried_counts(bob, monkeypatch):
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(3, DAY))
    for n in range(3):
        sent = {"username": [f"other{n}", "bob"], "password": "wrong"}
        assert Client().post("/login/", sent, REMOTE_ADDR=f"198.51.100.{n}").status_code == 200
    assert log_in("right", REMOTE_ADDR="198.51.100.9").status_code == 429


def test_a_name_in_other_letters_is_another_account(bob, monkeypatch):
    """As the look-up of accounts sees it, so that a stranger's name locks nobody out."""
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(3, DAY))
    for n in range(3):
        assert log_in("wrong", "BOB", REMOTE_ADDR=f"198.51.100.{n}").status_code == 200
    assert log_in("right", REMOTE_ADDR="198.51.100.9").status_code == 302


@pytest.mark.parametrize(
    "name", ["\xa8rd", "\ufdfa", " " * 300 + "x", "x" * 300 + "\uff42", "\ud7a3"]
)
def test_an_odd_name_comes_to_an_end_too(bob, monkeypatch, name):
    """A name whose cleaned form would be cleaned again to something else, and very long ones."""
    monkeypatch.setattr(throttling, "FOR_ACCOUNT", throttling.Rate(2, DAY))
    tries = [log_in("wrong", name, REMOTE_ADDR=f"198.51.100.{n}") for n in range(3)]
    assert [one.status_code for one in tries] == [200, 200, 429]


@pytest.mark.parametrize("sent", [{}, {"username": "bob"}, {"username": "b\0b", "password": "x"}])
def test_what_tries_no_password_counts_for_nobody(bob, monkeypatch, sent):
    monkeypatch.setattr(throttling, "FROM_ADDRESS", throttling.Rate(2, DAY))
    assert statuses(4, lambda: Client().post("/login/", sent)) == [200] * 4
    assert log_in("right").status_code == 302


def test_once_it_is_too_often_no_password_is_compared(bob, monkeypatch):
    """Once it is too often no password is compared any more, which costs 0.2 s of a processor."""
    monkeypatch.setattr(throttling, "FROM_ADDRESS", throttling.Rate(1, DAY))
    assert log_in("wrong").status_code == 200
    monkeypatch.setattr(User, "check_password", None)
    assert log_in("right").status_code == 429


def test_names_of_accounts_can_be_anything(bob):
    for name in ("\0", "ä" * 300, "a b\n", ""):
        assert log_in("wrong", name).status_code == 200


# Settings

SHOW = (
    "from django.conf import settings as s;"
    "print(s.SONAR_STATEMENT_SECONDS, s.SONAR_RATE_ANONYMOUS, s.SONAR_RATE_ACCOUNT)"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "given", "limits"),
    [
        ("import sonar.wsgi;", {}, "30 (300, 60) (1200, 60)"),
        ("", {}, "0 None None"),
        (
            "import sonar.wsgi;",
            {"SONAR_STATEMENT_SECONDS": "0", "SONAR_RATE_ANONYMOUS": "off"},
            "0 None (1200, 60)",
        ),
    ],
    ids=["web", "command", "web that is told"],
)
def test_the_web_has_limits_and_commands_have_none(first, given, limits):
    variables = os.environ | {"DJANGO_SETTINGS_MODULE": "sonar.settings"} | given
    command = [sys.executable, "-c", first + SHOW]
    shown = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == limits


@pytest.mark.parametrize(
    "wrong", ["600", "600/fortnight", "0/min", "-1/min", "1e3/min", "/min", "²/s"]
)
def test_a_rate_that_is_none_stops_the_start(monkeypatch, wrong):
    monkeypatch.setenv("SONAR_RATE_ANONYMOUS", wrong)
    with pytest.raises(project.ImproperlyConfigured, match=r"SONAR_RATE_ANONYMOUS.*600/min"):
        project.envrate("SONAR_RATE_ANONYMOUS")


@pytest.mark.parametrize(
    ("text", "rate"),
    [("off", None), ("", None), ("5/s", (5, 1)), ("600/min", (600, 60)), ("1/day", (1, DAY))],
)
def test_rates_are_read(monkeypatch, text, rate):
    monkeypatch.setenv("SONAR_RATE_ACCOUNT", text)
    assert project.envrate("SONAR_RATE_ACCOUNT") == rate


def database(url: str, seconds: int) -> dict[str, Any]:
    limits = {"statement_timeout": seconds}
    return project.database("DATABASE_URL", url, 0, limits, transaction_pool=False)


def test_the_timeout_is_said_as_the_connection_opens():
    options = database("postgresql://h/n?options=-c%20work_mem%3D8MB", 30)["OPTIONS"]
    assert options["options"] == "-c work_mem=8MB -c statement_timeout=30s"
    assert "options" not in database("postgresql://h/n", 0)["OPTIONS"]


def test_an_address_may_have_several_hosts_and_what_libpq_knows():
    url = "postgresql://u:p%40@a:1,[2001:db8::1]:2/n?target_session_attrs=read-write"
    found = database(url, 0)
    assert (found["HOST"], found["PORT"]) == ("a,2001:db8::1", "1,2")
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("u", "p@", "n")
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"


@pytest.mark.parametrize("url", ["mysql://u:secret@h/n", "postgresql://u:secret@h/n?x=1", "secret"])
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str):
    with pytest.raises(
        project.ImproperlyConfigured, match=r"^DATABASE_URL .*postgresql://"
    ) as told:
        database(url, 0)
    assert "secret" not in str(told.value)
    assert told.value.__suppress_context__ or told.value.__context__ is None
