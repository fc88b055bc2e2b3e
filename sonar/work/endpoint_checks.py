"""Checks of endpoints, by workers and commands: step after step, and nothing is left behind.

The file of a check is remembered for `clean_up` before it is written, so that one whose worker dies
is deleted as those of tests are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from sonar.database.retry import release_connection
from sonar.models import Endpoint, EndpointCheck, Leftover
from sonar.movers import catalogue
from sonar.movers.base import End, Where, part_of
from sonar.movers.catalogue import MoverDescription
from sonar.movers.checks.certificate import certificate_step
from sonar.movers.checks.network import Host, name_step, port_step
from sonar.movers.checks.sequence import PlannedStep, run, sentence
from sonar.movers.checks.storage import Storage, steps_of
from sonar.movers.checks.web import WebStorage, web_steps_of
from sonar.movers.http.webdav import WebDav
from sonar.movers.programs.files_by_scheme import FilesByScheme
from sonar.movers.watch import Watch
from sonar.notation.addresses import PROTOCOLS, scheme_of
from sonar.notation.check_steps import CheckStep, StepState
from sonar.registry.redacted import for_operators
from sonar.work import cleanup, refused_redirects
from sonar.work.credential_words import credential_step
from sonar.work.running import running
from sonar.work.transfer_request import CredentialWait, end_at

Tell = Callable[[CheckStep], None]
LEFT_ALONE = timedelta(minutes=15)
"""Until `clean_up` deletes the file of a check: by then it has ended, or its worker is dead."""
EXPLANATION = "written by an endpoint check that did not delete it"


@dataclass(frozen=True)
class CheckOutcome:
    """The steps that were taken, and what became of the file."""

    steps: list[CheckStep]
    is_clean: bool
    """Whether nothing is left at the endpoint."""
    refused_servers: frozenset[str]
    """Host and port of those to which it redirected in vain."""


def carry_out(run_id: UUID) -> None:
    """Carry out a check that was ordered, unless a newer one took its place or it has begun."""
    rows = EndpointCheck.objects.filter(run=run_id)
    if not rows.filter(started_at=None).update(started_at=timezone.now()):
        return
    endpoint = Endpoint.objects.select_related("credential").get(newest_check__run=run_id)
    check_registered(endpoint, run_id)


def check_registered(
    endpoint: Endpoint, run_id: UUID, tell: Tell = lambda step: None
) -> list[CheckStep]:
    """Check a registered endpoint, and keep each step in its row as soon as it is known."""
    rows, steps = EndpointCheck.objects.filter(run=run_id), list[CheckStep]()

    def keep(step: CheckStep) -> None:
        steps.append(step)
        rows.update(steps=[each.to_json() for each in steps])
        release_connection()
        tell(step)

    release_connection()
    try:
        outcome = check(endpoint, run_id, keep, lambda: remember(endpoint, run_id))
        if outcome.is_clean:
            Leftover.objects.filter(endpoint=endpoint, path__in=files_of(run_id)).delete()
        for server in outcome.refused_servers:
            refused_redirects.note(endpoint, server, timezone.now())
    finally:
        rows.update(ended_at=timezone.now())
    return steps


def remember(endpoint: Endpoint, run_id: UUID) -> None:
    """Let `clean_up` delete the file of a check, should the check not do so."""
    mover = mover_for(endpoint.base_url)
    if mover is None:
        return
    places = [(endpoint, path) for path in files_of(run_id)]
    when = timezone.now() + LEFT_ALONE
    cleanup.keep(cleanup.left_behind(place, mover.name, EXPLANATION, when) for place in places)
    release_connection()


def files_of(run_id: UUID) -> list[str]:
    """Name the file of a check, as files of tests are named, and the same one half uploaded."""
    path = f"sonar/incoming/{run_id}"
    return [path, part_of(path, path)]


def check(
    endpoint: Endpoint, run_id: UUID, tell: Tell, remember: Callable[[], None] = lambda: None
) -> CheckOutcome:
    """Check an endpoint, be it registered or not; each step is told, without secrets."""
    watch = Watch()
    storage = storage_of(endpoint, files_of(run_id)[0], watch, remember)
    is_clean = storage is None
    try:
        with running.added(watch):
            steps = run(planned_for(endpoint, storage), watch, lambda step: tell(redacted(step)))
    finally:
        if storage:
            is_clean = storage.clean()
    refused = storage.refused_servers if storage else set[str]()
    return CheckOutcome(steps, is_clean, frozenset(refused))


def redacted(step: CheckStep) -> CheckStep:
    """Return a step without any token that Sonar has, whoever repeated it."""
    return replace(step, seen=for_operators(step.seen), advice=for_operators(step.advice))


def mover_for(base_url: str) -> MoverDescription | None:
    """Return the mover whose files are those of a base URL; None if no mover has such files."""
    scheme = scheme_of(base_url)
    return next(
        (
            mover
            for mover in catalogue.MOVERS
            if scheme in mover.schemes
            and not (mover.of_network or mover.simulated or mover.asks_service)
        ),
        None,
    )


def storage_of(
    endpoint: Endpoint, path: str, watch: Watch, remember: Callable[[], None]
) -> Storage | None:
    """Return where the file of a check goes; None where this process cannot write any."""
    mover = mover_for(endpoint.base_url)
    if mover is None or mover.missing():
        return None

    def end_of() -> End:
        return end_at(Where.DESTINATION, endpoint, path, mover)

    if mover.name == catalogue.DEFAULT:
        return WebStorage(WebDav(), end_of, settings.SONAR_CA_BUNDLE, watch, remember)
    files = FilesByScheme().of(place_of(endpoint))
    return Storage(files, end_of, settings.SONAR_CA_BUNDLE, watch, remember)


def place_of(endpoint: Endpoint) -> End:
    """Return the base of an endpoint, without its credential."""
    return End(Where.DESTINATION, endpoint.base_url, endpoint.base_url)


MADE_UP = "The endpoint is simulated, so there is no server to check."
NO_MOVER = "Sonar cannot access files over {scheme}, so no file was written or read."
CANNOT_RUN = "This worker cannot write or read files: {missing}."


def planned_for(endpoint: Endpoint, storage: Storage | None) -> list[PlannedStep]:
    if scheme_of(endpoint.base_url) not in PROTOCOLS:
        return [PlannedStep("name", lambda: not_checked("name", MADE_UP))]
    host = Host(place_of(endpoint))
    planned = [
        PlannedStep("name", lambda: name_step(host)),
        PlannedStep("port", lambda: port_step(host), ("name",)),
        PlannedStep(
            "certificate", lambda: certificate_step(host, settings.SONAR_CA_BUNDLE), ("port",)
        ),
    ]
    if storage is None:
        mover = mover_for(endpoint.base_url)
        why = NO_MOVER.format(scheme=scheme_of(endpoint.base_url))
        if mover is not None:
            why = CANNOT_RUN.format(missing=", ".join(mover.missing()))
        return [*planned, PlannedStep("write", lambda: not_checked("write", why))]
    planned.append(PlannedStep("credential", lambda: look_at_credential(endpoint, storage)))
    if isinstance(storage, WebStorage):
        return [*planned, *web_steps_of(storage)]
    return [*planned, *steps_of(storage)]


def not_checked(name: str, why: str) -> CheckStep:
    return CheckStep(name, StepState.NOT_CHECKED, why)


LOOK_AT_CREDENTIALS = (
    "Correct the credential in its file or at its issuer. `manage.py credentials --ask` tests all "
    "credentials."
)


def look_at_credential(endpoint: Endpoint, storage: Storage) -> CheckStep:
    """Get what its server is shown, and say what it allows; raises MoverError."""
    try:
        return credential_step(endpoint, storage.end)
    except CredentialWait as error:
        seen = sentence(f"{endpoint.credential}: {error.trouble.sentence}")
        return CheckStep("credential", StepState.FAILED, seen, LOOK_AT_CREDENTIALS)
