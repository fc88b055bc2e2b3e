"""POST /api/v1/transfers/: results from elsewhere, all or nothing; and who may send them."""

import json
import logging
import threading
import uuid
from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from matrix.api.transfers import views as storing
from matrix.http.exceptions import NEEDS_ACCOUNT
from sonar.models import Profile, Token, Transfer, UnknownAlias
from sonar.models.aliases import AliasKind
from sonar.people import roles, tokens
from sonar.people.roles import Role
from sonar.records.record import FIELDS
from sonar.registry import aliases
from sonar.results import store
from tests.accounts import account
from tests.matrix.world import World
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
URL = "/api/v1/transfers/"
MATRIX = "/api/v1/matrix/"


@pytest.fixture
def shifter(small_world: World) -> User:
    """An account that may store results, and nothing else."""
    user = account(name="shifter")
    roles.let_ingest(user)
    return user


def token(user: User, *scopes: str) -> str:
    return tokens.create(user, f"for-{'-'.join(scopes)}", scopes, 1)[1]


@pytest.fixture
def ingest(shifter: User) -> dict[str, str]:
    return {"authorization": f"Token {token(shifter, 'ingest')}"}


def row(number: int = 1, **change: object) -> dict[str, Any]:
    return {
        "id": str(uuid.UUID(int=number)),
        "source": "RAL_DATADISK",
        "destination": "DESY_DATADISK",
        "started_at": "2026-11-20T11:00:00Z",
        "seconds": 10.5,
        "bytes": 2_000_000_000,
        "state": "done",
        "mover": "fts",
    } | change


def post(client: Client, body: object, headers: dict[str, str] | None = None) -> Any:
    """Send a body; strings and bytes as they are, anything else as JSON."""
    sent = body if isinstance(body, str | bytes) else json.dumps(body)
    response = client.post(URL, sent, content_type="application/json", headers=headers or {})
    assert response["Content-Type"] == "application/json"
    return response


def refused(response: Any, status: int = 400) -> dict[str, Any]:
    assert response.status_code == status, response.content
    answer = response.json()
    assert set(answer) == {"detail", "errors"}
    assert not Transfer.objects.exists()
    return answer


def test_results_are_stored_and_counted(client, small_world, ingest):
    failed = {"state": "failed", "error": "503", "error_where": "source", "seconds": 0}
    response = post(client, [row(1, streams=4, ip_version=6), row(2, **failed)], ingest)
    assert (response.status_code, response.json()) == (201, {"accepted": 2, "duplicates": 0})
    one = Transfer.objects.get(id=uuid.UUID(int=1))
    assert (one.source, one.destination) == (small_world.ral, small_world.desy)
    assert (one.size_class.name, one.seconds) == ("large", 10.5)
    assert (one.profile.mover, one.profile.streams, one.profile.ip_version) == ("fts", 4, 6)
    assert Transfer.objects.get(id=uuid.UUID(int=2)).error_where == "source"


def test_an_error_is_kept_without_where_endpoints_are(client, ingest):
    error = "told of ral-datadisk.example.org:1094: Could not connect"
    failed = {"state": "failed", "error": error, "error_where": "source", "seconds": 0}
    assert post(client, [row(**failed)], ingest).status_code == 201
    assert Transfer.objects.get().error == "told of RAL_DATADISK: Could not connect"


