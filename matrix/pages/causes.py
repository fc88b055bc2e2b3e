"""The page of causes: how fast each source and destination is, and what that leaves unexplained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
from django.http import QueryDict

from matrix.answers import grid
from matrix.answers.causes import attribution, changes, question, words
from matrix.answers.causes.attribution import ENDS, OF, Attribution, EndEffect, LinkRest
from matrix.answers.short_names import short_names
from matrix.pages.base import Params, QueryPage
from matrix.pages.compare import compare_control
from matrix.pages.controls import (
    Select,
    bounds_of,
    filter_chips,
    kept,
    select,
    size_choices,
    window_choices,
)
from matrix.pages.matrix.filter_menus import filter_menu, known_values
from matrix.pages.share import Share
from matrix.query import forms
from matrix.query.addresses import address, link_url, matrix_url, site_url
from matrix.query.attributes import GROUPINGS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.statistics.estimates.two_way import FITS
from matrix.store import profiles
from matrix.store.data_version import DataVersion
from sonar.people.roles import Anyone

# So many sentences stand first; the lists below have all.
MOST_FINDINGS = 8
# So many links that are explained least.
MOST_LINKS = 15
A_DAY = timedelta(days=1)
OF_LABELS = {"median": "median rate of a link", "mean": "mean rate of a link"}


@dataclass(frozen=True)
class Whisker:
    """Where a factor and its interval stand on the scale of both lists, in percent."""

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class EffectLine:
    """What an end does, under a ``name`` without what all share."""

    effect: EndEffect
    name: str
    url: str
    whisker: Whisker | None


@dataclass(frozen=True)
class EndList:
    """The groups of one end, the slowest first."""

    end: str
    title: str
    words: str
    lines: list[EffectLine]


@dataclass(frozen=True)
class LinkLine:
    link: LinkRest
    source: str
    destination: str
    url: str
    sentence: str
    tests: int


@dataclass(frozen=True)
class CausesPage(QueryPage):
    fit: str

    template = "causes.html"
    nav = route = "causes"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = forms.with_filter_form({name: list(texts) for name, texts in params.lists()})
        return cls(*question.read(lists, also=forms.FILTER_FORM))

    def params(self) -> Params:
        return question.to_params(self.query, self.fit)

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        causes = attribution.build(self.query, now, version or self.version(now), self.fit)
        change_causes = changes.build(causes)
        known_profiles, sizes = profiles.read(), size_choices(self)
        # Of a comparison, the causes of the change are named one after the other instead.
        said = [] if self.query.compare else words.conclusions(causes)
        names = short_names(causes.grid)
        links = list(self.link_lines(causes, names))
        kinds = {*(each.kind for each in change_causes.named), *(each.kind for each in said)}
        return {
            "causes": causes,
            "query": self.query,
            "headline": changes.headline(causes, change_causes),
            "explained": words.headline(causes) if change_causes.judged else "",
            "r2": words.r2_words(causes.model),
            "meaning": words.meaning(causes.model),
            "apart": words.apart(causes.model),
            "enough": not words.too_few(causes.model),
            "fewest": FEWEST_TESTS,
            "change_causes": change_causes,
            "changes": [(each, self.of_group(each.site)) for each in change_causes.named],
            "judged": changes.judged_words(change_causes),
            "in_days": causes.grid.window.end - causes.grid.window.start > A_DAY,
            "findings": [(each, self.of_group(each.site)) for each in said],
            "more_findings": max(len(said) - MOST_FINDINGS, 0),
            "most_findings": MOST_FINDINGS,
            "look": "slower" if "slow" in kinds else "usual",
            "sides": [self.end_list(causes, end, names) for end in ENDS],
            "links": links,
            "any_sure": any(line.link.beyond_chance for line in links),
            "off_model": words.off_model(causes),
            "simulated": causes.grid.simulated,
            "sizes": sizes,
            "compare": compare_control(
                self,
                causes.grid.window,
                known_profiles,
                [choice.label for choice in sizes],
                reversible=self.query.rows == self.query.columns,
            ),
            "windows": window_choices(self),
            "bounds": bounds_of(self, causes.grid.window),
            "chips": filter_chips(self),
            "selects": self.selects(),
            "by_words": self.query.rows
            if self.query.rows == self.query.columns
            else f"{self.query.rows} and {self.query.columns}",
            "kept": kept(self, ("stat", "fit", "rows", "columns")),
            "menus": [filter_menu(self, end) for end in ("source", "destination", "either")],
            "values": known_values(causes.grid, known_profiles),
            "matrix_url": matrix_url(self.query.replace(stat=self.shown_stat())),
            "other": self.query.other_words(),
            "unfiltered": self.asking(self.query.replace(filters=())).url(),
            "longest_url": self.asking(self.query.replace(window="90d")).url(),
            "share": Share.of(self.api_url()),
        }

    def shown_stat(self) -> str:
        """Return the statistic of the matrix that shows what is left."""
        return MatrixQuery.stat if self.query.compare else "residual"

    def api_url(self) -> str:
        return self.url().replace(self.path(), address("api-causes"), 1)

    def selects(self) -> list[Select]:
        of = [] if self.query.compare else [select("stat", "of", OF, self.query.stat, OF_LABELS)]
        return [
            *of,
            select("fit", "fitted by", FITS, self.fit, question.FIT_LABELS),
            select("rows", "sources", GROUPINGS, self.query.rows),
            select("columns", "destinations", GROUPINGS, self.query.columns),
        ]

    def of_group(self, site: str) -> str:
        """Return the page of a group's site; nothing where it has none, or several."""
        return site_url(site, self.query) if site else ""

    def end_list(self, causes: Attribution, end: str, names: Mapping[str, str]) -> EndList:
        effects = causes.ranked(end)
        scale = FactorScale.of(effect for each in ENDS for effect in causes.effects[each])
        lines = [
            EffectLine(
                effect,
                names[effect.group.name],
                self.of_group(effect.group.site or ""),
                scale.whisker(effect),
            )
            for effect in effects
        ]
        unit = words.CHANGED_ELSEWHERE if self.query.compare else words.ELSEWHERE
        return EndList(end, f"As {end}", unit, lines)

    def link_lines(self, causes: Attribution, short: Mapping[str, str]) -> Iterable[LinkLine]:
        matrix, of_links = causes.grid, self.query.rows == self.query.columns == "endpoint"
        rows = {group.name: row for row, group in enumerate(matrix.sources)}
        columns = {group.name: column for column, group in enumerate(matrix.destinations)}
        short = short_names(matrix)
        for link in causes.links(MOST_LINKS):
            names = link.source.name, link.destination.name
            tests = int(matrix.cells.ok[rows[names[0]], columns[names[1]]])
            url = link_url(*names, self.query) if of_links else ""
            is_ratio = self.query.compare is not None
            sentence = words.link_sentence(link, tests, ratios=is_ratio, short=short)
            yield LinkLine(link, short[names[0]], short[names[1]], url, sentence, tests)


@dataclass(frozen=True)
class FactorScale:
    """A scale of logs of factors, as far to the left of 1 as to the right."""

    reach: float

    @classmethod
    def of(cls, effects: Iterable[EndEffect]) -> Self:
        bounds = [bound for effect in effects for bound in (effect.low, effect.high, effect.factor)]
        logs = np.abs(np.log(np.array(bounds, dtype=np.float64)))
        return cls(float(np.fmax.reduce(logs, initial=np.log(2))))

    def place(self, factor: float) -> float:
        return round(50 + 50 * float(np.log(factor)) / self.reach, 2)

    def whisker(self, effect: EndEffect) -> Whisker | None:
        if np.isnan(effect.low):
            return None
        return Whisker(*map(self.place, (effect.factor, effect.low, effect.high)))
