"""Roles: reader, site admin, operator, administrator, and what each may do.

Django keeps the rights: an operator is in a group that has OPERATORS_MAY, an administrator is a
superuser, and a site admin is named by a site and has SITE_ADMINS_MAY for what concerns it.
Permissions given to a single account in the admin come on top. docs/roles.md says it for people.
"""

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction

from sonar.models import Site, Token
from sonar.people.role_rules import Role as Role  # noqa: PLC0414 - who uses roles asks here

Anyone = User | AnonymousUser


class RoleError(Exception):
    """A role that cannot be given; the sentence says why."""


GROUP = "operators"

# What may be added, changed, deleted and seen: of sites, and everywhere.
_NOTES = ("annotation", "downtime", "target")
_FOR_SITES = {
    "add": (*_NOTES, "probe"),
    "change": (*_NOTES, "endpoint", "site", "incident"),
    "delete": _NOTES,
    "view": ("endpoint", "annotation", "historyentry"),
}
_REGISTRY = ("site", "mesh", "meshinterval", "alias", "criteriaset", "subscription")
_SEEN = ("site", "mesh", "sizeclass", "downtime", "probe", "leftover", "credential", "alias")
_EVERYWHERE = {
    "add": (*_REGISTRY, "endpoint", "transfer"),
    "change": (*_REGISTRY, "endpoint", "alltests"),
    "delete": _REGISTRY,
    "view": (*_SEEN, "unknownalias", "criteriaset", "subscription", "transfer"),
}

# Names of permissions as `User.has_perm` takes them.
SITE_ADMINS_MAY, _OPERATORS_MAY = (
    frozenset(f"sonar.{verb}_{kind}" for verb in kinds for kind in kinds[verb])
    for kinds in (_FOR_SITES, _EVERYWHERE)
)
OPERATORS_MAY = SITE_ADMINS_MAY | _OPERATORS_MAY
# What an admin of its site may change of an endpoint.
ENDPOINT_COLUMNS = ("inbound_cap", "outbound_cap", "budget_bytes_per_day", "label", "software")
# And of the site itself, by the names of the API.
PAUSE_FIELDS = ("paused", "paused_until", "pause_reason")
ENDPOINT_FIELDS = (*ENDPOINT_COLUMNS, "enabled", *PAUSE_FIELDS)
SITE_FIELDS = ("quiet_hours", *PAUSE_FIELDS)
INGEST = "sonar.add_transfer"
# The permission to order; site admins have it for tests with an end at a site of theirs.
ORDER, STOP_ALL = "sonar.add_probe", "sonar.change_alltests"

_WORDS = {
    None: "not active",
    Role.READER: "a reader",
    Role.OPERATOR: "an operator",
    Role.ADMINISTRATOR: "an administrator",
}

LAST = "This is the last active administrator. Make another account an administrator first."

# What is known of an account is kept on it as long as it lives: for a request.
_KEPT = "_sonar_sites"
_KEPT_BY_DJANGO = ("_perm_cache", "_user_perm_cache", "_group_perm_cache")


def role_of(user: Anyone) -> Role | None:
    """Return the highest role of an account; None for nobody."""
    if not (isinstance(user, User) and user.is_active):
        return None
    if user.is_superuser:
        return Role.ADMINISTRATOR
    if user.groups.filter(name=GROUP).exists():
        return Role.OPERATOR
    return Role.SITE_ADMIN if sites_of(user) else Role.READER


def described(user: User) -> str:
    """Say what an account is, for people: `a site admin of Glasgow and RAL`."""
    role = role_of(user)
    if role is not Role.SITE_ADMIN:
        return _WORDS[role]
    *names, last = user.administered_sites.order_by("name").values_list("name", flat=True)
    return f"a site admin of {', '.join(names)} and {last}" if names else f"a site admin of {last}"


