"""What a probe orders from a mover: which file from where to where, with which credentials."""

from __future__ import annotations

from django.conf import settings

from sonar.models import Endpoint, Probe
from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.content import adler32
from sonar.storage_hosts import known_hosts


def order_for(probe: Probe) -> Order:
    """Say to the mover what this probe wants; raises MoverError without a credential."""
    return Order(
        source=end_at(Where.SOURCE, probe.source, source_path(probe)),
        destination=end_at(Where.DESTINATION, probe.destination, incoming_path(probe)),
        bytes=probe.bytes,
        adler32=adler32(probe.bytes),
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        mode=probe.mode,
        ca_bundle=settings.SONAR_CA_BUNDLE,
        known_hosts=known_hosts(),
        limits=Limits(total=probe.size_class.timeout_seconds),
    )


def source_path(probe: Probe) -> str:
    """Name the source file, which the tests of one size share."""
    return f"sonar/source/{probe.bytes}"


def incoming_path(probe: Probe) -> str:
    """Name the destination file of a run: nobody else's, so it may always be deleted.

    A later run of a probe that was handed back has a name of its own.
    """
    run = f".{probe.runs}" if probe.runs > 1 else ""
    return f"sonar/incoming/{probe.id}{run}"


def end_at(where: Where, endpoint: Endpoint, path: str) -> End:
    base_url = endpoint.base_url.rstrip("/")
    token = token_of(endpoint)
    return End(where, f"{base_url}/{path}", base_url, token, lent=token)


def token_of(endpoint: Endpoint) -> str:
    """Read the bearer token of an endpoint, each time anew: tokens are renewed in place."""
    if not endpoint.credential:
        return ""
    path = settings.SONAR_CREDENTIALS_DIR / endpoint.credential
    try:
        return str(path.read_text().strip())
    except OSError as error:
        raise MoverError(
            Where.CONTROL,
            # Anyone may read this: the name of the file stands with the endpoint, for operators.
            f"the credential of {endpoint.name} cannot be read from SONAR_CREDENTIALS_DIR: "
            f"{error.strerror}",
            permanent=True,
        ) from error
