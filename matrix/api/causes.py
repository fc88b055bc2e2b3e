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
    fit: str


class CauseEffect(Answer):
    """A source or destination relative to its peers.

    `factor` is 1 for one that is as fast as its peers with the same partners; `low` and `high` are
    its 95 % interval. `kind` is slow or fast if it differs significantly and by at least a factor
    of 1.5. Factors are comparable only within one `component`, whose parts results connect.
    """

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
    """A link: its rate, the rate that its source and destination explain, and their ratio.

    Rates are in `unit`. `significant` is judged among all links together.
    """

    source: Name
    destination: Name
    rate: Digits
    predicted: Digits
    factor: Digits
    p: Digits
    significant: bool


class CauseFinding(Answer):
    """A source or destination that is slow or fast, as a sentence with value, interval and n."""

    name: str
    site: Text
    kind: Literal["slow", "fast"]
    text: Annotated[str, At("sentence")]


class ChangeCause(Answer):
    """A source, destination, endpoint in both roles, site or link that explains a comparison.

    With `compare=month`, it is slower than in the 30 days before. `ok` and `other_ok` count the
    successful transfers on the two sides of the comparison.
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
    """Number of links with enough days of their own for `compare=month`, and of the others."""

    judged_links: Annotated[int, At("judged")]
    unjudged_links: Annotated[int, At("unjudged")]


class Causes(Answer):
    """The model `log rate = level + source + destination + rest`, and its findings.

    `level` is the typical rate, `r2` the share of the differences between links that sources and
    destinations explain, and `r2_left_out` that of links left out of the fit.
    """

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
        "How much of a matrix its sources and destinations explain",
        answer=Causes,
        parameters=[
            *(parameter for parameter in QUERY if parameter is not STAT),
            choice("stat", OF, "Statistic of each cell; not used while comparing.", OF[0]),
            choice(
                "fit",
                FITS,
                "Fit by least squares (means) or by median polish, which tolerates outliers.",
                FITS[0],
            ),
        ],
        formats=TABLE,
        tag="results",
    )
    def get(self, request: Request) -> HttpResponseBase:
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
