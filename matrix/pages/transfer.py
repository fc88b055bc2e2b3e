"""The page of one transfer: its record; before it has ended, its progress."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase

from matrix.answers.conditions import reading, words
from matrix.answers.connections import reported, uploaded
from matrix.answers.link import samples
from matrix.answers.link.directions import compared
from matrix.answers.ordering.probe_requests import ORDER, sites_of
from matrix.http.page_rights import for_whom, readers
from matrix.http.permissions import MACHINES
from matrix.pages.base import Page
from matrix.pages.parts import transfers as transfer_parts
from matrix.pages.parts.share import Share
from matrix.pages.views import showing
from matrix.plots.rates import course_figure
from matrix.query.addresses import address, link_path, link_url, site_url
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.transfers.rate_profile import stretches
from matrix.store import conditions, downtimes, network, registry, transfers
from matrix.store.data_version import DataVersion
from matrix.store.probes import progress_of
from sonar.models import ConditionPart, Probe, Transfer
from sonar.movers.catalogue import CLOCKS, SET_UP_SECONDS
from sonar.notation.windows import Window
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.results.store import is_made_up

# A transfer is compared with those of its link and class up to this long before and after it.
AROUND = timedelta(days=3, hours=12)
# Share of a rate by which it may be too low without a remark.
FREE_OF_REMARK = 0.03


@dataclass(frozen=True)
class TransferPage(Page):
    """``subject`` is the transfer, or the probe that has not become one yet."""

    template: ClassVar[str] = "transfer.html"

    subject: Transfer | Probe

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        """Raise Http404 that says how long results are kept."""
        check_names(params)
        identifier = UUID(str(path["id"]))
        ends = "source__site", "destination__site"
        probes = Probe.objects.select_related(*ends, "size_class", "mesh")
        subject = probes.filter(id=identifier).first() or transfers.by_id(identifier)
        if subject is None:
            raise Http404(
                f"No transfer has the ID {identifier}. Results are kept for "
                f"{settings.SONAR_KEEP_DAYS} days: this one may be older, or the address may be "
                "incomplete."
            )
        return cls(subject)

    def path(self) -> str:
        return address("transfer", self.subject.id)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        subject = self.subject
        source, destination = subject.source, subject.destination
        own = {
            "heading": f"Transfer from {source.name} to {destination.name}",
            "simulated": source.simulated or destination.simulated,
            "link_url": link_url(source.name, destination.name, MatrixQuery()),
            "site_urls": [site_url(end.site.name, MatrixQuery()) for end in (source, destination)],
            "missing": None,
        }
        if not isinstance(subject, Probe):
            return own | of_transfer(subject, reader)
        (snapshot,) = progress_of([subject], now)
        return own | {
            "probe": subject,
            "position": snapshot.place,
            "progress": transfer_parts.progress_words(subject),
            "share": round(100 * snapshot.share),
            "may_cancel": roles.may(reader, ORDER, sites_of([subject])),
        }


def of_transfer(transfer: Transfer, reader: Anyone) -> dict[str, Any]:
    line, profile = transfer_parts.TransferLine.of(transfer), transfer.profile
    # How its rate compares with those of its link and class around it.
    endpoints = {each.id: each for each in registry.read_places(registry.read_versions())}
    source, destination = endpoints[transfer.source_id], endpoints[transfer.destination_id]
    window = Window(transfer.started_at - AROUND, transfer.started_at + AROUND)
    results = samples.read([source, destination], window, ()).of_link(source, destination)
    rates = results.of_class(transfer.size_class_id).successes
    median = float(np.median(rates)) if rates.size else np.nan
    parts = stretches(transfer.samples)
    # What was wrong with the link of a test when it started, each with its page.
    own_parts = ConditionPart.objects.filter(
        reading.of_pairs([(transfer.source_id, transfer.destination_id)]),
        conditions.lasting_at(transfer.started_at),
        condition=OuterRef("pk"),
        size_class=transfer.size_class,
    )
    wrong = conditions.rows().filter(Exists(own_parts))
    _, ended_at = transfer.times()
    moved, first_byte, overhead = transfer.moved_bytes, transfer.first_byte_seconds, np.nan
    if first_byte is not None and transfer.seconds:
        # The share of its time that had passed before its first byte.
        overhead = first_byte / transfer.seconds
    return {
        "transfer": transfer,
        "downtimes": downtimes.of_transfer(transfer),
        "made_up": is_made_up(profile),
        "line": line,
        "ended_at": ended_at,
        "purpose": transfer_parts.purpose_words(profile.purpose),
        "streams": transfer_parts.streams_words(profile.streams, [profile.streams_used]),
        "buffer": transfer_parts.buffer_words(transfer),
        "facts": transfer_parts.facts_of(transfer, internal=roles.may(reader, MACHINES)),
        "timed": timed_words(transfer),
        "scitag": transfer_parts.scitag_words(transfer.scitag),
        "connections": reported(transfer),
        "upload": uploaded(transfer),
        "concurrent": transfer_parts.concurrent_words(transfer),
        "verified": transfer_parts.verified_words(transfer),
        "moved_share": np.nan if moved is None else moved / transfer.bytes,
        "overhead": overhead,
        "around": (len(rates), median),
        "against": compared(line.rate, median),
        "parts": parts,
        "inside": course_figure(parts),
        "why_no_picture": transfer_parts.why_no_picture(transfer, parts),
        "share": Share.of(address("api-transfer", transfer.id)),
        "conditions": [(words.sentence(each), words.url(each)) for each in wrong],
    }


def timed_words(transfer: Transfer) -> str:
    """Return which clock timed a transfer, and by how much that makes its rate too low."""
    clock, seconds = transfer.profile.clock, transfer.seconds
    words, (least, most) = CLOCKS.get(clock, ""), SET_UP_SECONDS.get(clock, (0.0, 0.0))
    if transfer.state == "done" and seconds < most / FREE_OF_REMARK:
        low = " to ".join(f"{min(100 * more / seconds, 100):.0f}" for more in (least, most))
        words += f". The duration includes the set-up of the copy: {least:g} to {most:g} s, or more"
        words += f" on busy servers. This makes the rate {low} % too low"
    return words


@for_whom(GET=readers)
def transfer(request: HttpRequest, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
    """Show a transfer; a test of the network is on the page of its link."""
    try:
        return showing(TransferPage)(request, id=id)
    except Http404:
        result = network.by_id(id)
        if result is None:
            raise
    url = link_path(result.source.name, result.destination.name)
    return HttpResponseRedirect(f"{url}#network")
