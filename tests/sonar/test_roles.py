"""Roles: what each may do, `manage.py role`, and what asking costs."""

from io import StringIO

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sonar.models import Alias, Site
from sonar.people import roles
from sonar.people.roles import OPERATORS_MAY, SITE_ADMINS_MAY, Role
from tests.accounts import account
from tests.sonar.world import three_endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def sites() -> list[Site]:
    return [endpoint.site for endpoint in three_endpoints()]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("role", *arguments, stdout=out)
    return out.getvalue()


def fresh(user: User) -> User:
    """Return the account as the next request has it."""
    return User.objects.get(pk=user.pk)


@pytest.mark.parametrize("role", Role)
def test_an_account_has_one_role_whatever_it_had_before(role: Role, sites: list[Site]) -> None:
    user = account()
    for earlier in Role:
        roles.give(user, earlier, sites if earlier is Role.SITE_ADMIN else [])
        roles.give(user, role, sites[:1] if role is Role.SITE_ADMIN else [])
        assert roles.role_of(user) is role
        assert roles.role_of(fresh(user)) is role
        assert user.is_staff == (role in (Role.OPERATOR, Role.ADMINISTRATOR))
        assert roles.sites_of(user) == ({sites[0].id} if role is Role.SITE_ADMIN else set())


def test_nobody_and_who_is_not_active_have_no_role_and_no_right(sites: list[Site]) -> None:
    gone = account(Role.ADMINISTRATOR)
    gone.is_active = False
    left = account(Role.SITE_ADMIN, sites[0])
    left.is_active = False
    for user in (AnonymousUser(), gone, left):
        assert roles.role_of(user) is None
        assert roles.rights_of(user) == ()
        assert not roles.may(user, "sonar.add_annotation", [sites[0].id])


def test_a_site_admin_may_some_things_for_its_sites_and_nothing_elsewhere(
    sites: list[Site],
) -> None:
    user = account(Role.SITE_ADMIN, sites[0])
    own, other = [sites[0].id], [sites[1].id]
    for right in OPERATORS_MAY:
        assert roles.may(user, right, own) == (right in SITE_ADMINS_MAY), right
        assert roles.may(user, right, own + other) == (right in SITE_ADMINS_MAY), right
        assert not roles.may(user, right, other), right
        assert not roles.may(user, right), right


def test_an_operator_may_everywhere_what_is_an_operators(sites: list[Site]) -> None:
    user = account(Role.OPERATOR)
    assert all(roles.may(user, right) for right in OPERATORS_MAY)
    for right in ("sonar.add_sizeclass", "sonar.change_sizeclass", "auth.change_user"):
        assert not roles.may(user, right, [sites[0].id])
        assert roles.may(account(Role.ADMINISTRATOR, name=right), right)


def test_every_right_that_is_named_is_one_of_djangos() -> None:
    known = Permission.objects.filter(content_type__app_label="sonar")
    names = {f"sonar.{name}" for name in known.values_list("codename", flat=True)}
    assert names >= OPERATORS_MAY > SITE_ADMINS_MAY


def test_a_permission_of_its_own_comes_on_top(sites: list[Site]) -> None:
    user = account()
    roles.let_ingest(user)
    assert roles.may(user, "sonar.add_transfer")
    assert roles.scopes_for(user) == ["read", "ingest"]
    assert roles.role_of(user) is Role.READER
    assert roles.own_permissions(user) == ["add_transfer"]
    roles.give(user, Role.SITE_ADMIN, sites)
    assert roles.may(user, "sonar.add_transfer")


def test_the_group_of_operators_gets_what_it_lacks_and_keeps_what_it_was_given() -> None:
    group = Group.objects.get(name=roles.GROUP)
    more = Permission.objects.get(codename="delete_endpoint")
    group.permissions.set([more])
    roles.ensure_operators()
    held = {f"sonar.{one.codename}" for one in group.permissions.all()}
    assert held == OPERATORS_MAY | {"sonar.delete_endpoint"}


def test_a_request_asks_for_the_rights_of_its_account_once_and_nobody_costs_no_query(
    sites: list[Site],
) -> None:
    user = fresh(account(Role.SITE_ADMIN, sites[0]))
    with CaptureQueriesContext(connection) as captured:
        for site in sites:
            for right in sorted(OPERATORS_MAY):
                roles.may(user, right, [site.id])
        roles.rights_of(user)
    # The account's permissions, its groups', and its sites.
    assert len(captured) == 3, [one["sql"] for one in captured.captured_queries]
    concerned = Site.objects.values_list("id", flat=True)
    with CaptureQueriesContext(connection) as captured:
        roles.may(AnonymousUser(), "sonar.add_annotation", concerned)
        roles.rights_of(AnonymousUser())
    assert len(captured) == 0