def sites_of(user: Anyone) -> frozenset[int]:
    """Return the ids of the sites that this account is an admin of. One SQL query, once."""
    if not (isinstance(user, User) and user.is_active):
        return frozenset()
    kept = vars(user)
    if _KEPT not in kept:
        sites = Site.objects.filter(admins=user).values_list("id", flat=True).order_by()
        kept[_KEPT] = frozenset(sites)
    ids: frozenset[int] = kept[_KEPT]
    return ids


def rights_of(user: Anyone) -> tuple[object, ...]:
    """Return what changes whenever an account may do something else; cheap for nobody."""
    if not (isinstance(user, User) and user.is_active):
        return ()
    own = sorted(sites_of(user))
    return user.is_superuser, user.is_staff, sorted(user.get_all_permissions()), own


def are_read(user: Anyone) -> bool:
    """Return whether asking for the rights of this account takes no SQL query any more."""
    if not (isinstance(user, User) and user.is_active) or user.is_superuser:
        return True
    return _KEPT in vars(user) and "_perm_cache" in vars(user)


def may(user: Anyone, permission: str, sites: Iterable[int] = ()) -> bool:
    """Say whether an account has a permission, everywhere or for one of these sites."""
    if user.has_perm(permission):
        return True
    own = sites_of(user) if permission in SITE_ADMINS_MAY else frozenset()
    return bool(own) and not own.isdisjoint(sites)


def may_somewhere(user: Anyone, permission: str) -> bool:
    """Say whether an account has a permission, be it for one site alone."""
    # First what costs no query.
    return user.has_perm(permission) or may(user, permission, sites_of(user))


def scopes_for(user: User) -> list[str]:
    """Return the scopes that a token of this account can use."""
    writes = {
        right
        for right in user.get_all_permissions()
        if right.startswith("sonar.") and not right.startswith("sonar.view_")
    }
    usable = {
        Token.Scope.READ: True,
        Token.Scope.INGEST: INGEST in writes,
        Token.Scope.OPERATE: bool(writes - {INGEST} or sites_of(user)),
    }
    return [scope.value for scope, yes in usable.items() if yes]


@transaction.atomic
def give(user: User, role: Role, sites: Iterable[Site] = ()) -> None:
    """Make an account have this role and no other; raise RoleError if sites do not fit it.

    Permissions of its own, as `let_ingest` gives one, stay.
    """
    chosen = list(sites)
    if (role is Role.SITE_ADMIN) != bool(chosen):
        wants = "at least one site" if role is Role.SITE_ADMIN else "no sites"
        raise RoleError(f"the role {role} must have {wants}")
    user.is_superuser = role is Role.ADMINISTRATOR
    # Both edit the registry in the admin, each as far as its permissions go.
    user.is_staff = role in (Role.OPERATOR, Role.ADMINISTRATOR)
    user.save(update_fields=["is_superuser", "is_staff"])
    group = ensure_operators()
    (user.groups.add if role is Role.OPERATOR else user.groups.remove)(group)
    user.administered_sites.set(chosen)
    _forget(user)


def is_last_administrator(user: User) -> bool:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    # As it is kept: a form has changed the account by now.
    was = User.objects.filter(pk=user.pk, is_superuser=True, is_active=True).exists()
    return was and not others.exists()


def let_ingest(user: User) -> None:
    """Let an account store results whatever its role is: for what pushes them, and no more."""
    user.user_permissions.add(
        Permission.objects.get(content_type__app_label="sonar", codename="add_transfer")
    )
    _forget(user)


def own_permissions(user: User) -> list[str]:
    """Return what an account was given beside its role, as names like `add_transfer`."""
    return sorted(user.user_permissions.values_list("codename", flat=True))


def _forget(user: User) -> None:
    for name in (_KEPT, *_KEPT_BY_DJANGO):
        vars(user).pop(name, None)


def ensure_operators(**_: object) -> Group:
    """Make the group of operators, or give it what it lacks; `migrate` calls this."""
    group, _is_new = Group.objects.get_or_create(name=GROUP)
    names = [name.removeprefix("sonar.") for name in OPERATORS_MAY]
    rights = Permission.objects.filter(content_type__app_label="sonar", codename__in=names)
    group.permissions.add(*rights)
    return group
