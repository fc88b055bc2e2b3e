"""Errors as all readers see them: endpoints by their names, and nothing of where they are."""

from collections.abc import Iterable

from django.db.models import Value

from sonar.credentials.redacted import learn, without_tokens
from sonar.models import Endpoint, Mesh
from sonar.redaction.servers import SERVER, Servers
from sonar.registry import secrets
from sonar.registry.cache import RegistryCache


def for_all(error: str, ends: Iterable[Endpoint] = ()) -> str:
    """Return an error without what only some may see: where the registered endpoints are.

    `glasgow.example:1094/data/sonar/source/20: 403` is `GLASGOW_DATADISK/sonar/source/20: 403`.
    Of several endpoints on a server those of the test, its ``ends``, are meant. One SQL query.
    """
    if not error:
        return error
    places = servers()
    return places.hide(without_tokens(error), [end.name for end in ends])


def for_operators(text: str) -> str:
    """Return a text without tokens and secrets; where servers are stays. One SQL query."""
    if not text:
        return text
    servers()
    return without_tokens(text)


def servers() -> Servers:
    """Return where all endpoints are, retired ones too; read again when the registry changed."""
    return _registered.read()


def _read_servers() -> Servers:
    """Read where endpoints and their data are, and services that move files.

    And which secrets were uploaded, for all texts of this process. Three SQL queries.
    """
    learn(secrets.all_secrets())
    ends = Endpoint.objects.order_by("id").values_list("name", "base_url", "data_hosts")
    services = Mesh.objects.exclude(service="").order_by().values_list(Value(SERVER), "service")
    rows = list(ends)
    urls = [*services.distinct(), *((name, url) for name, url, _ in rows)]
    return Servers(urls, (host for _, _, hosts in rows for host in hosts))


_registered = RegistryCache(_read_servers)
