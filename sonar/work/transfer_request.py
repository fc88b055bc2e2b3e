"""What a probe orders from a mover: which file from where to where, with which credentials.

A test of the network alone orders neither.
"""

from dataclasses import replace
from functools import partial

from django.conf import settings
from django.utils import timezone

from sonar.credentials import cache, kinds, rules, sources
from sonar.credentials.cache import UsableToken
from sonar.credentials.kinds import KindDescription
from sonar.credentials.sources.base import CredentialError, Purpose, Right
from sonar.models import Credential, Endpoint, Mesh, Probe
from sonar.movers.base import CLEANING_LIMITS, End, Limits, MoverError, Order, Service, Where
from sonar.movers.catalogue import MoverDescription, no_such_mover
from sonar.movers.content import adler32
from sonar.movers.file_address import require_printable
from sonar.notation.addresses import CredentialKind
from sonar.notation.data_hosts import data_hosts
from sonar.obstacles import credential_states
from sonar.obstacles.catalogue import CredentialGivenAway
from sonar.obstacles.credential_states import LENT, OWN, SERVICE, CredentialProblem, CredentialUse
from sonar.obstacles.obstacle import RunConditions, ends_of
from sonar.registry import mesh_services
from sonar.work.credential_secrets import secret_of

# Beyond a test's own time, for what is asked before and after.
MARGIN_SECONDS = 60
# What a token that an end lends is used for: by the other end of a copy, and by a service.
LENT_FOR = {Where.SOURCE: Right.LENT_TO_READ, Where.DESTINATION: Right.LENT_TO_WRITE}
LENT_TO_SERVICES = LENT_FOR | {Where.DESTINATION: Right.LENT_TO_SERVICE}


class CredentialWait(MoverError):
    """A credential is not to be had: the test waits for it, and nobody has failed.

    ``str(error)`` is for all readers, ``trouble`` for operators.
    """

    def __init__(
        self, place: Endpoint | Mesh, use: CredentialUse, trouble: CredentialProblem
    ) -> None:
        super().__init__(Where.CONTROL, credential_states.waits(place.name, use.role))
        self.use, self.trouble = use, trouble


def order_for(probe: Probe) -> Order:
    """Say to the mover what this probe wants.

    Raises MoverError where no token may go, and for a mover that there is not any more, and
    CredentialWait where a credential does not work.
    """
    if probe.mover_description.of_network:
        return _network_order_for(probe)
    for problem in CredentialGivenAway().blocks(RunConditions(timezone.now()), probe):
        raise refused(problem.sentence)
    needed = needed_for(probe.size_class.timeout_seconds)
    mesh, service = mesh_services.of_probe(probe), None
    if mesh is not None:
        service = service_of(mesh, probe.mover_description)
        if mesh.service_credential:
            service_token(purpose_at_service(mesh, mesh.service_credential), needed)
    elif probe.mover_description.asks_service:
        why = mesh_services.no_service(probe.mover_description)
        raise refused(why or "No service is set for the mesh of this test.")
    ends = _ends(probe, needed)
    _refuse_what_its_mover_cannot_do(probe)
    return Order(
        source=ends["source"],
        destination=ends["destination"],
        bytes=probe.bytes,
        adler32=adler32(probe.bytes),
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        scitag=probe.scitag,
        mode=probe.mode,
        ca_bundle=settings.SONAR_CA_BUNDLE,
        job=f"sonar-{probe.id}",
        service=service,
        limits=Limits(total=probe.size_class.timeout_seconds),
    )


def _refuse_what_its_mover_cannot_do(probe: Probe) -> None:
    """Raise MoverError for what no form lets pass: a row may have been written past them."""
    mover = probe.mover_description
    if not mover.path:
        raise refused(no_such_mover(mover.name))
    base_urls = {end: endpoint.base_url for end, endpoint in ends_of(probe)}
    if sentence := mover.scheme_mismatch(probe.mode, base_urls):
        raise refused(sentence)
    for sentence in mover.refusals(probe.mode, streams=probe.streams).values():
        raise refused(sentence)


