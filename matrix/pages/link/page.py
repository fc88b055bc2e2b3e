"""The link page: one link over time, in every size class and against its reverse."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.utils.text import capfirst

from matrix.answers import other_origins
from matrix.answers.commissioning import records
from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.diagnosis import link_diagnosis
from matrix.answers.incidents.link_targets import LinkTargets
from matrix.answers.link import report
from matrix.answers.link.report import LinkReport, Question
from matrix.answers.link.series import check_length
from matrix.answers.link.verdict import Verdict, verdict_of
from matrix.answers.matrix import mixed_ways
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import where_at
from matrix.http.permissions import MACHINES
from matrix.pages.base import Params, QueryPage
from matrix.pages.link import figures
from matrix.pages.ordered_tests import LinkProbesPage, LinkSweepsPage
from matrix.pages.parts import controls
from matrix.pages.parts.controls import resized
from matrix.pages.parts.events import EventsPart
from matrix.pages.parts.incidents import IncidentsOf, of_link
from matrix.pages.parts.links import ends_among, registered
from matrix.pages.parts.notes import COMPARE_SINCE, note_lines, since_url
from matrix.pages.parts.notices import about_others, mixed, with_filter
from matrix.pages.parts.share import ChatCard, Share
from matrix.pages.parts.time_strip import strip_for
from matrix.pages.parts.transfers import TransferLine, inside_part, profile_words, progress_words
from matrix.plots.rates import course_figure
from matrix.query.addresses import about_link, address, link_path, link_url, matrix_url, site_url
from matrix.query.attributes import NONE_CONCURRENT
from matrix.query.filters import SWEEPS, Filter, alternatives, on_profiles, words_of
from matrix.query.forms import DEFAULT_SIZE, BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo, pauses_of
from matrix.statistics.transfers.rate_profile import stretches
from matrix.store import downtimes, notes, profiles
from matrix.store.data_version import DataVersion
from matrix.store.keyset import Cursor
from matrix.store.profiles import ProfileChoices
from matrix.store.transfers import data_servers
from sonar.alerting import decisions
from sonar.models import Transfer
from sonar.models.fields import end_words
from sonar.notation.units import format_age
from sonar.notation.windows import format_minute, format_window
from sonar.people import roles
from sonar.people.roles import Anyone

# Its own parameters, beside those of its question.
OWN = ("reverse", "show", "before")
# How many of the newest results, and of the most frequent failures, the overview has.
LATEST, TOP_FAILURES = 10, 3
# Verdicts that say whose it is, and those beside which no rate is worth a word.
FAILS = ("failing", "failed")
NOT_COMPARED = (*FAILS, "down", "untested")


@dataclass(frozen=True)
class LinkPage(QueryPage):
    """The size class of the query is drawn, the others are tiles beside it.

    ``reverse`` draws the other direction too; ``only`` lists no other class either. ``before`` is
    where the list of results goes on.
    """

    template: ClassVar[str] = "link.html"

    source: EndpointInfo
    destination: EndpointInfo
    reverse: bool = False
    only: bool = False
    before: Cursor | None = None
    # What lists call source and destination, among all endpoints.
    short: tuple[str, str] = ("", "")

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        places = registered()
        ends = ends_among(places, path["source"], path["destination"])
        query = MatrixQuery.from_params(params, also=OWN)
        errors = {
            name: [f"{name} “{params[name]}” is not known: use {allowed}, or leave it out."]
            for name, allowed in (("reverse", "1"), ("show", "one"))
            if params.get(name) not in (None, "", allowed)
        }
        before = None
        try:
            if text := str(params.get("before", "")):
                before = Cursor.parse(text)
        except ValueError:
            errors["before"] = [
                f"“before” is “{text[:80]}”, which is not a position in the list of results: use "
                "the link “Earlier results”."
            ]
        if errors:
            raise BadQueryError(errors)
        check_length(query)
        names = short_names_of(places)
        short = names[ends[0].name], names[ends[1].name]
        reverse, only = (params.get(name) or "" for name in ("reverse", "show"))
        return cls(about_link(query), *ends, bool(reverse), bool(only), before, short)

    def path(self) -> str:
        return link_path(self.source.name, self.destination.name)

    def own_params(self) -> Params:
        own = {
            "show": "one" if self.only else "",
            "reverse": "1" if self.draws_reverse else "",
            "before": str(self.before or ""),
        }
        return {name: [text] for name, text in own.items() if text}

    @property
    def draws_reverse(self) -> bool:
        """Say whether the reverse direction is drawn; a comparison is drawn in its place."""
        return self.reverse and self.query.compare is None

    def asking(self, query: MatrixQuery) -> Self:
        """Return the first page of results of another question."""
        return replace(self, query=query, before=None)

    def url_of(self, query: MatrixQuery) -> str:
        return self.asking(query).url()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        query, there, back = self.query, self.source.name, self.destination.name
        question = Question(self.source, self.destination, query, self.only, self.before)
        answer = report.answer(question, now)
        notes_on_link = notes.on_link(there, back, answer.window, reader)
        ends = {"source": there, "destination": back}
        of_ends = [Filter(f"{end}_endpoint", name) for end, name in ends.items()]
        sweeps = LinkSweepsPage(self.source, self.destination)
        newest = sweeps.newest(now)
        profile_choices = profiles.read()
        network = figures.network_part(answer.network, answer.question.ends)
        internal = roles.may(reader, MACHINES)
        diagnosis = link_diagnosis.diagnosis_of_report(answer, newest, now, names_machines=internal)
        said = verdict_of(answer.link_now())
        fails = said.kind in FAILS
        verdict = figures.verdict_alone(network) or self.verdict(answer, said)
        simulated = self.source.simulated or self.destination.simulated
        tests = LinkProbesPage(self.source, self.destination)
        both = [direction for part in answer.classes for direction in (part.there, part.back)]
        # The call of the API that has all results of this view.
        results = query.replace(size=DEFAULT_SIZE, compare=None).url(
            address("api-transfers"),
            **({"size": query.size} if self.only else {}),
            source_endpoint=there,
            destination_endpoint=back,
        )
        sizes = [part.size for part in answer.classes]
        sites = dict.fromkeys([self.source.site, self.destination.site])
        of_either = [
            Filter(f"{end}_endpoint", name) for end in ends for name in sorted({there, back})
        ]
        both_directions = query.replace(filters=(*of_either, *query.filters))
        # Either direction has a test, or a usual rate.
        has_numbers = any(direction.tests or direction.usual_count for direction in both)
        return {
            "card": ChatCard.of(
                self,
                address("link-preview", there, back),
                f"From {there} to {back}, {query.size} files",
                verdict["headline"],
                simulated=simulated,
            ),
            "answer": answer,
            "heading": f"From {there} to {back}",
            # The window and the filters.
            "sentence": capfirst(
                ", ".join([query.window_words(), *map(words_of, alternatives(query.filters))])
            ),
            "window_times": format_window(answer.window),
            "simulated": simulated,
            "controls": {
                "sizes": controls.size_choices(self, sizes),
                "windows": controls.window_choices(self),
                "bounds": controls.bounds_of(self, answer.window),
                "chips": controls.filter_chips(self),
                "compare": controls.compare_control(self, answer.window, profile_choices, sizes),
                "directions": [
                    controls.Choice(text, replace(self, reverse=both).url(), self.reverse == both)
                    for text, both in (("this direction", False), ("both directions", True))
                    if not query.compare
                ],
            },
            "verdict": verdict,
            "fault": diagnosis.fault if fails else None,
            "against_others": None if said.kind in NOT_COMPARED else diagnosis.against_others,
            "diagnosis": diagnosis,
            "findings": diagnosis.beside_failing if fails else diagnosis.diagnoses,
            "comparison": figures.comparison_part(self, answer),
            "by_size": figures.size_rows(answer, lambda size: self.url_of(resized(query, size))),
            "short": self.short,
            "reverse_url": replace(
                self, source=self.destination, destination=self.source, before=None
            ).url(),
            "elsewhere": [
                ("Reverse direction", link_url(back, there, query)),
                *((f"Site {site}", site_url(site, query)) for site in sites),
                ("This link in the matrix", matrix_url(both_directions)),
            ],
            # A dash stands for it, with its reason.
            "missing": None,
            "directions": figures.directions_of(answer) if has_numbers else [],
            "quantiles": [heading for heading, _ in figures.QUANTILE_COLUMNS],
            "strip": strip_for(self, answer.window, now, of_ends, single=True),
            "share": Share.of(results).drawing(query.url(address("api-series"), **ends)),
            "series_urls": [
                (line.size, resized(query, line.size).url(address("api-series"), **ends))
                for line in answer.classes
            ],
            **self.results(answer, profile_choices),
            # Each with the address of its results alone.
            "data_servers": [
                (server, self.url_of(query.replace(filters=filters)))
                for server in (data_servers(answer.rows) if internal else [])
                for filters in [(Filter("data_server", server.data_server),)]
            ],
            "notes": note_lines(self, notes_on_link, now),
            "may_note": roles.may(reader, notes.WRITE, notes.sites_of(there, back)),
            "drawn": figures.drawn(answer, notes_on_link, reverse=self.draws_reverse),
            "events": EventsPart.of(answer, answer.question.ends, now),
            "incidents_of": IncidentsOf.read(
                of_link(self.source.id, self.destination.id), now, reader
            ),
            "network": network,
            "commissioning": records.of_link(self.source, self.destination),
            "inside_rates": inside_part(answer.rate_profile),
            "targets": LinkTargets.read([part.there for part in answer.classes], answer.now_or_end),
            "may_accept": decisions.may_accept(reader, notes.sites_of(there, back)),
            **tests.part(query.size, reader, now),
            **sweeps.part({"size": query.size}, reader, newest, now),
        }

    def verdict(self, answer: LinkReport, said: Verdict) -> dict[str, Any]:
        sentence, links = figures.advice_for(answer, self.url_of)
        changed = said.condition
        if changed and KIND_OF[changed.type] in figures.CHANGED and not self.query.compare:
            # Its rate is compared with the time before, in the class that is drawn if it can be.
            drawn, sizes = self.query.size, changed.size_classes
            page = self.asking(resized(self.query, drawn if drawn in sizes else sizes[-1]))
            links = [*links, (COMPARE_SINCE, since_url(page, changed.since_low, answer.now))]
        return vars(said) | {
            "rest": f"{said.rest} {sentence}".strip(),
            "links": [*said.links, *links],
            "as_of": capfirst(f"{words.as_of(answer.judgement)}."),
            "is_filtered": bool(on_profiles(self.query.filters)),
        }

    def results(self, answer: LinkReport, choices: ProfileChoices) -> dict[str, Any]:
        query, cursor = self.query, answer.listing.next
        lines = [TransferLine.of(transfer, answer.downtimes) for transfer in answer.listing.results]
        alike = {line.profile_words for line in lines}
        ends = [
            replace(end, name=name)
            for end, name in zip(answer.question.ends, self.short, strict=True)
        ]
        failures = [
            (group, TransferLine.of(group.example), where_at(group.where, *ends))
            for group in answer.failures
        ]
        mixture = mixed_ways.mixed_in_link([line.results for line in answer.classes], choices)
        # Sweeps that these numbers leave out, and the page of them.
        left_out = sum(len(part.tests) - len(part.results) for part in answer.classes)
        others = other_origins.NONE
        if choices.have_others:
            ends_ids = self.source.id, self.destination.id
            others = other_origins.of_link(ends_ids, query.filters, answer.window)
        sweeps_url = self.url_of(with_filter(query, SWEEPS))
        slowed = None
        if answer.slowed:
            # With its profile if a size class has several.
            several = len({line.size for line in answer.slowed}) < len(answer.slowed)
            slowed = {
                "slowed": [
                    (line, profile_words(line.profile) if several else "") for line in answer.slowed
                ],
                "without_url": self.url_of(
                    with_filter(query, Filter("concurrent", NONE_CONCURRENT))
                ),
            }
        return {
            "transfers": lines,
            "measured_alike": alike.pop() if len(alike) == 1 else "",
            "have_errors": any(line.error for line in lines),
            "results_count": len(answer.results),
            "further": replace(self, before=cursor).url() if cursor else "",
            "first": replace(self, before=None).url() if self.before else "",
            "last_tests": [
                (line, format_age(answer.now - line.transfer.started_at))
                for line in lines[:LATEST]
                if not self.before
            ],
            "overhead": figures.overhead_part(answer.overhead()),
            "list_choices": [
                controls.Choice(
                    text, replace(self, only=only, before=None).url(), self.only == only
                )
                for text, only in (("all size classes", False), (f"only {query.size} files", True))
            ],
            "failures": failures,
            "top_failures": failures[:TOP_FAILURES],
            "failures_count": sum(group.count for group, _, _ in failures),
            "profiles": figures.profile_table(
                answer.summaries, lambda filters: self.url_of(query.replace(filters=filters))
            ),
            "mixed": mixed(query, self.url_of, mixture),
            "other_origins": about_others(query, self.url_of, others),
            "left_out": {"count": left_out, "url": sweeps_url} if left_out else None,
            "concurrent": slowed,
            "at_risk": [
                each
                for each in downtimes.declared(answer.downtimes_at(answer.now_or_end))
                if not each.stops_tests
            ],
            "paused": [
                f"{pause.words} since {format_minute(pause.since)}, {end_words(pause.until)}: "
                f"{pause.reason}."
                for pause in pauses_of(answer.question.ends, answer.now)
            ],
            "schedule": figures.schedule_table(answer),
            "probes": [
                (probe, probe.source_id == self.source.id, progress_words(probe))
                for probe in answer.probes
            ],
            # The newest success that is listed and whose rate is known from within.
            "inside": next(
                (
                    {"line": TransferLine.of(transfer), "figure": figure}
                    for transfer in answer.listing.results
                    if transfer.state == Transfer.State.DONE
                    if (figure := course_figure(stretches(transfer.samples)))
                ),
                None,
            ),
        }