def test_what_is_known_of_an_account_is_not_kept_beyond_a_change(sites: list[Site]) -> None:
    user = account()
    assert not roles.may(user, "sonar.add_probe", [sites[0].id])
    roles.give(user, Role.SITE_ADMIN, sites[:1])
    assert roles.may(user, "sonar.add_probe", [sites[0].id])
    roles.give(user, Role.OPERATOR)
    assert roles.may(user, "sonar.add_mesh")
    roles.give(user, Role.READER)
    assert not roles.may(user, "sonar.add_mesh")


def test_a_site_admins_sites_are_said(sites: list[Site]) -> None:
    user = account()
    for count, said in enumerate(("GLASGOW", "GLASGOW and LANCS", "GLASGOW, LANCS and RAL"), 1):
        roles.give(user, Role.SITE_ADMIN, sites[:count])
        assert roles.described(user) == f"a site admin of {said}"


@pytest.mark.parametrize(
    ("words", "said", "role"),
    [
        ("operator", "an operator", Role.OPERATOR),
        ("administrator", "an administrator", Role.ADMINISTRATOR),
        ("reader", "a reader", Role.READER),
        ("site-admin RAL", "a site admin of RAL", Role.SITE_ADMIN),
        ("reader --ingest", "a reader, and may store results", Role.READER),
    ],
)
def test_the_command_gives_a_role_and_says_it(
    sites: list[Site], words: str, said: str, role: Role
) -> None:
    user = account(name="list")  # as an account may be called
    assert run("list", *words.split()) == f"list is {said}.\n"
    assert roles.role_of(fresh(user)) is role
    stores = "--ingest" in words or role in (Role.OPERATOR, Role.ADMINISTRATOR)
    assert roles.may(fresh(user), "sonar.add_transfer") == stores


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nobody reader", "There is no user 'nobody'"),
        ("shifter", "Specify a role for shifter: reader, site-admin, operator, administrator"),
        ("shifter king", "invalid choice: 'king'"),
        ("shifter site-admin", "the role site-admin must have at least one site. Nothing was"),
        ("shifter operator RAL", "the role operator must have no sites. Nothing was changed"),
        ("shifter site-admin RAL Atlantis", "There is no site Atlan"),
        ("", "USER"),
    ],
)
def test_a_bad_wish_changes_nothing_and_says_why(sites: list[Site], words: str, said: str) -> None:
    user = account(Role.OPERATOR, name="shifter")
    with pytest.raises(CommandError, match=said):
        run(*words.split())
    assert roles.role_of(fresh(user)) is Role.OPERATOR


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TAIWAN", "Taiwan-LCG2"),
        ("taiwan-lcg2", "Taiwan-LCG2"),
        ("RAL-LCG2", "RAL"),
        ("ral", "RAL"),
        ("GLASGWO", "GLASGOW"),
        ("Atlantis", ""),
    ],
)
def test_a_site_that_is_called_otherwise_is_suggested(
    sites: list[Site], name: str, meant: str
) -> None:
    Site.objects.create(name="Taiwan-LCG2")
    ral = Site.objects.get(name="RAL")
    Alias.objects.create(kind="rcsite", name="RAL-LCG2", site=ral)
    user = account(Role.OPERATOR, name="shifter")
    with pytest.raises(CommandError) as refused:
        run("shifter", "site-admin", name)
    hint = f" Did you mean {meant}?" if meant else ""
    assert str(refused.value) == f"There is no site {name}. Nothing was changed.{hint}"
    assert roles.role_of(fresh(user)) is Role.OPERATOR


def test_the_list_shows_every_account_with_its_role_and_sites(sites: list[Site]) -> None:
    assert run("list") == "No accounts.\n"
    account(Role.SITE_ADMIN, *sites[:2], name="anna")
    account(Role.ADMINISTRATOR, name="root")
    roles.let_ingest(account(name="cron"))
    User.objects.create_user("left", is_active=False)
    assert run("list").splitlines() == [
        "USER  ROLE           SITES          ALSO",
        "anna  site-admin     GLASGOW,LANCS",
        "cron  reader                        add_transfer",
        "left  not active",
        "root  administrator",
    ]
