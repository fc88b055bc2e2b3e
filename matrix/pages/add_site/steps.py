"""How far a site is that is being added: its steps, and where each goes on."""

from collections import Counter
from typing import Any

from matrix.answers.endpoint_check import CheckReport
from matrix.query.addresses import address
from sonar.credentials import kinds, rules
from sonar.models import Credential, Endpoint, Site
from sonar.notation.windows import format_minute
from sonar.people import roles
from sonar.people.roles import Anyone

# Who adds sites, and who adds endpoints to a site: operators, and the admins of that site.
ADD_SITE, ADD_ENDPOINT = "sonar.add_site", "sonar.change_site"
# Who registers endpoints wherever they are.
OPERATE = "sonar.add_endpoint"

TITLES = {
    "site": ("Site", "name, tier, country"),
    "endpoint": ("Endpoint", "storage address"),
    "credential": ("Credential", "authentication to the storage"),
    "check": ("Check", "connection test"),
    "mesh": ("Mesh and cost", "schedule and limits"),
}


def steps_of(
    site: Site | None, endpoint: Endpoint | None, report: CheckReport | None, current: str
) -> list[dict[str, Any]]:
    """Return the five steps; the `state` of each is `done`, `now` (``current``) or `later`."""
    done, urls = done_of(site, endpoint, report), {}
    if site is not None:
        urls["site"] = address("set-up-site", site.name)
        urls["endpoint"] = address("add-endpoint", site.name)
    if site is not None and endpoint is not None:
        urls["endpoint"] = address("set-up-endpoint", site.name, endpoint.name)
        own = address("set-up", site.name, endpoint.name)
        # What the page shows only once there is a credential, or none is needed.
        after = ("check", "mesh") if "credential" in done else ()
        urls |= {name: f"{own}#{name}" for name in ("credential", *after)}
    return [
        {
            "number": number,
            "title": title,
            "state": "now" if name == current else "done" if name in done else "later",
            "lines": done.get(name) or [words],
            "url": urls.get(name, "") if name != current else "",
        }
        for number, (name, (title, words)) in enumerate(TITLES.items(), start=1)
    ]


def done_of(
    site: Site | None, endpoint: Endpoint | None, report: CheckReport | None
) -> dict[str, list[str]]:
    done = {}
    if site is not None:
        facts = [f"Tier {site.tier}", site.cloud, site.country]
        facts += [f"{site.wan_gbit_s:g} Gbit/s"] if site.wan_gbit_s else []
        done["site"] = [site.name, ", ".join(filter(None, facts))]
    if endpoint is None:
        return done
    host = rules.host_of_url(endpoint.base_url)
    done["endpoint"] = [endpoint.name, host.name if host else ""]
    if endpoint.credential is not None:
        done["credential"] = credential_lines(endpoint.credential)
    elif report is not None:
        done["credential"] = ["none (open storage)"]
    if report is not None and report.state == "done" and not (report.changed or report.failed):
        counts: Counter[str] = Counter(step.state for step in report.steps)
        warnings = "warnings" if counts["warning"] > 1 else "warning"
        words = {"fine": "passed", "warning": warnings, "failed": "failed"}
        ended = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
        done["check"] = [", ".join(ended)]
    if endpoint.enabled:
        done["mesh"] = ["enabled"]
    return done


def credential_lines(credential: Credential) -> list[str]:
    """Say which it is; of an uploaded one when that was, and until when it is valid."""
    if credential.uploaded_at is None:
        return [credential.name, "file on the workers"]
    kept = getattr(credential, "uploaded_secret", None)
    if kept is None:
        return [credential.name, "secret removed"]
    kind = credential.kind
    if kind in kinds.names():
        kind = {kinds.FILE: "token", kinds.X509: "proxy"}.get(kind, kind)
    lines = [f"{kind.capitalize()}, uploaded {format_minute(credential.uploaded_at)}"]
    return lines + ([f"valid until {format_minute(kept.expires_at)}"] if kept.expires_at else [])


def drafts(reader: Anyone, site: Site | None = None) -> list[dict[str, str]]:
    """Return the drafts of all sites that a reader looks after, or of one. Two SQL queries."""
    sites = sites_of(reader)
    if not roles.may_somewhere(reader, ADD_ENDPOINT):
        return []
    rows = Endpoint.objects.drafts().select_related("site")
    empty = Site.objects.filter(endpoints=None)
    if site is not None:
        rows, empty = rows.filter(site=site), empty.filter(pk=site.pk)
    if sites is not None:
        rows, empty = rows.filter(site__in=sites), empty.filter(pk__in=sites)
    words = "is not enabled yet"
    waiting = [
        {"name": row.name, "words": words, "url": address("set-up", row.site.name, row.name)}
        for row in rows
    ]
    words = "has no endpoint yet"
    return waiting + [
        {"name": row.name, "words": words, "url": address("add-endpoint", row.name)}
        for row in empty
    ]


def sites_of(reader: Anyone) -> frozenset[int] | None:
    """Return the sites that an account looks after; None for all of them."""
    return None if roles.may(reader, OPERATE) else roles.sites_of(reader)