def test_what_was_sent_shows_in_the_matrix_at_once(client, ingest):
    post(client, [row(seconds=500)], ingest)
    of_day = {"from": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"}
    shown = client.get(MATRIX, of_day | {"origin": "all"})
    cells = shown.json()["cells"]["value"]
    assert [value for line in cells for value in line if value is not None] == [4.0]


def test_what_is_sent_again_is_a_duplicate(client, ingest):
    post(client, [row(1), row(2)], ingest)
    response = post(client, [row(2, seconds=99), row(3), row(3)], ingest)
    assert response.json() == {"accepted": 1, "duplicates": 2}
    assert Transfer.objects.count() == 3


def test_one_bad_row_keeps_all_out_and_is_named_by_index_and_field(client, ingest):
    answer = refused(post(client, [row(1), row(2, bytes=0, source="X"), 5], ingest))
    assert list(answer["errors"]) == ["1.bytes", "2"]
    assert answer["errors"]["1.bytes"] == [
        "bytes 0 is not a whole number of bytes that is at least 1 and less than 10^18."
    ]
    assert answer["errors"]["2"] == ["5 is not a JSON object with a result."]
    assert answer["detail"] == (
        "Nothing was stored: 2 of 3 results are wrong. "
        "The first error is in 1.bytes: bytes 0 is not a whole number of bytes that is at least 1 "
        "and less than 10^18."
    )
    assert not Profile.objects.exists()


def test_a_name_of_others_is_taken_and_one_that_stands_for_nothing_is_counted(
    client, small_world, ingest
):
    aliases.assign(AliasKind.SE_HOST, "se.ral.example", small_world.ral)
    rows = [row(1, source="SE.ral.example"), row(2, source="MOON")]
    answer = refused(post(client, rows, ingest))
    assert list(answer["errors"]) == ["1.source"]
    [unknown] = UnknownAlias.objects.all()
    assert (unknown.name, unknown.source, unknown.times) == ("MOON", "results", 1)
    assert post(client, rows[:1], ingest).status_code == 201
    assert Transfer.objects.get().source == small_world.ral


def test_the_first_twenty_bad_rows_are_named_and_all_are_counted(client, ingest):
    answer = refused(post(client, [row(n, source="X") for n in range(1, 100)], ingest))
    assert list(answer["errors"]) == [f"{index}.source" for index in range(20)]
    assert answer["detail"].startswith("Nothing was stored: 99 of 99 results are wrong.")


BODIES = {
    "nothing": ("", "The list is empty: send a JSON list of 1 to 10,000 results."),
    "an empty list": ([], "The list is empty"),
    "an object": (row(), "The body is not a JSON list"),
    "a number": ("5", "The body is not a JSON list"),
    "null": ("null", "The body is not a JSON list"),
    "no JSON": ("[{", "The body is not valid JSON"),
    "CSV": ("id,source\n", "The body is not valid JSON"),
    "NaN": ("[NaN]", "The body is not valid JSON"),
    "Infinity": (json.dumps([row(seconds=float("inf"))]), "The body is not valid JSON"),
    "a number beyond any": (json.dumps([row(bytes=10**400)]), "The body is not valid JSON"),
    "not UTF-8": (b'["\xff"]', "The body is not valid JSON"),
    "half a surrogate pair": ('["\\ud800"]', "The body is not valid JSON"),
    "very deep": ("[" * 100_000, "The body is not valid JSON"),
    "UTF-16": ("[]".encode("utf-16"), "The body is not valid JSON"),
}


@pytest.mark.parametrize(("body", "said"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_list_of_results_is_a_400(client, ingest, body: object, said: str):
    assert said in refused(post(client, body, ingest))["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 10**30},
        {"bytes": -(2**63)},
        {"seconds": 10**30},
        {"seconds": -0.1},
        {"error": "a\0b", "state": "failed", "error_where": "source"},
        {"source": "\0"},
        {"mover": "\0"},
        {"started_at": "9999-12-31T23:59:59-14:00"},
        {"id": None},
        {"streams": 1.0},
        {"\0": 1},
        {"": 1},
    ],
)
def test_a_hostile_value_is_a_400(client, ingest, change: dict[str, Any]):
    [key] = refused(post(client, [row(**change)], ingest))["errors"]
    assert key.startswith("0")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@examples(150)
@given(field=st.sampled_from([*FIELDS, "other"]), value=anything)
def test_no_value_of_any_field_is_a_server_error(client, ingest, field: str, value: object):
    body = json.dumps([row(**{field: value})], ensure_ascii=True, allow_nan=False)
    assert post(client, body, ingest).status_code in (201, 400)


@examples(100)
@given(st.binary(max_size=50) | anything.map(lambda one: json.dumps(one).encode()))
def test_no_body_is_a_server_error(client, ingest, body: bytes):
    assert post(client, body, ingest).status_code == 400


def test_too_many_results_and_too_many_bytes_are_a_413(client, ingest):
    answer = refused(post(client, [{}] * 10_001, ingest), 413)
    assert answer["detail"] == "The request contains 10,001 results: send at most 10,000 at once."
    answer = refused(post(client, b" " * 8_000_001, ingest), 413)
    assert answer["detail"] == "The body is larger than 8,000,000 bytes, which is the limit."


def test_ten_thousand_results_are_taken(client, ingest):
    body = json.dumps([row(n, error=None) for n in range(1, 10_001)])
    assert post(client, body, ingest).json() == {"accepted": 10_000, "duplicates": 0}


def test_a_form_is_refused_with_the_type_that_is_wanted(client, ingest):
    response = client.post(URL, {"a": "b"}, headers=ingest)
    assert response.status_code == 415
    assert "Send JSON with Content-Type: application/json." in response.json()["detail"]


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_a_405(client, db, method: str):
    response = getattr(client, method)(URL)
    assert response.status_code == 405
    assert response.json()["errors"] == {}


def test_without_credentials_it_is_a_401_that_asks_for_a_token(client, small_world):
    response = post(client, [row()])
    assert refused(response, 401)["detail"] == NEEDS_ACCOUNT
    assert response["WWW-Authenticate"] == "Token"


@pytest.mark.parametrize("word", ["Bearer", "bearer", "sonar", "Basic "])
def test_a_token_under_another_word_is_a_401_when_reading_too(client, ingest, word):
    headers = {"authorization": ingest["authorization"].replace("Token", word)}
    for response in (post(client, [row()], headers), client.get(MATRIX, headers=headers)):
        assert refused(response, 401)["detail"] == "Send a token as “Authorization: Token ...”."


@pytest.mark.parametrize(
    "form",
    [
        *("{}", " {}", "{} ", "{}, {}", "\xff{}", "Tok\xe9n {}", "Token", "token "),
        *("Bearer", "Bearer x", "bearer {}, Token {}", "Basic x, Token {}"),
        *("Token {},Token {}", "Token {} {}", "Token={}", "Token:{}"),
    ],
)
def test_a_token_in_another_form_is_a_401_and_never_nobody(client, ingest, form: str):
    """A script would read as nobody, and never notice."""
    text = ingest["authorization"].split()[1]
    headers = {"authorization": form.replace("{}", text)}
    for response in (post(client, [row()], headers), client.get(MATRIX, headers=headers)):
        assert "“Authorization: Token ...”" in refused(response, 401)["detail"]
        assert text not in response.content.decode()


@pytest.mark.parametrize("pair", ["{}:", "user:{}", "{}"])
def test_a_token_as_a_password_is_a_401_that_says_how_to_send_it(client, ingest, pair: str):
    text = ingest["authorization"].split()[1]
    packed = b64encode(pair.replace("{}", text).encode()).decode()
    answer = client.get(MATRIX, headers={"authorization": f"Basic {packed}"})
    assert "“Authorization: Token ...”" in refused(answer, 401)["detail"]


@pytest.mark.parametrize(
    "sent", ["", "Basic", "Basic \xff", "Basic a", "Basic c2hpZnQ6dGVhbQ==", "Negotiate YII=", "x"]
)
def test_what_no_token_is_in_is_for_a_proxy(client, small_world, sent: str):
    assert client.get(MATRIX, headers={"authorization": sent}).status_code == 200


@pytest.mark.parametrize("scopes", [["read"], ["operate"], ["read", "operate"]])
def test_a_token_without_ingest_is_a_403(client, shifter, scopes):
    roles.give(shifter, Role.OPERATOR)
    headers = {"authorization": f"Token {token(shifter, *scopes)}"}
    assert "scope “ingest”" in refused(post(client, [row()], headers), 403)["detail"]


def test_a_session_needs_the_permission(client, shifter):
    shifter.user_permissions.clear()
    client.force_login(shifter)
    refused(post(client, [row()]), 403)
    roles.let_ingest(shifter)
    assert post(client, [row()]).status_code == 201


def test_a_token_may_no_more_than_its_user_who_lost_the_right(client, shifter, ingest):
    shifter.user_permissions.clear()
    assert "add_transfer" in refused(post(client, [row()], ingest), 403)["detail"]
    roles.let_ingest(shifter)
    assert post(client, [row()], ingest).status_code == 201


def test_a_session_needs_its_csrf_token_and_a_token_none(shifter, ingest):
    client = Client(enforce_csrf_checks=True)
    client.force_login(shifter)
    assert "CSRF" in refused(post(client, [row()]), 403)["detail"]
    assert post(Client(enforce_csrf_checks=True), [row()], ingest).status_code == 201


GOOD_FORM = "sonar_" + "0" * 64


@pytest.mark.parametrize(
    "sent",
    [
        *("Token", "Token a b", "Token x"),
        *(f"Token {form}" for form in (GOOD_FORM, GOOD_FORM[:-1], f"{GOOD_FORM}\0")),
        "Token \xff\xfe",
        "Token sonar_\0\0\0\0\0\0\0\0\0",
    ],
)
def test_a_malformed_or_unknown_token_is_a_401_in_json(client, small_world, sent: str):
    response = post(client, [row()], {"authorization": sent})
    answer = refused(response, 401)
    assert GOOD_FORM[6:-1] not in response.content.decode()
    assert "token" in answer["detail"].lower()


def test_an_expired_a_revoked_and_an_inactive_users_token_are_a_401(client, shifter, ingest):
    shifter.is_active = False
    shifter.save()
    refused(post(client, [row()], ingest), 401)
    shifter.is_active = True
    shifter.save()
    Token.objects.update(expiry=timezone.now() - timedelta(days=3650))
    refused(post(client, [row()], ingest), 401)
    headers = {"authorization": f"Token {token(shifter, 'ingest', 'read')}"}
    tokens.revoke(headers["authorization"].split()[1][:15])
    assert "expired or was revoked" in refused(post(client, [row()], headers), 401)["detail"]


def test_a_token_is_in_no_log_and_no_answer(client, shifter, ingest, caplog, settings):
    caplog.set_level(logging.DEBUG)
    secret = ingest["authorization"].split()[1]
    answers = [post(client, body, ingest).content.decode() for body in ([row()], "[", [5])]
    Token.objects.all().delete()
    answers.append(post(client, [row(2)], ingest).content.decode())
    assert secret not in "".join([*answers, caplog.text])
    assert secret[15:] not in "".join([*answers, caplog.text])


def test_reading_with_a_token_needs_a_good_one_and_its_scope(client, shifter, ingest, settings):
    assert client.get(MATRIX).status_code == 200
    assert client.get(MATRIX, headers={"authorization": "Token x"}).status_code == 401
    settings.SONAR_PUBLIC_READ = False
    read = {"authorization": f"Token {token(shifter, 'read')}"}
    assert client.get(MATRIX).status_code == 401
    assert client.get(MATRIX, headers=ingest).status_code == 403
    assert client.get(MATRIX, headers=read).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_while_a_file_is_imported_for_long_it_is_a_503_with_a_time_to_wait(
    client, real_commits, ingest, monkeypatch
):
    monkeypatch.setattr(storing, "LONGEST_WAIT_SECONDS", 0.2)
    locked, done = threading.Event(), threading.Event()

    def import_for_long() -> None:
        with transaction.atomic():
            store.lock_imports()
            locked.set()
            done.wait(120)
        connection.close()

    importing = threading.Thread(target=import_for_long)
    importing.start()
    try:
        assert locked.wait(120)
        response = post(client, [row()], ingest)
    finally:
        done.set()
        importing.join()
    assert "Another import is running" in refused(response, 503)["detail"]
    assert response["Retry-After"] == "30"
    assert post(client, [row()], ingest).status_code == 201
