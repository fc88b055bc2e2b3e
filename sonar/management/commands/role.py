"""Roles of accounts: give one, list them."""

import difflib
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from sonar.management.base import QuickCommand, in_columns
from sonar.models import Site
from sonar.people import roles
from sonar.people.roles import Role

LIST = "list"
MOST_SIMILAR = 3


class Command(QuickCommand):
    help = (
        "Change the role of an account: `role USER ROLE [SITE ...]`. SITE is for site-admin "
        "only. `role list` shows all accounts. Accounts are created on the page /people/."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "user", metavar="USER", help=f"name of the account, or {LIST} to show all accounts"
        )
        parser.add_argument(
            "role",
            metavar="ROLE",
            nargs="?",
            choices=list(Role),
            help=f"new role: {', '.join(Role)}",
        )
        parser.add_argument("sites", metavar="SITE", nargs="*", help="sites of a site admin")
        parser.add_argument(
            "--ingest", action="store_true", help="also allow storing results (POST transfers/)"
        )

    def handle(
        self,
        *_: Any,  # noqa: ANN401 - Django's signature
        user: str,
        role: str | None,
        sites: list[str],
        ingest: bool,
        **__: object,
    ) -> None:
        if role is None and user == LIST:
            rows = [
                (
                    each.get_username(),
                    roles.role_of(each) or "not active",
                    ",".join(sorted(site.name for site in each.administered_sites.all())),
                    ",".join(roles.own_permissions(each)),
                )
                for each in User.objects.order_by("username")
            ]
            head = ("USER", "ROLE", "SITES", "ALSO")
            self.stdout.write(in_columns([head, *rows]) if rows else "No accounts.")
            return
        account = User.objects.filter(username=user).first()
        if account is None:
            raise CommandError(f"There is no user {user!r}. Create accounts on the page /people/.")
        if role is None:
            raise CommandError(f"Specify a role for {user}: {', '.join(Role)}.")
        if role != Role.ADMINISTRATOR and roles.is_last_administrator(account):
            raise CommandError(f"{roles.LAST} Nothing was changed.")
        try:
            roles.give(account, Role(role), named(sites))
        except roles.RoleError as error:
            raise CommandError(f"{error}. Nothing was changed.") from error
        if ingest:
            roles.let_ingest(account)
        also = ", and may store results" if ingest else ""
        self.stdout.write(f"{user} is {roles.described(account)}{also}.")


def named(names: list[str]) -> list[Site]:
    """Return the sites with these names; raise CommandError that says which are none."""
    sites = {site.name: site for site in Site.objects.filter(name__in=names)}
    if unknown := [name for name in names if name not in sites]:
        meant, every = set[str](), Site.objects.values_list("name", flat=True)
        for name in unknown:
            # Pages shorten names, and others have their own.
            likely = every.filter(Q(name__icontains=name) | Q(aliases__name__iexact=name))
            few = list(likely.order_by("name").distinct()[:MOST_SIMILAR])
            meant.update(few or difflib.get_close_matches(name, every, n=1, cutoff=0.5))
        hint = f" Did you mean {' or '.join(sorted(meant))}?" if meant else ""
        message = f"There is no site {' or '.join(unknown)}. Nothing was changed.{hint}"
        raise CommandError(message)
    return list(sites.values())
