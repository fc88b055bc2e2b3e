"""Which credentials there are: for which hosts, who uses them, and what is wrong with them."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from sonar.credentials import rules, sources
from sonar.credentials.sources.base import CredentialError, Purpose, Right
from sonar.management.base import QuickCommand, in_columns
from sonar.models import Credential, CredentialState, Endpoint
from sonar.movers.base import MoverError, Where
from sonar.notation.windows import format_moment
from sonar.obstacles.credential_states import SERVICE
from sonar.work import credential_checks
from sonar.work.credential_secrets import secret_of
from sonar.work.transfer_request import kind_of

HEAD = ("NAME", "KIND", "HOSTS", "OWN", "LENT", "FILE")


class Command(QuickCommand):
    help = (
        "List the credentials with their kind, their hosts, and the endpoints and meshes that use "
        "or delegate them. Show whether this process can read each credential file in "
        "SONAR_CREDENTIALS_DIR and each uploaded secret. List credentials that do not work or "
        "will expire soon. Secrets are never shown. Exit code 0: no problems; 1: at least one "
        "problem. Credentials are registered in the admin interface or with `load_registry`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--ask",
            action="store_true",
            help="also request tokens from issuers and endpoints, and check that services accept "
            "their credential. Issuers, endpoints and services at other vantage points are "
            "skipped.",
        )

    def handle(self, *_: Any, ask: bool, **__: Any) -> None:  # noqa: ANN401 - Django's signature
        credential_rows = list(Credential.objects.all())
        if not credential_rows:
            self.stdout.write("No credentials are registered.")
            return
        rows = Endpoint.objects.filter(retired_at=None)
        ends = list(rows.select_related("credential", "credential_lent"))
        files = {credential: file_problem(credential) for credential in credential_rows}
        lines = (row_of(credential, ends, files[credential]) for credential in credential_rows)
        self.stdout.write(in_columns([HEAD, *lines]))
        for end in filter(rules.refuses_to_lend, ends):
            self.stdout.write(
                f"{end.name} has no credential to delegate. Tests that need a delegated credential "
                f"to read or write there are waiting: {rules.LEND}"
            )
        wrong = []
        for credential, trouble in files.items():
            if trouble:
                subject = "uploaded secret" if credential.is_uploaded else "file"
                name = f"The {subject} of the credential {credential.name}"
                wrong.append(f"{name} cannot be used: {trouble}.")
        wrong += filter(None, map(rules.problem, ends))
        wrong += not_given() if ask else noted()
        if wrong:
            raise CommandError(
                "\n".join(["Problems with credentials:", *(f"  {sentence}" for sentence in wrong)])
            )


def row_of(credential: Credential, ends: Iterable[Endpoint], trouble: str) -> tuple[str, ...]:
    own = [end.name for end in ends if end.credential == credential]
    own += [f"mesh {mesh.name}" for mesh in credential.meshes.all()]
    lent = [end.name for end in ends if rules.lends(end) == credential]
    readable = "uploaded" if credential.is_uploaded else "readable"
    hosts, shown = ",".join(credential.hosts), trouble or readable
    return credential.name, credential.kind, hosts, ",".join(own), ",".join(lent), shown


def file_problem(credential: Credential) -> str:
    """Say why a worker could not use its secret; empty if it could. Nobody is asked for a token."""
    try:
        if kind_of(credential).renews:
            secret_of(credential).read()
        else:
            secret = secret_of(credential)
            purpose = Purpose(credential.name, credential.kind, secret, Where.SOURCE, "", Right.OWN)
            sources.get(credential.kind).obtain(purpose)
    except (CredentialError, ValueError) as error:
        return str(error)
    return ""


def noted() -> Iterator[str]:
    for row in CredentialState.objects.select_related("credential", "endpoint", "mesh"):
        effect = "tests wait" if row.holds else "tests still run"
        yield (
            f"{row.credential.name} as {row.role} of {row.place}, since "
            f"{format_moment(row.since)}: {row.sentence}; {effect}."
        )


def not_given() -> Iterator[str]:
    """Ask for a token of each credential that is given by somebody, and say who gives none.

    And ask services whether they take theirs.
    """
    for usage in credential_checks.uses():
        is_given = usage.role == SERVICE or kind_of(usage.credential).renews
        if not is_given or not usage.is_here:
            continue
        try:
            trouble = credential_checks.trouble_of(usage, 0, asks=True)
            why = trouble.sentence if trouble else ""
        except MoverError as error:
            why = f"could not be checked: {error}"
        if why:
            yield f"{usage.credential.name} as {usage.role} of {usage.place.name}: {why}."
