"""`manage.py token`: made and shown once, listed without the secret, useless when revoked."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone
from knox.crypto import hash_token

from sonar.models import Token
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.accounts import account
from tests.sonar.world import three_endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def shifter() -> User:
    return account(Role.OPERATOR, name="shifter")


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def create(*more: str) -> tuple[str, str]:
    out, err = run("create", "shifter", "--scopes", "ingest", "--name", "cron", *more)
    return out.strip(), err


def test_a_token_is_alone_on_standard_output_and_kept_as_a_hash_and_its_first_characters(shifter):
    text, said = create("--days", "7")
    token = Token.objects.get()
    assert text.startswith("sonar_")
    assert len(text) == 70
    assert "Token cron of shifter, key " + token.token_key in said
    assert "may ingest until " in said
    assert text not in said
    assert timedelta(days=6.99) < token.expiry - timezone.now() <= timedelta(days=7)
    row = Token.objects.values().get()
    assert text not in str(row)
    assert (row["digest"], row["token_key"]) == (hash_token(text), text[:15])


def test_several_scopes_are_given_with_commas(shifter):
    run("create", "shifter", "--scopes", "operate, read,read, ", "--name", "both")
    assert Token.objects.get().scopes == ["operate", "read"]


def test_the_list_shows_whose_what_and_until_when_but_no_token(shifter):
    assert run("list")[0] == "No tokens.\n"
    text, _ = create()
    out, _ = run("list")
    token = Token.objects.get()
    for shown in (token.token_key, "shifter", "cron", "ingest", f"{token.expiry:%Y-%m-%dT%H:%M}"):
        assert shown in out
    assert text not in out
    assert token.digest not in out


def test_a_revoked_token_is_gone_and_a_whole_token_is_not_repeated(shifter):
    text, _ = create()
    with pytest.raises(CommandError) as caught:
        run("revoke", text)
    assert text not in str(caught.value)
    assert run("revoke", Token.objects.get().token_key)[0] == "Revoked: cron of shifter.\n"
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("create nobody --scopes read --name x", "There is no user 'nobody'"),
        ("create shifter --scopes write --name x", "scope write: use one or more of read"),
        ("create shifter --scopes , --name x", "scope missing: use one or more of read"),
        ("create shifter --scopes read --name x --days 0", "is valid for 1 to 3650 days, not 0"),
        ("create shifter --scopes read --name a:b", "'a:b' cannot be the name of"),
        ("create shifter --scopes read", "--name"),
        ("revoke sonar_123456789", "no token has this key"),
        ("burn", "invalid choice: 'burn'"),
        ("", "required"),
    ],
)
def test_a_bad_wish_is_refused_in_a_sentence(shifter, words: str, said: str):
    with pytest.raises(CommandError, match=said):
        run(*words.split())
    assert not Token.objects.exists()


def test_a_name_is_free_again_only_when_its_token_has_expired(shifter):
    create()
    with pytest.raises(CommandError, match="shifter already has a token named 'cron'"):
        create()
    Token.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    create()
    assert Token.objects.get().expiry > timezone.now()


def test_who_may_not_log_in_gets_no_token(shifter):
    shifter.is_active = False
    shifter.save()
    with pytest.raises(CommandError, match="shifter is not active"):
        create()


@pytest.mark.parametrize(
    ("role", "usable"),
    [
        (Role.READER, ["read"]),
        (Role.SITE_ADMIN, ["read", "operate"]),
        (Role.OPERATOR, ["read", "ingest", "operate"]),
        (Role.ADMINISTRATOR, ["read", "ingest", "operate"]),
    ],
)
def test_no_token_has_a_scope_that_its_account_cannot_use(
    shifter: User, role: Role, usable: list[str]
) -> None:
    sites = [three_endpoints()[0].site] if role is Role.SITE_ADMIN else []
    roles.give(shifter, role, sites)
    assert roles.scopes_for(shifter) == usable
    for scope in Token.Scope.values:
        if scope in usable:
            tokens.create(shifter, scope, [scope], 1)
        else:
            with pytest.raises(tokens.TokenError, match=f"shifter has no right to {scope}, so"):
                tokens.create(shifter, scope, ["read", scope], 1)
    assert Token.objects.count() == len(usable)


def test_what_may_only_store_results_gets_a_token_for_that(shifter: User) -> None:
    roles.give(shifter, Role.READER)
    with pytest.raises(CommandError, match=r"Possible scopes: read \(see manage.py role\)"):
        create()
    call_command("role", "shifter", "reader", "--ingest", stdout=StringIO())
    create()
    assert Token.objects.get().scopes == ["ingest"]


def test_an_account_reaches_its_own_tokens_and_an_administrator_all(shifter: User) -> None:
    mine, _ = tokens.create(shifter, "mine", ["read"], 1)
    other, _ = tokens.create(account(name="other"), "other", ["read"], 1)
    assert list(tokens.in_reach_of(shifter)) == [mine]
    roles.give(shifter, Role.ADMINISTRATOR)
    assert list(tokens.in_reach_of(shifter)) == [other, mine]


@pytest.mark.parametrize(
    "change", [{"scopes": []}, {"scopes": ["all"]}, {"expiry": None}, {"name": "a b"}]
)
def test_the_database_holds_the_rules_as_well(shifter, change: dict[str, object]):
    tokens.create(shifter, "cron", ["read"], 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Token.objects.update(**change)
