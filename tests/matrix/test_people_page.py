"""People and roles on pages: administrators change rights, and the history tells of it."""

from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from sonar.models import HistoryEntry, Token
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.world import World

pytestmark = pytest.mark.django_db
ACTIVE = {"is_active": "on"}
NEW = {"username": "bob", "usable_password": "true", "role": "reader"}
NEW |= dict.fromkeys(("password1", "password2"), "a-long-password")


@pytest.fixture
def root(small_world: World) -> Client:
    return logged_in(account(Role.ADMINISTRATOR, name="root"))


@pytest.fixture
def elsewhere(small_world: World) -> User:
    user = account(Role.OPERATOR, name="eve@iam.example")
    SocialAccount.objects.create(user=user, provider="https://iam.example", uid="1")
    return user


def sent(client: Client, path: str, **form: Any) -> Page:
    return Page(client.post(f"/people/{path}", form, follow=True).content.decode())


def described(name: str) -> str:
    return roles.described(User.objects.get(username=name))


def test_all_accounts_are_listed_with_what_they_may(
    root: Client,
    elsewhere: User,
    small_world: World,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    anna = account(Role.SITE_ADMIN, small_world.ral.site, small_world.desy.site, name="anna")
    for name in ("cron", "export"):
        tokens.create(anna, name, ["read"], 9)
    User.objects.create_user("gone", is_active=False)
    root.get("/people/")
    with django_assert_num_queries(7):  # among them the sites to choose from
        page = Page(root.get("/people/").content.decode())
    rows = [row.cells() for row in page.parts("table tbody tr")]
    assert rows[:3] == [
        ["anna", "site admin", "DESY, RAL", "local", "never", "2"],
        ["eve@iam.example", "operator", "–", "iam.example", "never", "0"],
        ["gone", "reader not active", "–", "local", "never", "0"],
    ]
    found = Page(root.get("/people/?search=EXA").content.decode())
    assert [row.cells()[0] for row in found.parts("table tbody tr")] == ["eve@iam.example"]
    assert "No account name contains “zz”." in Page(root.get("/people/?search=zz").content.decode())
    assert root.get("/people/?search=a%00b").status_code == 400
    assert root.get("/people/nobody/").status_code == 404
    for path in ("/people/", "/people/anna/"):
        shown = Page(root.get(path).content.decode())
        assert shown.texts(".top [aria-current]") == ["People"]


def test_an_account_is_added_given_roles_and_closed_which_the_history_tells(root: Client) -> None:
    sent(root, "", **NEW)
    assert described("bob") == "a reader"
    assert Client().login(username="bob", password="a-long-password")
    HistoryEntry.objects.all().delete()
    for form, says in (
        ({"role": "site-admin", "sites": ["RAL", "DESY"]}, "a site admin of DESY and RAL"),
        ({"role": "operator"}, "an operator"),
        ({"role": "administrator"}, "an administrator"),
    ):
        assert f"bob is {says}." in sent(root, "bob/", **ACTIVE, **form)
        assert described("bob") == says
    sent(root, "bob/", role="reader")
    assert described("bob") == "not active"
    rows = HistoryEntry.objects.filter(kind="account", name="bob", who="root", channel="page")
    changes = [
        (field, value) for row in rows.order_by("id") for field, value in row.changes.items()
    ]
    assert ("sites", [[], ["DESY", "RAL"]]) in changes
    assert ("groups", [[], ["operators"]]) in changes
    assert {("is_superuser", (True, False)), ("is_active", (True, False))} <= {
        (field, tuple(value)) for field, value in changes if isinstance(value[0], bool)
    }
    assert "by root:" in Page(root.get("/people/bob/").content.decode())


@pytest.mark.parametrize(
    ("path", "form", "sentence"),
    [
        ("root/", {**ACTIVE, "role": "operator"}, "last active administrator"),
        ("root/", {"role": "administrator"}, "last active administrator"),
        (
            "anna/",
            {**ACTIVE, "role": "operator", "sites": "RAL"},
            "Sites can be selected only for site admins",
        ),
        (
            "anna/",
            {**ACTIVE, "role": "reader", "sites": "RAL"},
            "Sites can be selected only for site admins",
        ),
        ("anna/", {**ACTIVE, "role": "site-admin"}, "Select at least one site for a site admin"),
        (
            "anna/",
            {**ACTIVE, "role": "site-admin", "sites": "NOWHERE"},
            "No site is named “NOWHERE”.",
        ),
        ("anna/", {**ACTIVE, "role": "king"}, "Select a valid choice"),
        ("anna/password/", {"new_password1": "a", "new_password2": "b"}, "didn’t match"),
        ("anna/password/", {"new_password1": "123", "new_password2": "123"}, "too short"),
        ("", {**NEW, "username": "anna"}, "already exists"),
        ("", {**NEW, "username": "a b"}, "Enter a valid username"),
        ("", {**NEW, "password2": "else"}, "didn’t match"),
        ("", {**NEW, "role": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_changes_nothing(
    root: Client, path: str, form: dict[str, Any], sentence: str
) -> None:
    account(name="anna")
    HistoryEntry.objects.all().delete()
    page = sent(root, path, **form)
    assert any(sentence in error.text for error in page.parts(".field .error"))
    assert not HistoryEntry.objects.exists()


def test_nobody_takes_the_own_role_of_administrator(root: Client) -> None:
    account(Role.ADMINISTRATOR, name="anna")
    for form in ({**ACTIVE, "role": "reader"}, {"role": "administrator"}):
        assert "You cannot remove your own administrator role" in sent(root, "root/", **form)
    assert described("root") == "an administrator"
    assert "anna is a reader." in sent(root, "anna/", **ACTIVE, role="reader")


def test_a_role_that_comes_from_elsewhere_is_shown_and_not_changed(
    root: Client, elsewhere: User
) -> None:
    name = elsewhere.get_username()
    page = Page(root.get(f"/people/{name}/").content.decode())
    assert "1 at https://iam.example" in page
    assert "the rules in the file named by SONAR_LOGIN_ROLES" in page
    assert not page.parts("[name=role], [name=new_password1]")
    sent(root, f"{name}/", **ACTIVE, role="administrator")
    assert described(name) == "an operator"
    secret = dict.fromkeys(("new_password1", "new_password2"), "a-long-password")
    assert "has no password in Sonar" in sent(root, f"{name}/password/", **secret)
    sent(root, f"{name}/")
    assert described(name) == "not active"


def test_passwords_are_set_and_tokens_revoked(root: Client) -> None:
    anna = account(name="anna")
    token, _ = tokens.create(anna, "cron", ["read"], 9)
    secret = dict.fromkeys(("new_password1", "new_password2"), "a-long-password")
    sent(root, "anna/password/", **secret)
    assert Client().login(username="anna", password="a-long-password")
    form = {"key": token.token_key, "next": "/people/anna/"}
    assert root.post("/tokens/revoke/", form).headers["Location"] == "/people/anna/"
    assert not Token.objects.exists()
    row = HistoryEntry.objects.filter(kind="token").latest("id")
    assert (row.name, row.action, row.who) == ("cron of anna", "removed", "root")
    # One's own session goes on.
    sent(root, "root/password/", **secret)
    assert root.get("/people/").status_code == 200


OLD, OTHER = "a-long-password", "another-long-one"


def test_a_person_changes_the_own_password_which_ends_other_sessions(root: Client) -> None:
    sent(root, "", **NEW)
    mine, elsewhere = Client(), Client()
    for client in (mine, elsewhere):
        assert client.login(username="bob", password=OLD)
    assert Page(mine.get("/tokens/").content.decode()).parts('a[href="/password/"]')
    form = {"old_password": OLD, "new_password1": OTHER, "new_password2": OTHER}
    page = Page(mine.post("/password/", form, follow=True).content.decode())
    assert "Your password was changed. Your other sessions have ended." in page
    assert mine.get("/tokens/").status_code == 200
    assert elsewhere.get("/tokens/")["Location"].startswith("/login/")
    assert Client().login(username="bob", password=OTHER)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"old_password": "wrong"}, "Your old password was entered incorrectly"),
        ({"new_password2": "else"}, "didn’t match"),
        ({"new_password1": "123", "new_password2": "123"}, "too short"),
    ],
)
def test_a_password_that_cannot_be_changes_nothing(
    root: Client, change: dict[str, str], sentence: str
) -> None:
    sent(root, "", **NEW)
    mine = Client()
    mine.login(username="bob", password=OLD)
    form = {"old_password": OLD, "new_password1": OTHER, "new_password2": OTHER, **change}
    response = mine.post("/password/", form)
    assert response.status_code == 400
    errors = Page(response.content.decode()).parts(".field .error")
    assert any(sentence in error.text for error in errors)
    assert Client().login(username="bob", password=OLD)


def test_who_logs_in_elsewhere_or_never_has_no_password_to_change(
    root: Client, elsewhere: User, settings: Settings
) -> None:
    none = "This account does not log in with a Sonar password, so"
    assert none in responses.page(logged_in(elsewhere), "/password/").words
    bob = User.objects.create_user("bob")
    assert none in responses.page(logged_in(bob), "/password/").words
    assert logged_in(bob).post("/password/", {"new_password1": OTHER}).status_code == 400
    assert 'href="/password/"' not in logged_in(bob).get("/tokens/").content.decode()
    bob.set_password(OLD)
    bob.save()
    mine = logged_in(bob)
    assert none not in responses.page(mine, "/password/").words
    settings.SONAR_PASSWORDS = False
    assert none in responses.page(mine, "/password/").words


def test_the_role_of_a_site_admin_is_picked_with_its_sites(
    root: Client, small_world: World
) -> None:
    account(Role.SITE_ADMIN, small_world.ral.site, name="anna")
    page = Page(root.get("/people/anna/").content.decode())
    assert page.parts('input[name="role"][value="site-admin"][checked]')
    chosen = page.parts('select[name="sites"] option[selected]')
    assert [option.words for option in chosen] == ["RAL"]
    assert Page(root.get("/").content.decode()).parts('a[href="/people/"]')
    anna = logged_in(User.objects.get(username="anna"))
    assert not Page(anna.get("/").content.decode()).parts('a[href="/people/"]')
