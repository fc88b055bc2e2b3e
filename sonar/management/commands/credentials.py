"""Which credentials there are: for which hosts, who uses them, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sonar import credentials, transfer_request
from sonar.management.columns import in_columns
from sonar.models import Credential, Endpoint

HEAD = ("NAME", "HOSTS", "OWN", "LENT", "FILE")


class Command(BaseCommand):
    help = (
        "List the credentials of endpoints: for which hosts each one is, which endpoints have it "
        "as their own, which lend it, and whether this process can read its file in "
        "SONAR_CREDENTIALS_DIR. The contents are never shown. Exit code 0 if all is well, 1 if "
        "something is wrong. Credentials are registered in the admin or by `load_registry`."
    )

    def handle(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - Django's signature
        credential_rows = list(Credential.objects.all())
        if not credential_rows:
            self.stdout.write("No credentials are registered.")
            return
        rows = Endpoint.objects.filter(retired_at=None)
        ends = list(rows.select_related("credential", "credential_lent"))
        files = {credential: file_problem(credential) for credential in credential_rows}
        lines = (row_of(credential, ends, files[credential]) for credential in credential_rows)
        self.stdout.write(in_columns([HEAD, *lines]))
        for end in filter(credentials.refuses_to_lend, ends):
            self.stdout.write(f"{end.name} lends no credential: tests that would need one wait.")
        if wrong := [*unreadable(files), *filter(None, map(credentials.problem, ends))]:
            raise CommandError(
                "\n".join(["Problems with credentials:", *(f"  {sentence}" for sentence in wrong)])
            )


def row_of(credential: Credential, ends: Iterable[Endpoint], trouble: str) -> tuple[str, ...]:
    own = [end.name for end in ends if end.credential == credential]
    lent = [end.name for end in ends if credentials.lends(end) == credential]
    hosts = ",".join(credential.hosts)
    return credential.name, hosts, ",".join(own), ",".join(lent), trouble or "readable"


def unreadable(files: dict[Credential, str]) -> Iterator[str]:
    for credential, trouble in files.items():
        if trouble:
            yield f"The file of the credential {credential.name} cannot be used: {trouble}."


def file_problem(credential: Credential) -> str:
    """Say why a worker could not use its file; empty if it could."""
    try:
        transfer_request.read_token(credential.name)
    except ValueError as error:
        return str(error)
    return ""
