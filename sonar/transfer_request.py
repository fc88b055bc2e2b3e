"""What a probe orders from a mover: which file from where to where, with which credentials."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from sonar import credentials
from sonar.models import Endpoint, Probe
from sonar.mover_catalogue import CredentialKind, describe
from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.content import adler32
from sonar.storage_hosts import known_hosts


def order_for(probe: Probe) -> Order:
    """Say to the mover what this probe wants.

    Raises MoverError where no token may go, or is, and for a mover that there is not any more.
    """
    if why := credentials.hindrance(probe.source, probe.destination, probe.mode):
        raise refused(why)
    ends = {
        "source": end_at(Where.SOURCE, probe.source, source_path(probe), probe.mover),
        "destination": end_at(
            Where.DESTINATION, probe.destination, incoming_path(probe), probe.mover
        ),
    }
    passive, _ = credentials.PASSIVE_AND_ACTIVE[probe.mode]
    lender: Endpoint = getattr(probe, passive)
    lent = token_of(lender, credentials.lends(lender), probe.mover)
    ends[passive] = replace(ends[passive], lent=lent)
    return Order(
        source=ends["source"],
        destination=ends["destination"],
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


def end_at(where: Where, endpoint: Endpoint, path: str, mover: str) -> End:
    """Name a file at an endpoint to a mover, with the token for it itself and nothing to lend.

    Raises MoverError if the token cannot be read, or if it is not for this base URL: a row may
    have been written past the forms.
    """
    if why := credentials.problems(endpoint).get("credential"):
        raise refused(why)
    base_url = endpoint.base_url.rstrip("/")
    token = token_of(endpoint, endpoint.credential, mover)
    return End(where, f"{base_url}/{path}", base_url, token)


def refused(why: str) -> MoverError:
    return MoverError(Where.CONTROL, why, permanent=True)


def token_of(endpoint: Endpoint, credential: credentials.Credential | None, mover: str) -> str:
    """Read a bearer token of an endpoint, each time anew: tokens are renewed in place.

    It is empty for a mover that takes none: what it cannot use is not given away.
    """
    try:
        takes_it = CredentialKind.BEARER_TOKEN in describe(mover).credentials
    except ValueError as error:
        raise refused(str(error)) from error
    if credential is None or not takes_it:
        return ""
    try:
        return read_token(credential.name)
    except ValueError as error:
        raise refused(
            # Anyone may read this: the name of the file stands with the endpoint, for operators.
            f"the credential of {endpoint.name} cannot be read from SONAR_CREDENTIALS_DIR: {error}"
        ) from error


def read_token(name: str) -> str:
    """Read the token in the file of a credential; raises ValueError that says why it cannot."""
    try:
        token = str((settings.SONAR_CREDENTIALS_DIR / name).read_text().strip())
    except OSError as error:
        raise ValueError(error.strerror) from error
    except UnicodeDecodeError as error:  # its own words quote what is in the file
        raise ValueError("it is not text") from error
    if not token:
        raise ValueError("it is empty")
    return token
