"""The page of one transfer: all that is kept of it; before it has ended, how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

import numpy as np
from django.conf import settings
from django.http import Http404, QueryDict

from matrix.answers.link import samples
from matrix.answers.link.directions import compared
from matrix.answers.probe_request import ORDER, sites_of
from matrix.pages.base import Page
from matrix.pages.progress import Attempt, progress_words
from matrix.pages.share import Share
from matrix.pages.transfer.facts import beside_words, streams_words, verified_words, why_no_picture
from matrix.plots import inside
from matrix.query.addresses import address, link_url, site_url
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry, transfers
from matrix.store.data_version import DataVersion
from matrix.store.probes import under_way
from sonar import roles
from sonar.models import Probe, Transfer
from sonar.roles import Anyone
from sonar.units import MB
from sonar.windows import Window

# A transfer is compared with those of its link and class up to this long before and after it.
AROUND = timedelta(days=3, hours=12)


@dataclass(frozen=True)
class Around:
    """The transfers of the link and class around one: how many came through, their median."""

    count: int
    median: float


@dataclass(frozen=True)
class TransferPage(Page):
    """``known`` is the transfer, or the probe that has not become one yet."""

    template: ClassVar[str] = "transfer.html"

    known: Transfer | Probe

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        if params:
            sentence = "This page has no parameters: leave out what follows the question mark."
            raise BadQueryError({"parameters": [sentence]})
        return cls(transfer_or_probe(UUID(str(path["id"]))))

    def path(self) -> str:
        return address("transfer", self.known.id)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        known = self.known
        source, destination = known.source, known.destination
        own = {
            "heading": f"Transfer from {source.name} to {destination.name}",
            "simulated": source.simulated or destination.simulated,
            "link_url": link_url(source.name, destination.name, MatrixQuery()),
            "site_urls": [site_url(end.site.name, MatrixQuery()) for end in (source, destination)],
            "missing": None,
        }
        shown = of_probe(known, now, reader) if isinstance(known, Probe) else of_transfer(known)
        return own | shown


def transfer_or_probe(sought: UUID) -> Transfer | Probe:
    """Return what has this id; raise Http404 that says how long results are kept."""
    # First the probe: should it end in between, it is found as a transfer.
    probes = Probe.objects.select_related("source__site", "destination__site", "size_class", "mesh")
    found = probes.filter(id=sought).first() or transfers.known(sought)
    if found is None:
        raise Http404(
            f"No transfer has the id {sought}. Results are kept for {settings.SONAR_KEEP_DAYS} "
            "days: it may have been an older one, or the address was cut off."
        )
    return found


def of_probe(probe: Probe, now: datetime, reader: Anyone) -> dict[str, Any]:
    (test,) = under_way([probe], now)
    begun = probe.state == Probe.State.RUNNING
    return {
        "probe": probe,
        "place": test.place,
        "progress": progress_words(probe),
        "share": round(100 * test.share),
        "may_cancel": not begun and roles.may(reader, ORDER, sites_of([probe])),
    }


def of_transfer(transfer: Transfer) -> dict[str, Any]:
    attempt = Attempt.of(transfer)
    around = around_of(transfer)
    parts = inside.stretches(transfer.samples)
    return {
        "transfer": transfer,
        "attempt": attempt,
        "ended_at": ended_at(transfer),
        "streams": streams_words(transfer.profile.streams, [transfer.profile.streams_used]),
        "beside": beside_words(transfer),
        "verified": verified_words(transfer),
        "moved_share": moved_share(transfer),
        "overhead": overhead_of(transfer),
        "around": around,
        "against": compared(attempt.rate, around.median),
        "parts": parts,
        "inside": inside.figure(parts),
        "why_no_picture": why_no_picture(transfer, parts),
        "share": Share.of(address("api-transfer", transfer.id)),
    }


def ended_at(transfer: Transfer) -> datetime:
    """Return when the transfer itself ended: what prepared it came before its seconds."""
    seconds = (transfer.prepare_seconds or 0.0) + transfer.seconds
    return transfer.started_at + timedelta(seconds=seconds)


def moved_share(transfer: Transfer) -> float:
    return np.nan if transfer.moved_bytes is None else transfer.moved_bytes / transfer.bytes


def overhead_of(transfer: Transfer) -> float:
    """Return the share of its time that had passed before its first byte; NaN if not known."""
    first = transfer.first_byte_seconds
    return np.nan if first is None or not transfer.seconds else first / transfer.seconds


def around_of(transfer: Transfer) -> Around:
    """Compare with what the link did around it. Two SQL queries, or one if places are known."""
    ends = [transfer.source_id, transfer.destination_id]
    places = {place.id: place for place in registry.read_places(registry.read_versions())}
    source, destination = (places[end] for end in ends)
    window = Window(transfer.started_at - AROUND, transfer.started_at + AROUND)
    found = samples.read([source, destination], window, ()).of_link(source, destination)
    some = found.of_class(transfer.size_class_id)
    rates = some.rates[some.ok].astype(np.float64)
    return Around(len(rates), float(np.median(rates)) / MB if rates.size else np.nan)
