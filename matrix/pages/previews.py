"""The images that chats show of pages."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.views.decorators.http import conditional_page

from matrix.answers.link import report as link_report
from matrix.answers.link.report import Question
from matrix.answers.link.verdict import verdict_of
from matrix.answers.matrix import grid
from matrix.answers.matrix.headline import Headline, read_judgement
from matrix.answers.site import reports
from matrix.answers.site.reports import ENDS
from matrix.answers.site.site_now import site_now
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import Page
from matrix.pages.link.figures import network_part, verdict_alone
from matrix.pages.link.page import LinkPage
from matrix.pages.matrix.page import MatrixPage
from matrix.pages.site.page import SitePage
from matrix.plots import preview
from matrix.plots.arrangement import arrange
from matrix.plots.link import lines_of, rates_over_time, spans_drawn
from matrix.plots.matrix import figure_alone
from matrix.plots.preview import Preview
from matrix.plots.site import end_figures
from matrix.plots.standalone import with_colours
from matrix.query.forms import BadQueryError
from matrix.store.data_version import of_one_server, snapshot

Shown = TypeVar("Shown", bound=Page)


def of_matrix(page: MatrixPage, now: datetime) -> Preview:
    answered = grid.build(page.query, now, page.version(now))
    figure = with_colours(figure_alone(arrange(answered, page.display)))
    return Preview(
        page.query.describe_in_unit(),
        Headline.of(answered, read_judgement(answered, now), now).words(),
        answered.window,
        answered.simulated,
        [("", figure)],
    )


def of_link(page: LinkPage, now: datetime) -> Preview:
    """Make it without notes, of which not everybody may read each."""
    report = link_report.answer(Question(page.source, page.destination, page.query), now)
    lines = lines_of(report, reverse=page.draws_reverse)
    picture = rates_over_time(report, lines, spans_drawn(report, ()))
    alone = verdict_alone(network_part(report.network, report.question.ends))
    return Preview(
        f"From {page.source.name} to {page.destination.name}, {page.query.size} files, MB/s",
        alone.get("headline") or verdict_of(report.link_now()).headline,
        report.window,
        page.source.simulated or page.destination.simulated,
        [("", with_colours(picture.figure))],
    )


def of_site(page: SitePage, now: datetime) -> Preview:
    """Make it without notes and downtimes."""
    report = reports.build(page.site.name, page.query, now)
    site_is = site_now(report, (), now)
    figures = end_figures(report, site_is, downtimes=(), notes=(), events=())
    return Preview(
        f"{page.site.name}, {page.query.size} files: link rates relative to their baselines",
        site_is.verdict.news,
        report.window,
        report.links.simulated,
        [(f"as {end}", with_colours(figures[end])) for end in reversed(ENDS)],
    )


def previewing(
    page: type[Shown], preview_of: Callable[[Shown, datetime], Preview]
) -> Callable[..., HttpResponseBase]:
    """Return the view of a page's image: the same for all its readers."""

    @for_whom(GET=readers)
    @conditional_page
    @of_one_server()
    def view(request: HttpRequest, **path: str) -> HttpResponseBase:
        now = timezone.now()
        try:
            current = page.read(request.GET, **path)
        except BadQueryError as error:
            return render(request, "400.html", {"errors": error.errors}, status=400)
        version = current.version(now)
        address = hashlib.sha256(current.url().encode()).hexdigest()[:8]
        etag = version.shown(f"preview{address}").etag if version else None
        response = get_conditional_response(request, etag=etag) if etag else None
        if response is None:
            with snapshot():
                image = preview.png(preview_of(current, now))
            response = HttpResponse(image, content_type="image/png")
        if etag:
            response["ETag"] = etag
        response["Cache-Control"] = "private, no-cache"
        return response

    return view


matrix_preview = previewing(MatrixPage, of_matrix)
link_preview = previewing(LinkPage, of_link)
site_preview = previewing(SitePage, of_site)
