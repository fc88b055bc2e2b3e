"""Experiments on pages: those of a link, and one with its picture and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from django.http import Http404, QueryDict

from matrix.answers.experiments import report
from matrix.answers.experiments.report import ExperimentReport
from matrix.answers.experiments.words import SweepFinding, conclusion, title
from matrix.answers.probe_request import ORDER, sites_of
from matrix.pages.base import Page, Params
from matrix.pages.experiments.form import ExperimentForm, read_preset
from matrix.pages.link.endpoints import OfLinkPage, endpoints_of
from matrix.pages.probes.page import ends_of, may_order
from matrix.pages.share import Share
from matrix.plots import experiment as experiment_plot
from matrix.query.addresses import address, link_url
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store.data_version import DataVersion
from sonar.models import Experiment
from sonar.people import roles
from sonar.people.roles import Anyone

# On the page of a link; all of the newest are on their own.
BESIDE_LINK = 5
MOST = 100


@dataclass(frozen=True)
class ExperimentLine:
    """An experiment in a list."""

    report: ExperimentReport
    title: str
    conclusion: SweepFinding
    url: str

    @classmethod
    def of(cls, current: ExperimentReport) -> ExperimentLine:
        url = address("experiment", current.experiment.id)
        return cls(current, title(current), conclusion(current), url)


@dataclass(frozen=True)
class LinkExperimentsPage(OfLinkPage):
    """With a ``preset``, by the names of fields, the form is open and has these values."""

    template: ClassVar[str] = "link_experiments.html"
    route: ClassVar[str] = "link-experiments"

    preset: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        preset = read_preset(params)
        return cls(*endpoints_of(path["source"], path["destination"]), preset)

    def params(self) -> Params:
        return {name: [value] for name, value in self.preset.items()}

    def newest(self, now: datetime, most: int = BESIDE_LINK) -> list[ExperimentReport]:
        """Return so many of the newest experiments, and one more if there are more."""
        return report.of_link(self.source.id, self.destination.id, now, most + 1)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            **self.head("Experiments"),
            **experiments_part(self, self.preset, reader, self.newest(now, MOST), most=MOST),
            "is_preset": bool(self.preset),
        }


def experiments_part(
    page: LinkExperimentsPage,
    preset: Mapping[str, str],
    reader: Anyone,
    newest: Sequence[ExperimentReport],
    most: int = BESIDE_LINK,
) -> dict[str, Any]:
    """Return the newest experiments of a link and, for who may order one, the form."""
    source, destination = page.source, page.destination
    form = None
    if reader.is_authenticated and may_order(source, destination, reader):
        form = ExperimentForm(ends_of(source, destination), preset=preset)
    return {
        "experiments": {
            "lines": [ExperimentLine.of(each) for each in newest[:most]],
            "more": len(newest) > most,
            "url": page.path(),
            "with_streams": with_streams(page, preset),
        },
        "experiment_form": form,
    }


def with_streams(page: LinkExperimentsPage, preset: Mapping[str, str]) -> str:
    """Return the address of the form that has streams as what is varied."""
    streams = {"variable": Experiment.Variable.STREAMS.value}
    return replace(page, preset=streams | dict(preset)).url()


@dataclass(frozen=True)
class ExperimentPage(Page):
    template: ClassVar[str] = "experiment.html"
    route: ClassVar[str] = "experiment"

    id: UUID

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(UUID(str(path["id"])))

    def path(self) -> str:
        return address(self.route, self.id)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        current = report.report_of(self.id, now)
        if current is None:
            raise Http404(f"No experiment has the id {self.id}: the address may be cut off.")
        experiment = current.experiment
        source, destination = experiment.source, experiment.destination
        may_cancel = reader.is_authenticated and roles.may(reader, ORDER, sites_of([experiment]))
        return {
            "heading": f"Experiment from {source.name} to {destination.name}",
            "title": title(current),
            "report": current,
            "experiment": experiment,
            "conclusion": conclusion(current),
            "figure": experiment_plot.figure(current),
            "percent": round(100 * current.share),
            "waiting": sum(step.state in ("waiting", "queued") for step in current.steps),
            "simulated": source.simulated or destination.simulated,
            "may_cancel": may_cancel,
            "link_url": link_url(source.name, destination.name, MatrixQuery()),
            "all_url": address("link-experiments", source.name, destination.name),
            "share": Share.of(address("api-experiment", experiment.id)),
            "missing": None,
        }
