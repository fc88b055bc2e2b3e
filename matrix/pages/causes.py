"""The page of causes: how fast each source and destination is, and what that leaves unexplained."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
from django.http import QueryDict

from matrix.answers.causes import attribution, words
from matrix.answers.causes import change_causes as changes
from matrix.answers.causes.attribution import ENDS, OF, Attribution, EndEffect
from matrix.answers.conditions import reading
from matrix.answers.matrix import grid
from matrix.answers.words.phrases import sentences
from matrix.pages.base import Params, QueryPage
from matrix.pages.parts.conditions import conditions_part
from matrix.pages.parts.controls import compare_control, kept, question_controls, select
from matrix.pages.parts.matrix_address import filter_menu, known_values
from matrix.pages.parts.share import Share
from matrix.query import forms
from matrix.query.addresses import address, link_url, matrix_url, site_url
from matrix.query.attributes import GROUPINGS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.statistics.estimates.two_way import FITS
from matrix.store import profiles, registry
from matrix.store.data_version import DataVersion
from sonar.people.roles import Anyone

# So many sentences stand first; the lists below have all.
MOST_FINDINGS = 8
# So many links that are explained least.
MOST_LINKS = 15
A_DAY = timedelta(days=1)
OF_LABELS = {"median": "median rate of a link", "mean": "mean rate of a link"}


@dataclass(frozen=True)
class CausesPage(QueryPage):
    fit: str

    template = "causes.html"
    route = "causes"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = forms.with_filter_form(params)
        return cls(*attribution.read_question(lists, also=forms.FILTER_FORM))

    def params(self) -> Params:
        return attribution.to_params(self.query, self.fit)

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        causes = attribution.build(self.query, now, version or self.version(now), self.fit)
        change_causes = changes.build(causes)
        query, square = self.query, self.query.rows == self.query.columns
        known_profiles = profiles.read()
        controls = question_controls(self, causes.grid.window)
        sizes = [choice.label for choice in controls["sizes"]]
        # Of a comparison, the causes of the change are named one after the other instead.
        said = [] if self.query.compare else words.conclusions(causes)
        names = causes.grid.short_names()
        links = list(self.link_lines(causes, names))
        window, places = causes.grid.window, registry.read_places(causes.grid.version)
        judgement = reading.read_open(
            reading.state_moment(window, now), reading.members_q(query.filters, places)
        )
        changed = conditions_part(judgement, query.size, names)
        r2, meaning = words.r2_and_meaning(causes.model)
        has_slowed = any(each.kind == "slow" for each in change_causes.named)
        return {
            "causes": causes,
            **controls,
            "headline": sentences(
                changed["changed_words"], changes.headline(causes, change_causes)
            ),
            "explained": words.headline(causes) if change_causes.judged else "",
            "r2": r2,
            "meaning": meaning,
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
            **changed,
            "look": changed["changed_kind"] or ("slower" if has_slowed else "usual"),
            "sides": [self.end_list(causes, end, names) for end in ENDS],
            "links": links,
            "any_significant": any(line["link"].significant for line in links),
            "off_model": words.off_model(causes),
            "simulated": causes.grid.simulated,
            "compare": compare_control(
                self, causes.grid.window, known_profiles, sizes, reversible=square
            ),
            "selects": [
                *([] if query.compare else [select("stat", "of", OF, query.stat, OF_LABELS)]),
                select("fit", "fitted by", FITS, self.fit, attribution.FIT_LABELS),
                select("rows", "sources", GROUPINGS, query.rows),
                select("columns", "destinations", GROUPINGS, query.columns),
            ],
            "by_words": query.rows if square else f"{query.rows} and {query.columns}",
            "kept": kept(self, ("stat", "fit", "rows", "columns")),
            "menus": [filter_menu(self, end) for end in ("source", "destination", "either")],
            "values": known_values(causes.grid, known_profiles),
            # It shows what is left.
            "matrix_url": matrix_url(
                query.replace(stat=MatrixQuery.stat if query.compare else "vs_predicted")
            ),
            "other": self.query.other_words(),
            "unfiltered": self.asking(self.query.replace(filters=())).url(),
            "longest_url": self.asking(self.query.replace(window="90d")).url(),
            "share": Share.of(self.url().replace(self.path(), address("api-causes"), 1)),
        }

    def of_group(self, site: str) -> str:
        """Return the page of a group's site; nothing where it has none, or several."""
        return site_url(site, self.query) if site else ""

    def end_list(self, causes: Attribution, end: str, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the groups of one end, the slowest first.

        Each with its short name, the page of its site, and the places of its factor and interval
        in percent of a scale of logs, with 1 in its middle: one for both lists.
        """
        bounds = [
            bound
            for each in ENDS
            for effect in causes.effects[each]
            for bound in (effect.low, effect.high, effect.factor)
        ]
        logs = np.abs(np.log(np.array(bounds, dtype=np.float64)))
        reach = float(np.fmax.reduce(logs, initial=np.log(2)))

        def whisker(effect: EndEffect) -> dict[str, float] | None:
            if np.isnan(effect.low):
                return None
            places = {"at": effect.factor, "low": effect.low, "high": effect.high}
            return {
                name: round(50 + 50 * float(np.log(factor)) / reach, 2)
                for name, factor in places.items()
            }

        return {
            "end": end,
            "words": words.CHANGED_ELSEWHERE if self.query.compare else words.ELSEWHERE,
            "lines": [
                (
                    effect,
                    names[effect.group.name],
                    self.of_group(effect.group.site or ""),
                    whisker(effect),
                )
                for effect in causes.ranked(end)
            ],
        }

    def link_lines(self, causes: Attribution, short: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        of_links = self.query.rows == self.query.columns == "endpoint"
        is_ratio = self.query.compare is not None
        for link in causes.links(MOST_LINKS):
            source, destination = link.source.name, link.destination.name
            yield {
                "link": link,
                "source": short[source],
                "destination": short[destination],
                "url": link_url(source, destination, self.query) if of_links else "",
                "sentence": words.link_sentence(link, ratios=is_ratio, short=short),
                "tests": link.tests,
            }
