"""Uploaded secrets of credentials: keeping one, and for which hosts.

Nobody names the credential, nor its hosts: it is called like the endpoint that it is uploaded
for, and is for the hosts where it is used and for no others. So no upload takes the place of
somebody else's secret, and none is sent elsewhere later but by administrators.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from sonar.credentials import kinds, rules
from sonar.credentials.encryption import encrypted
from sonar.credentials.uploads import Upload
from sonar.models import Credential, CredentialState, Endpoint, UploadedSecret
from sonar.registry.compatibility import credential_problems

# Names of credentials are as long as those of endpoints; a number may follow.
LONGEST_NAME, LONGEST_PLAIN = 80, 74


@dataclass(frozen=True)
class NewSecret:
    """A secret that was looked at, for a credential of a kind with its settings."""

    upload: Upload
    kind: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Uploader:
    """Who uploads, and the sites that the account looks after: None for all of them."""

    user: User
    sites: Collection[int] | None


@transaction.atomic
def keep(endpoint: Endpoint, secret: NewSecret, by: Uploader, now: datetime) -> Credential:
    """Keep a secret as the endpoint's own credential, in place of one that was uploaded before.

    What other sites use as well is left to them, and the endpoint gets a credential of its own.
    Raises ValidationError by field; ``content`` for what concerns where it would be sent.
    """
    row = Endpoint.objects.select_for_update(of=("self",)).get(pk=endpoint.pk)
    credential = _replaceable(row, by.sites) or Credential(name=free_name(row.name))
    credential.kind, credential.uploaded_at = secret.kind, now
    for name in kinds.SETTINGS:
        setattr(credential, name, secret.values.get(name, ""))
    credential.hosts = _hosts_where_used(credential, row)
    credential.to_data_hosts = False
    if credential.pk:
        remove(credential)  # what was uploaded before is not for these settings
    credential.full_clean()
    if sentences := credential_problems(credential):
        raise ValidationError({"content": list(sentences.values())})
    credential.save()
    _attach(row, credential)
    UploadedSecret.objects.update_or_create(
        credential=credential,
        defaults={
            "content": encrypted(credential.name, secret.upload.text),
            "uploaded_by": by.user,
            "expires_at": secret.upload.expires_at,
        },
    )
    # Workers find out anew whether it works.
    CredentialState.objects.filter(credential=credential).delete()
    return credential


def _attach(endpoint: Endpoint, credential: Credential) -> None:
    endpoint.credential = credential
    if sentence := rules.problems(endpoint).get("credential"):
        raise ValidationError({"content": sentence})
    endpoint.save(update_fields=["credential"])


def remove(credential: Credential) -> None:
    """Delete an uploaded secret; what uses the credential waits until there is another one."""
    UploadedSecret.objects.filter(credential=credential).delete()


def forget_unused(credential: Credential) -> bool:
    """Delete an uploaded credential that nothing uses any more, and say whether it was."""
    if not credential.is_uploaded or is_used(credential):
        return False
    credential.delete()
    return True


def is_used(credential: Credential) -> bool:
    return any(each.exists() for each in _users(credential)) or credential.meshes.exists()


def is_of_sites(credential: Credential, sites: Collection[int] | None) -> bool:
    """Say whether it is used by these sites and by nobody else; None for all. Three SQL queries."""
    if sites is None:
        return True
    used_by = {site for ends in _users(credential) for site in ends.values_list("site", flat=True)}
    return bool(used_by) and used_by <= set(sites) and not credential.meshes.exists()


def _users(credential: Credential) -> tuple[QuerySet[Endpoint], QuerySet[Endpoint]]:
    return credential.endpoints.all(), credential.lending_endpoints.all()


def _replaceable(endpoint: Endpoint, sites: Collection[int] | None) -> Credential | None:
    """Return the credential of an endpoint if another secret may take the place of its own."""
    credential = endpoint.credential
    if credential is None or not credential.is_uploaded:
        return None
    return credential if is_of_sites(credential, sites) else None


def free_name(endpoint: str) -> str:
    """Return the name of an endpoint, with a number after it if a credential has it already."""
    taken = set(Credential.objects.values_list("name", flat=True))
    numbered = (f"{endpoint[:LONGEST_PLAIN]}-{number}" for number in count(2))
    return next(name for name in chain([endpoint], numbered) if name not in taken)


def _hosts_where_used(credential: Credential, endpoint: Endpoint) -> list[str]:
    """Return each host with its port that the endpoints and services using it have."""
    urls = {endpoint.base_url}
    if credential.pk:
        for ends in _users(credential):
            urls |= set(ends.filter(retired_at=None).values_list("base_url", flat=True))
        urls |= set(credential.meshes.exclude(service="").values_list("service", flat=True))
    return hosts_at(urls)


def hosts_at(urls: Iterable[str]) -> list[str]:
    """Return the hosts of these URLs as credentials name them, each with its port."""
    hosts = filter(None, map(rules.host_of_url, urls))
    return sorted({f"{host.name}:{host.port}" if host.port else host.name for host in hosts})
