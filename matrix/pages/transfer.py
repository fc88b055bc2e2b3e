"""The page of one transfer: all that is kept of it; before it has ended, how far it is."""

from collections.abc import Iterator
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
from matrix.pages.parts.share import Share
from matrix.pages.parts.transfers import (
    TransferLine,
    beside_words,
    buffer_words,
    facts_of,
    progress_words,
    scitag_words,
    streams_words,
    verified_words,
    why_no_picture,
)
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
from sonar.notation.units import MB
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
        check_names(params)
        return cls(transfer_or_probe(UUID(str(path["id"]))))

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
        if isinstance(subject, Probe):
            return own | of_probe(subject, now, reader)
        return own | of_transfer(subject, reader) | {"conditions": list(conditions_of(subject))}


def transfer_or_probe(identifier: UUID) -> Transfer | Probe:
    """Return what has this id; raise Http404 that says how long results are kept."""
    probes = Probe.objects.select_related("source__site", "destination__site", "size_class", "mesh")
    subject = probes.filter(id=identifier).first() or transfers.by_id(identifier)
    if subject is None:
        raise Http404(
            f"No transfer has the id {identifier}. Results are kept for {settings.SONAR_KEEP_DAYS} "
            "days: it may be older than that, or the address may be cut off."
        )
    return subject


def of_probe(probe: Probe, now: datetime, reader: Anyone) -> dict[str, Any]:
    (snapshot,) = progress_of([probe], now)
    return {
        "probe": probe,
        "position": snapshot.place,
        "progress": progress_words(probe),
        "share": round(100 * snapshot.share),
        "may_cancel": roles.may(reader, ORDER, sites_of([probe])),
    }


def conditions_of(transfer: Transfer) -> Iterator[tuple[str, str]]:
    """Yield what was wrong with the link of a test when it started, each with its page.

    One SQL query.
    """
    of_link = reading.of_pairs([(transfer.source_id, transfer.destination_id)])
    lasting = conditions.lasting_at(transfer.started_at)
    parts = ConditionPart.objects.filter(
        of_link, lasting, condition=OuterRef("pk"), size_class=transfer.size_class
    )
    for each in conditions.rows().filter(Exists(parts)):
        yield words.sentence(each), words.url(each)


def of_transfer(transfer: Transfer, reader: Anyone) -> dict[str, Any]:
    line = TransferLine.of(transfer)
    around = around_of(transfer)
    parts = stretches(transfer.samples)
    _, ended_at = transfer.times()
    moved, first_byte, overhead = transfer.moved_bytes, transfer.first_byte_seconds, np.nan
    if first_byte is not None and transfer.seconds:
        # The share of its time that had passed before its first byte.
        overhead = first_byte / transfer.seconds
    return {
        "transfer": transfer,
        "downtimes": downtimes.of_transfer(transfer),
        "made_up": is_made_up(transfer.profile),
        "line": line,
        "ended_at": ended_at,
        "streams": streams_words(transfer.profile.streams, [transfer.profile.streams_used]),
        "buffer": buffer_words(transfer),
        "facts": facts_of(transfer, internal=roles.may(reader, MACHINES)),
        "timed": timed_words(transfer),
        "scitag": scitag_words(transfer.scitag),
        "connections": reported(transfer),
        "upload": uploaded(transfer),
        "beside": beside_words(transfer),
        "verified": verified_words(transfer),
        "moved_share": np.nan if moved is None else moved / transfer.bytes,
        "overhead": overhead,
        "around": around,
        "against": compared(line.rate, around[1]),
        "parts": parts,
        "inside": course_figure(parts),
        "why_no_picture": why_no_picture(transfer, parts),
        "share": Share.of(address("api-transfer", transfer.id)),
    }


def timed_words(transfer: Transfer) -> str:
    """Return which clock timed a transfer, and by how much that makes its rate too low."""
    clock, seconds = transfer.profile.clock, transfer.seconds
    words, (least, most) = CLOCKS.get(clock, ""), SET_UP_SECONDS.get(clock, (0.0, 0.0))
    if transfer.state == "done" and seconds < most / FREE_OF_REMARK:
        low = " to ".join(f"{min(100 * more / seconds, 100):.0f}" for more in (least, most))
        words += f". It includes the set-up of the copy, {least:g} to {most:g} s and more where"
        words += f" servers are busy, which makes the rate {low} % too low"
    return words


def around_of(transfer: Transfer) -> tuple[int, float]:
    """Return how many transfers of the link and class around one came through, and their median.

    Two SQL queries, or one if the registry is kept.
    """
    endpoints = {
        endpoint.id: endpoint for endpoint in registry.read_places(registry.read_versions())
    }
    source, destination = endpoints[transfer.source_id], endpoints[transfer.destination_id]
    window = Window(transfer.started_at - AROUND, transfer.started_at + AROUND)
    results = samples.read([source, destination], window, ()).of_link(source, destination)
    results = results.of_class(transfer.size_class_id)
    rates = results.rates[results.ok].astype(np.float64)
    return len(rates), float(np.median(rates)) / MB if rates.size else np.nan


show = showing(TransferPage)


@for_whom(GET=readers)
def transfer(request: HttpRequest, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
    """Who followed a test until its end finds it on the page of its link."""
    try:
        return show(request, id=id)
    except Http404:
        result = network.by_id(id)
        if result is None:
            raise
    url = link_path(result.source.name, result.destination.name)
    return HttpResponseRedirect(f"{url}#network")
