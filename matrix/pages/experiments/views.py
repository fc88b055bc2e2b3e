"""What people do with experiments on pages: order one on a link, and cancel what has not begun."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone

from matrix.answers import probe_request
from matrix.answers.experiments import report
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.experiments.form import ExperimentForm
from matrix.pages.experiments.page import LinkExperimentsPage
from matrix.pages.probes.page import ends_of
from matrix.pages.probes.views import place
from matrix.pages.views import rendered, showing
from matrix.query.addresses import address
from matrix.store import notes
from sonar.models import Experiment
from sonar.ordering import experiments

show_link_experiments = showing(LinkExperimentsPage)


def sites_of_experiment(id: UUID) -> set[int]:  # noqa: A002 - of the route
    return probe_request.sites_of(report.rows().filter(id=id))


@for_whom(GET=readers, POST=holders(probe_request.ORDER, notes.sites_of))
def link_experiments(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    """Show the experiments on a link, or order one."""
    if request.method == "POST":
        return order_on_link(request, source, destination)
    return show_link_experiments(request, source=source, destination=destination)


def order_on_link(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    user = cast(User, request.user)
    page = LinkExperimentsPage.of(source, destination)
    form = ExperimentForm(ends_of(page.source, page.destination), request.POST)
    experiment, status = ordered(form, user)
    if experiment is None:
        now = timezone.now()
        return rendered(request, page, now, None, status=status, experiment_form=form)
    return HttpResponseRedirect(address("experiment", experiment.id))


def ordered(form: ExperimentForm, user: User) -> tuple[Experiment | None, int]:
    """Order what a form asks for, or say in it why not and return the status of that."""
    if not form.is_valid() or form.sweep is None:
        return None, 400
    sweep = form.sweep
    return place(form, sweep.probe_requests, user, lambda now: experiments.order(sweep, user, now))


@for_whom(POST=holders(probe_request.ORDER, sites_of_experiment))
def cancel_experiment(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Cancel the tests that have not begun, and lead back to the experiment."""
    experiment = report.rows().filter(id=id).first()
    if experiment is None:
        raise Http404(f"No experiment has the id {id}.")
    count = experiments.cancel(experiment, timezone.now())
    tests = "1 test was" if count == 1 else f"{count or 'No'} tests were"
    messages.success(request, f"{tests} cancelled; what had begun goes on.")
    return HttpResponseRedirect(address("experiment", id))