def service_of(mesh: Mesh, mover: MoverDescription) -> Service:
    """Return the service that a mesh names, which gets its credential and nobody else does.

    Raises MoverError if that is not for it: a row may have been written past the forms.
    """
    credential = mesh.service_credential
    if wrong := rules.service_problems(mover, mesh.service, credential):
        raise refused(next(iter(wrong.values())))
    if credential is None:
        return Service(mesh.service)
    purpose = purpose_at_service(mesh, credential)
    return Service(mesh.service, credential.name, partial(service_token, purpose))


def service_token(purpose: Purpose, needed: float = MARGIN_SECONDS) -> str:
    """Return the token that a service knows us by, for one question if nothing else is said.

    Raises MoverError, with the trouble of the credential, if there is none.
    """
    try:
        return look(purpose, needed).token.text
    except CredentialError as error:
        failure = refused(f"the credential for the service does not work: {error}")
        failure.credential_trouble = str(error)
        raise failure from error


def awaited(probe: Probe, error: MoverError | None) -> CredentialWait | None:
    """Return for which credential a test has to wait that ended so; None if for none."""
    if isinstance(error, CredentialWait):
        return error
    if error is None or not error.credential_trouble:
        return None
    mesh = mesh_services.of_probe(probe)
    if mesh is None or mesh.service_credential_id is None:
        return None
    use = CredentialUse(mesh.service_credential_id, mesh.pk, SERVICE)
    return CredentialWait(mesh, use, CredentialProblem(error.credential_trouble, holds=True))


def _ends(probe: Probe, needed: float) -> dict[str, End]:
    """Name both files with the credentials of their endpoints, and what the passive one lends."""
    files = {
        "source": (Where.SOURCE, probe.source, source_path(probe)),
        "destination": (Where.DESTINATION, probe.destination, incoming_path(probe)),
    }
    ends = {
        name: end_at(where, endpoint, path, probe.mover_description, needed)
        for name, (where, endpoint, path) in files.items()
    }
    # The other end, or a service, is given these to reach the file.
    passive, _ = rules.PASSIVE_AND_ACTIVE[probe.mode]
    mover = probe.mover_description
    for name in files if mover.asks_service else (passive,):
        where, lender, _ = files[name]
        credential = lent_by(lender)
        if credential is not None and is_taken(credential, mover):
            right = (LENT_TO_SERVICES if mover.asks_service else LENT_FOR)[where]
            lent = token_for(lender, credential, where, right, needed).token
            ends[name] = replace(ends[name], lent=lent.text, lent_until=lent.expires_at)
    return ends


def needed_for(timeout_seconds: int) -> float:
    return timeout_seconds + MARGIN_SECONDS


def source_path(probe: Probe) -> str:
    """Name the source file, which the tests of one size share."""
    return f"sonar/source/{probe.bytes}"


def incoming_path(probe: Probe) -> str:
    """Name the destination file of a run: nobody else's, so it may always be deleted.

    A later run of a probe that was handed back has a name of its own.
    """
    run = f".{probe.runs}" if probe.runs > 1 else ""
    return f"sonar/incoming/{probe.id}{run}"


def end_at(
    where: Where,
    endpoint: Endpoint,
    path: str,
    mover: MoverDescription,
    needed: float = CLEANING_LIMITS.total,
) -> End:
    """Name a file at an endpoint to a mover, with the credential for it and nothing to lend.

    Raises MoverError if the credential is not for this base URL, or no file can be there: a row
    may have been written past the forms. Raises CredentialWait if it does not work for so many
    seconds as are ``needed``.
    """
    if why := rules.problems(endpoint).get("credential"):
        raise refused(why)
    base_url = endpoint.base_url.rstrip("/")
    end = End(
        where,
        f"{base_url}/{path}",
        base_url,
        data_hosts=data_hosts(tuple(endpoint.data_hosts)),
        token_goes_along=bool(endpoint.credential and endpoint.credential.to_data_hosts),
    )
    require_printable(end)
    own = endpoint.credential
    if own is None or not is_taken(own, mover):
        return end
    shown = token_for(endpoint, own, where, Right.OWN, needed).token.text
    if kind_of(own).shown is CredentialKind.X509_PROXY:
        return replace(end, proxy=shown)
    return replace(end, token=shown)


