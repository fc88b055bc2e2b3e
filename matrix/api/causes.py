"""GET /api/v1/causes/: how fast each source and destination is against its peers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import grid
from matrix.answers.causes import attribution, changes, question, words
from matrix.answers.causes.attribution import ENDS, Attribution, EndEffect, LinkRest
from matrix.answers.causes.changes import ChangeCauses, NamedCause
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.matrix_formats import echo
from matrix.api.schema.causes import CAUSES
from matrix.http.compression import respond_once
from matrix.http.negotiation import CONTENT_TYPES, ENDINGS, asked_format
from matrix.http.questions import read_once
from matrix.query.matrix_query import MatrixQuery
from sonar.notation import csv_text

# So many of the links that their ends explain least; all are in matrix/?stat=residual.
MOST_LINKS = 50
EFFECT_COLUMNS = [
    *("end", "name", "site", "factor", "low", "high", "p", "partners", "component", "kind")
]
# What a comparison has behind them.
CHANGE_COLUMNS = ["list", "destination", "ok", "other_ok", "text"]


class CausesView(ApiView, one_snapshot=False):
    @CAUSES
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        (query, fit, form), version = read_once(
            request, lambda: read(request), lambda whole: grid.version(whole[0], now)
        )

        def make() -> HttpResponseBase:
            response = respond_once(
                request,
                ("causes", version, fit, form),
                CONTENT_TYPES[form],
                lambda: written(attribution.build(query, now, version, fit), form),
            )
            if form != "json":
                name = f"sonar-causes-{query.size}.{ENDINGS[form]}"
                response["Content-Disposition"] = f'inline; filename="{name}"'
            return response

        return unless_known(request, version.shown(f"{form}{fit}"), make)


def read(request: Request) -> tuple[MatrixQuery, str, str]:
    query, fit = question.read(dict(request.query_params.lists()), also=("format",))
    return query, fit, asked_format(request)


def written(causes: Attribution, form: str) -> bytes:
    return as_csv(causes) if form == "csv" else dumps(document(causes))


def document(causes: Attribution) -> dict[str, Any]:
    model, matrix, change_causes = causes.model, causes.grid, changes.build(causes)
    return {
        "query": echo(matrix) | {"fit": model.how},
        "description": matrix.query.describe(),
        "unit": matrix.unit,
        "version": matrix.version.text,
        "simulated": matrix.simulated,
        "headline": changes.headline(causes, change_causes),
        "level": number(np.exp(model.level)),
        "r2": number(model.r2),
        "r2_adjusted": number(model.r2_adjusted),
        "r2_left_out": number(model.r2_left_out),
        "scatter": number(np.exp(model.sigma)),
        "degrees_of_freedom": model.dof,
        "links_explained": model.cells,
        "components": model.components,
        "sources": [effect_record(effect) for effect in causes.ranked("source")],
        "destinations": [effect_record(effect) for effect in causes.ranked("destination")],
        "links": [link_record(link) for link in causes.links(MOST_LINKS)],
        "findings": [
            {"name": said.name, "site": said.site or None, "kind": said.kind, "text": said.sentence}
            for said in words.conclusions(causes)
        ],
        "changes": [change_record(change) for change in change_causes.named],
        "history": history_record(change_causes),
    }


def effect_record(effect: EndEffect) -> dict[str, Any]:
    numbers = {name: number(getattr(effect, name)) for name in ("factor", "low", "high", "p")}
    return {
        "name": effect.group.name,
        "site": effect.group.site,
        **numbers,
        "partners": effect.partners,
        "component": effect.component,
        "kind": effect.kind,
    }


def link_record(link: LinkRest) -> dict[str, Any]:
    ends = {end: getattr(link, end).name for end in ENDS}
    numbers = {name: number(getattr(link, name)) for name in ("rate", "expected", "factor", "p")}
    return ends | numbers | {"beyond_chance": link.beyond_chance}


def change_record(change: NamedCause) -> dict[str, Any]:
    cause = change.cause
    return {
        "kind": cause.kind,
        "source": change.source.name if change.source else None,
        "destination": change.destination.name if change.destination else None,
        **{name: number(getattr(cause, name)) for name in ("factor", "low", "high", "p")},
        "links": cause.n,
        "ok": change.ok,
        "other_ok": change.other_ok,
        "text": change.sentence,
    }


def history_record(causes: ChangeCauses) -> dict[str, int] | None:
    if causes.judged is None:
        return None
    return {"judged_links": causes.judged, "unjudged_links": causes.unjudged}


def number(value: float) -> float | None:
    """Return a number without the digits that are noise; None for NaN."""
    return None if np.isnan(value) else float(f"{value:.6g}")


def as_csv(causes: Attribution) -> bytes:
    """Write a line for each source, and then for each destination, the slowest first.

    Of a comparison, what explains it comes first, and `list` tells one from the other.
    """
    lines: list[dict[str, Any]] = [
        {"end": effect.end, "list": f"{effect.end}s"} | effect_record(effect)
        for end in ENDS
        for effect in causes.ranked(end)
    ]
    columns = EFFECT_COLUMNS
    if causes.grid.query.compare:
        lines = [*map(change_line, changes.build(causes).named), *lines]
        columns = [*EFFECT_COLUMNS, *CHANGE_COLUMNS]
    frame = pd.DataFrame(lines, columns=columns)
    for name in set(columns) & {"name", "site", "destination", "text"}:
        frame[name] = [
            csv_text.quoted(text) if isinstance(text, str) else "" for text in frame[name]
        ]
    for name in set(columns) & {"partners", "component", "ok", "other_ok"}:
        frame[name] = frame[name].astype("Int64")
    return str(frame.to_csv(index=False, lineterminator="\n")).encode()


def change_line(change: NamedCause) -> dict[str, Any]:
    record = change_record(change)
    return record | {
        "list": "changes",
        "end": record["kind"],
        "name": record["source"] or record["destination"],
        "site": change.site,
        "destination": record["destination"],
        "partners": record["links"],
        "kind": change.kind,
    }
