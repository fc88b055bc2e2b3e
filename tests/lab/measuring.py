"""Sonar's own tests over the links of the lab, from the claim of a probe to its transfer."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import chain

import yaml
from django.utils import timezone

from matrix.answers.ordering import probe_requests
from sonar.models import Endpoint, Probe, SizeClass, SweepStep
from sonar.movers import loading
from sonar.movers.catalogue import kept
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from sonar.ordering import request_probes
from sonar.registry import file
from sonar.work import probes
from sonar.work.transfer_request import order_for, source_path
from tests.lab.link import Lab, Link, registry
from tests.lab.scenarios import REPEATS, STREAMS, Scenario

Claim = Callable[[], Probe]


def scheduled(link: Link, size_class: SizeClass) -> Probe:
    """Take a test of a link as a worker does."""
    now = timezone.now()
    probe = Probe.objects.create(
        source=Endpoint.objects.get(name=link.source.name),
        destination=Endpoint.objects.get(name=link.destination.name),
        size_class=size_class,
        bytes=size_class.test_bytes,
        mover="http-tpc",
        requested_at=now,
        sent_at=now,
    )
    return claimed(link, probe)


def step_of(link: Link, step: SweepStep) -> Probe:
    """Take a test of a sweep: those before it have ended."""
    waiting = Probe.objects.filter(id=step.test_id)
    waiting.update(state=Probe.State.QUEUED, sent_at=timezone.now())
    return claimed(link, waiting.get())


def claimed(link: Link, probe: Probe) -> Probe:
    """Claim a queued test; its source has the file, but not in memory."""
    link.hold(source_path(probe), probe.bytes)
    link.forget()
    taken = probes.claim(probe.id, timezone.now())
    assert taken
    return taken


def run_all(lab: Lab, repeats: int = REPEATS) -> None:
    """Run tests of each size over every link, and vary the streams; store the transfers."""
    file.load(yaml.safe_dump(registry(lab)))
    queues = []
    for name, scenario in lab.scenarios.items():
        links = [[lab.links[name]], lab.partners.get(name, [])]
        if scenario.source_disk or scenario.destination_disk:
            links = [[*chain.from_iterable(links)]]  # they share what is slow
        queues += [tests_of(scenario, side_by_side, repeats) for side_by_side in links]
    carry_out(queues)


def tests_of(scenario: Scenario, links: Sequence[Link], repeats: int) -> Iterator[Claim]:
    """Return the tests of some links of a scenario, each once those before it have ended."""
    sizes = list(SizeClass.objects.all())
    for link in links * repeats:
        yield from (partial(scheduled, link, size_class) for size_class in sizes)
    for link in links:
        if scenario.sweep and is_own(scenario, link):
            yield from (partial(step_of, link, step) for step in sweep(link, scenario))


def is_own(scenario: Scenario, link: Link) -> bool:
    """Say whether this is the link of a scenario, and not one of its servers with a partner."""
    ends = link.source.name, link.destination.name
    return ends == (scenario.source, scenario.destination)


def sweep(link: Link, scenario: Scenario) -> Iterable[SweepStep]:
    """Order a sweep with the streams of large files; return its tests in their order."""
    sweep_request = probe_requests.read_sweep(
        {
            "source": link.source.name,
            "destination": link.destination.name,
            "variable": "streams",
            "values": list(STREAMS),
            "repeats": scenario.sweep,
            "mover": "http-tpc",
        }
    )
    ordered = request_probes.order_sweep(sweep_request, None, timezone.now())
    return ordered.steps.order_by("position")


def carry_out(queues: Sequence[Iterator[Claim]]) -> None:
    """Run queues of tests side by side, those of each one after the other.

    Only bytes move in threads: the database knows of this scene in one connection.
    """
    with ThreadPoolExecutor(len(queues)) as pool:
        running: dict[Future[Outcome], tuple[Probe, Iterator[Claim]]] = {}

        def go_on(tests: Iterator[Claim]) -> None:
            if claim := next(tests, None):
                probe = claim()
                mover, order = loading.load(kept(probe.mover)), order_for(probe)
                running[pool.submit(measure, mover, order, Watch())] = probe, tests

        for tests in queues:
            go_on(tests)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                probe, tests = running.pop(future)
                probes.finish(probe, future.result())
                go_on(tests)