def refused(why: str) -> MoverError:
    return MoverError(Where.CONTROL, why, permanent=True)


def lent_by(endpoint: Endpoint) -> Credential | None:
    if rules.lends(endpoint) is None:
        return None
    return endpoint.credential_lent or endpoint.credential


def is_taken(credential: Credential, mover: MoverDescription) -> bool:
    """Say whether a mover takes a credential: what it cannot use is not given away."""
    try:
        return kind_of(credential).shown in mover.credentials
    except ValueError as error:
        raise refused(str(error)) from error


def kind_of(credential: Credential) -> KindDescription:
    """Return what its kind is; ValueError for one that there is not any more."""
    return kinds.describe(credential.kind)


def token_for(
    endpoint: Endpoint, credential: Credential, where: Where, right: Right, needed: float
) -> UsableToken:
    """Return a token of a credential for an endpoint, or raise CredentialWait.

    It is asked for if need be. A file is read each time anew: it is renewed in place.
    """
    purpose = purpose_of(endpoint, credential, where, right)
    try:
        return look(purpose, needed)
    except CredentialError as error:
        trouble = CredentialProblem(str(error), holds=True)
        use = CredentialUse(credential.pk, endpoint.pk, OWN if right is Right.OWN else LENT)
        raise CredentialWait(endpoint, use, trouble) from None


def look(purpose: Purpose, needed: float) -> UsableToken:
    """Return a token that counts for so many seconds more; CredentialError if there is none."""
    if kinds.describe(purpose.kind).renews:
        return cache.obtain(purpose, settings.SONAR_TOKEN_CACHE_DIR, needed)
    token = sources.get(purpose.kind).obtain(purpose)
    if not cache.is_usable(token, needed):
        raise CredentialError(f"{purpose.secret.where} is about to expire")
    return UsableToken(token)


def purpose_at_service(mesh: Mesh, credential: Credential) -> Purpose:
    return purpose_of(mesh, credential, Where.CONTROL, Right.SERVICE)


def purpose_of(
    place: Endpoint | Mesh, credential: Credential, where: Where, right: Right
) -> Purpose:
    """Say which token is needed: for this endpoint or service, and what is done there."""
    url = place.service if isinstance(place, Mesh) else place.base_url
    return Purpose(
        name=credential.name,
        kind=credential.kind,
        secret=secret_of(credential),
        where=where,
        base_url=url.rstrip("/"),
        right=right,
        issuer=credential.issuer,
        client_id=credential.client_id,
        audience=credential.audience,
        path_prefix=credential.path_prefix,
        scope=credential.scope if right is Right.SERVICE else "",
        ca_bundle=settings.SONAR_CA_BUNDLE,
    )


def _network_order_for(probe: Probe) -> Order:
    """Say what a probe of the network wants: no files, and no credentials.

    Raises MoverError unless this process stands for the end that does the work, and for a base URL
    that was written past the forms.
    """
    active: Endpoint = getattr(probe, rules.PASSIVE_AND_ACTIVE[probe.mode][1])
    here = settings.SONAR_NETWORK_ENDPOINT
    if active.name != here:
        own = f"this worker has {here}" if here else "this setting is empty on this worker"
        why = (
            f"in {probe.mode} mode, this test needs a worker with the setting "
            f"SONAR_NETWORK_ENDPOINT={active.name}: {own}"
        )
        raise refused(why)
    source = End(Where.SOURCE, probe.source.base_url, probe.source.base_url)
    destination = End(Where.DESTINATION, probe.destination.base_url, probe.destination.base_url)
    for end in (source, destination):
        require_printable(end)
    return Order(
        source=source,
        destination=destination,
        bytes=probe.bytes,
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        mode=probe.mode,
        limits=Limits(total=probe.size_class.timeout_seconds),
    )
