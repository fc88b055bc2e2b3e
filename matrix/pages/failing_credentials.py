"""Credentials that do not work or expire soon: which, since when, and who waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from matrix.pages.notices import Notice
from matrix.query.addresses import site_url
from matrix.query.matrix_query import MatrixQuery
from sonar.models import CredentialState
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute
from sonar.obstacles import credential_states
from sonar.people import roles
from sonar.people.roles import Anyone

# Where many endpoints share one credential, the first ones say it.
MOST_NAMED = 10
SEES, SEES_SERVICES = "sonar.view_endpoint", "sonar.view_mesh"


def notices(states: Sequence[CredentialState], now: datetime, reader: Anyone) -> list[Notice]:
    """Say of each since when it is in trouble and what that means; why, to who may see its name."""
    notices = [of_state(state, now, reader) for state in states[:MOST_NAMED]]
    if more := len(states) - len(notices):
        ends = "1 more credential is" if more == 1 else f"{format_count(more)} more credentials are"
        sentence = "The API lists all of them under status/."
        notices.append(Notice("credential", f"{ends} in trouble.", sentence))
    return notices


def of_state(state: CredentialState, now: datetime, reader: Anyone) -> Notice:
    """Say it of one; links of its endpoint or mesh say nothing while their tests wait."""
    subject = credential_states.subject(state.place, state.role)
    trouble = "does not work" if state.holds else "needs attention"
    effect = "tests that need it wait" if state.holds else "tests still run"
    expiry = f" It expires at {format_minute(state.expires_at)}." if state.expires_at else ""
    since = f"since {format_minute(state.since)} ({format_age(now - state.since)}): {effect}."
    return Notice(
        "credential",
        f"{subject} {trouble}",
        since + expiry + reason(state, reader),
        _links(state),
    )


def _links(state: CredentialState) -> tuple[tuple[str, str], ...]:
    """Lead to the site of an endpoint; a mesh has no page."""
    if state.endpoint is None:
        return ()
    site = state.endpoint.site.name
    return ((f"Look at {site}", site_url(site, MatrixQuery())),)


def reason(state: CredentialState, reader: Anyone) -> str:
    """Say which credential it is and what is wrong, to who may see that."""
    sites = [state.endpoint.site_id] if state.endpoint else []
    if not roles.may(reader, SEES if state.endpoint else SEES_SERVICES, sites):
        return ""
    return f" Credential {state.credential.name} ({state.credential.kind}): {state.sentence}."
