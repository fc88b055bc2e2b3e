"""Tokens for scripts: create, list, revoke."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from sonar.management.base import QuickCommand, in_columns
from sonar.models import Token
from sonar.notation.windows import format_time
from sonar.people import tokens


class Command(QuickCommand):
    help = (
        "Create, list and revoke the tokens that scripts send to the API as "
        "'Authorization: Token ...'. A new token is printed once on standard output; "
        "Sonar stores only its hash."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", metavar="create|list|revoke", required=True)
        create = verbs.add_parser("create", help="create a token and print it")
        create.add_argument("user", metavar="USER", help="account that owns the token")
        create.add_argument(
            "--scopes",
            required=True,
            help="scopes, separated by commas: " + ", ".join(Token.Scope.values),
        )
        create.add_argument("--name", required=True, help="name, for example cron-at-ral")
        create.add_argument("--days", type=int, default=90, help="validity in days (default: 90)")
        verbs.add_parser("list", help="list all tokens, including expired ones")
        revoke = verbs.add_parser("revoke", help="revoke a token immediately")
        revoke.add_argument(
            "key", metavar="KEY", help="key of the token, as printed by `token list`"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        try:
            getattr(self, options["verb"])(**options)
        except tokens.TokenError as error:
            raise CommandError(str(error)) from error

    def create(self, user: str, name: str, scopes: str, days: int, **_: object) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(f"There is no user {user!r}. Create accounts on the page /people/.")
        names = [scope.strip() for scope in scopes.split(",") if scope.strip()]
        token, text = tokens.create(owner, name, names, days)
        self.stdout.write(text)
        may = f"may {' and '.join(token.scopes)} until {format_time(token.expiry)}"
        self.stderr.write(
            f"Token {token}, key {token.token_key}: {may}. The token will not be shown again."
        )

    def list(self, **_: object) -> None:
        rows = [
            (
                token.token_key,
                token.user.get_username(),
                token.name,
                ",".join(token.scopes),
                format_time(token.expiry),
            )
            for token in Token.objects.select_related("user")
        ]
        heads = ("KEY", "USER", "NAME", "SCOPES", "EXPIRES")
        self.stdout.write(in_columns([heads, *rows]) if rows else "No tokens.")

    def revoke(self, key: str, **_: object) -> None:
        self.stdout.write(f"Revoked: {tokens.revoke(key)}.")
