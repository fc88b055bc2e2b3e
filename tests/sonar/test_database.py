"""The pool of connections, and statements that are planned once."""

from collections.abc import Iterator

import pytest
from django.db import connection
from psycopg_pool import ConnectionPool
from pytest_django import DjangoAssertNumQueries

from sonar.database import sessions
from sonar.database.base import DatabaseWrapper
from sonar.database.sessions import Session

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[DatabaseWrapper]:
    """A way to the database of the tests, with a pool of one connection."""
    options = {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 0, "max_size": 1}}
    wrapper = DatabaseWrapper({**connection.settings_dict, "OPTIONS": options}, connection.alias)
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of PostgreSQL that were asked whether they are there."""
    ask = ConnectionPool.check_connection
    pids: list[int] = []

    def noted(opened: Session) -> None:
        pids.append(opened.info.backend_pid)
        ask(opened)

    monkeypatch.setattr(ConnectionPool, "check_connection", noted)
    return pids


def process(wrapper: DatabaseWrapper) -> int:
    """Return which process of PostgreSQL answers, as a request finds it."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    wrapper.close()
    return pid


def test_a_connection_in_use_is_not_asked_before_each_request(
    pooled: DatabaseWrapper, asked: list[int]
) -> None:
    pids = {process(pooled) for _ in range(5)}
    assert len(pids) == 1
    assert asked == [*pids]


def test_one_that_was_not_used_for_some_seconds_is_asked(
    pooled: DatabaseWrapper, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "FRESH_SECONDS", 0)
    pid = process(pooled)
    assert process(pooled) == pid
    assert asked == [pid, pid]


def test_one_that_postgresql_has_ended_is_never_given_out(pooled: DatabaseWrapper) -> None:
    ended = process(pooled)
    for _ in range(5):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
            assert cursor.fetchone() == (True,)
        ended, before = process(pooled), ended
        assert ended != before


def test_a_planned_statement_is_planned_once_and_counted_as_any_other(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(3) as statements:
        for number in (1, 2, 3):
            with connection.planned_cursor() as cursor:
                cursor.execute("SELECT 'twice', 2 * %(number)s", {"number": number})
                assert cursor.fetchone() == ("twice", 2 * number)
    assert statements.captured_queries[2]["sql"] == "SELECT 'twice', 2 * 3"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT ''twice''%'"
        )
        assert cursor.fetchone() == (1,)
