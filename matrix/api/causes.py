"""GET /api/v1/causes/: the rate of each source and destination relative to its peers."""

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.causes import attribution, words
from matrix.answers.causes import change_causes as changes
from matrix.answers.causes.attribution import ENDS, KINDS, OF, Attribution
from matrix.answers.matrix import grid
from matrix.api.base import ApiView, unless_known
from matrix.api.encoding import csv_of, dumps
from matrix.api.matrix import MatrixEcho
from matrix.api.matrix_formats import echo
from matrix.api.rendering import file_name, named
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import QUERY, STAT, choice
from matrix.api.schema.records import As, At, Digits, Json, Name, NameOrNull, Text, record
from matrix.api.schema.schemas import Answer, word_of
from matrix.http.compression import respond_once
from matrix.http.negotiation import CONTENT_TYPES, TABLE, asked_format
from matrix.http.questions import read_once
from matrix.query.catalogue import UNITS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.estimates.two_way import FITS
from sonar.notation import csv_text


class CausesEcho(MatrixEcho):
    """The query parameters for an attribution, including default values.

    Each filter is a list of values, under the name of its parameter.
    """

    fit: str


class CauseEffect(Answer):
    """The rate of a source or destination relative to its peers."""

    name: Annotated[str, At("group.name")]
    site: Annotated[str | None, At("group.site")]
    factor: Digits
    low: Digits
    high: Digits
    p: Digits
    partners: int
    component: int
    kind: Annotated[str, word_of(KINDS)]


class UnexplainedLink(Answer):
    """A cell whose rate differs from the rate predicted for its source and destination."""

    source: Name
    destination: Name
    rate: Digits
    predicted: Digits
    factor: Digits
    p: Digits
    significant: bool


class CauseFinding(Answer):
    """A source or destination that is significantly slow or fast."""

    name: str
    site: Text
    kind: Literal["slow", "fast"]
    text: Annotated[str, At("sentence")]


class ChangeCause(Answer):
    """A cause of the difference between the two sides of a comparison.

    The cause is a source, a destination, an endpoint in both roles, a site or a link.
    With `compare=month`, only causes of slower rates are listed.
    """

    scope: Annotated[
        Literal["source", "destination", "endpoint", "site", "link"],
        At("cause.kind"),
        As(changes.scope_of),
    ]
    source: NameOrNull
    destination: NameOrNull
    factor: Annotated[Digits, At("cause.factor")]
    low: Annotated[Digits, At("cause.low")]
    high: Annotated[Digits, At("cause.high")]
    p: Annotated[Digits, At("cause.p")]
    links: Annotated[int, At("cause.n")]
    ok: int
    other_ok: int
    text: Annotated[str, At("sentence")]


class OwnHistoryCount(Answer):
    """Number of links with and without enough history for `compare=month`."""

    judged_links: Annotated[int, At("judged")]
    unjudged_links: Annotated[int, At("unjudged")]


class Causes(Answer):
    """The fitted model `log rate = level + source + destination + residual`, and its findings."""

    query: CausesEcho
    description: str
    unit: Annotated[str, word_of(UNITS)]
    version: str
    simulated: bool
    headline: str
    level: Digits
    r2: Digits
    r2_adjusted: Digits
    r2_left_out: Digits
    scatter: Digits
    degrees_of_freedom: Annotated[int, At("dof")]
    links_explained: Annotated[int, At("cells")]
    components: int
    sources: list[CauseEffect]
    destinations: list[CauseEffect]
    links: list[UnexplainedLink]
    findings: list[CauseFinding]
    changes: list[ChangeCause]
    history: OwnHistoryCount | None


# The links with the largest deviations; all are in matrix/?stat=vs_predicted.
MOST_LINKS = 50


class CausesView(ApiView, one_snapshot=False):
    @described(
        "Attribute rate differences to sources and destinations",
        answer=Causes,
        parameters=[
            *(parameter for parameter in QUERY if parameter is not STAT),
            choice(
                "stat",
                OF,
                "Cell statistic that the model is fitted to. Ignored with `compare`.",
                OF[0],
            ),
            choice(
                "fit",
                FITS,
                "Fitting method. `means`: least squares. `polish`: median polish, which "
                "tolerates outliers.",
                FITS[0],
            ),
        ],
        formats=TABLE,
        tag="results",
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Returns how fast each source and destination is relative to its peers.

        The rates of the matrix are explained by a factor for each source and each destination.
        The response also lists links that deviate from this model. With `compare`, the response
        lists the causes of the difference between the two sides of the comparison. The CSV response
        has one line for each source and one for each destination.
        """
        now = timezone.now()

        def read() -> tuple[MatrixQuery, str, str]:
            params = dict(request.query_params.lists())
            query, fit = attribution.read_question(params, also=("format",))
            return query, fit, asked_format(request)

        (query, fit, form), version = read_once(
            request, read, lambda whole: grid.version(whole[0], now)
        )
        write = as_csv if form == "csv" else as_json

        def make() -> HttpResponseBase:
            response = respond_once(
                request,
                ("causes", version, fit, form),
                CONTENT_TYPES[form],
                lambda: write(attribution.build(query, now, version, fit)),
            )
            if form == "json":
                return response
            name = file_name("causes", query=query, window=query.window_at(now))
            return named(response, form, name)

        return unless_known(request, version.shown(f"{form}{fit}"), make)


def as_json(causes: Attribution) -> bytes:
    model, matrix, change_causes = causes.model, causes.grid, changes.build(causes)
    document = record(
        Causes,
        model,
        query=echo(matrix) | {"fit": model.how},
        description=matrix.query.describe(),
        unit=matrix.unit,
        version=matrix.version.text,
        simulated=matrix.simulated,
        headline=changes.headline(causes, change_causes),
        level=np.exp(model.level),
        scatter=np.exp(model.sigma),
        sources=causes.ranked("source"),
        destinations=causes.ranked("destination"),
        links=causes.links(MOST_LINKS),
        findings=words.conclusions(causes),
        changes=change_causes.named,
        history=None if change_causes.judged is None else change_causes,
    )
    return dumps(document)


def as_csv(causes: Attribution) -> bytes:
    """Write a line for each source, and then for each destination, the slowest first.

    While comparing, the causes of the change come first; `list` tells the lists apart.
    """
    lines: list[Json] = [
        {"end": effect.end, "list": f"{effect.end}s"} | record(CauseEffect, effect)
        for end in ENDS
        for effect in causes.ranked(end)
    ]
    columns = ["end", *CauseEffect.model_fields]
    if causes.grid.query.compare:
        named = [(each, record(ChangeCause, each)) for each in changes.build(causes).named]
        of_changes = [
            cause
            | {
                "list": "changes",
                "end": cause["scope"],
                "name": cause["source"] or cause["destination"],
                "site": change.site,
                "partners": cause["links"],
                "kind": change.kind,
            }
            for change, cause in named
        ]
        lines = [*of_changes, *lines]
        columns += ["list", "destination", "ok", "other_ok", "text"]
    frame = pd.DataFrame(lines, columns=columns)
    for name in set(columns) & {"name", "site", "destination", "text"}:
        frame[name] = [
            csv_text.quoted(text) if isinstance(text, str) else "" for text in frame[name]
        ]
    for name in set(columns) & {"partners", "component", "ok", "other_ok"}:
        frame[name] = frame[name].astype("Int64")
    return csv_of(frame)
