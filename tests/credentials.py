"""Endpoints that use a credential, bound as the rules want it."""

from sonar.credentials import rules
from sonar.models import Credential, Endpoint


def bind(endpoint: Endpoint, name: str, *, lent: str = "", lend: bool = False) -> Endpoint:
    """Let an endpoint use a credential of this name for its host, and lend another if named."""
    endpoint.credential = credential(name, endpoint)
    endpoint.credential_lent = credential(lent, endpoint) if lent else None
    endpoint.lend_credential = lend
    endpoint.full_clean()
    endpoint.save()
    return endpoint


def credential(name: str, *endpoints: Endpoint) -> Credential:
    """Make a credential, or return the one of this name, that is for the hosts of these too."""
    hosts = {host(endpoint) for endpoint in endpoints}
    found, made = Credential.objects.get_or_create(name=name, defaults={"hosts": sorted(hosts)})
    if not made and not hosts <= set(found.hosts):
        found.hosts = sorted({*found.hosts, *hosts})
        found.save()
    return found


def host(endpoint: Endpoint) -> str:
    found = rules.host_of_url(endpoint.base_url)
    assert found
    return f"{found.name}:{found.port}" if found.port else found.name
