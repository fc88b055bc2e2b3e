"""Tests are the default: results of other origins change nothing unless they are asked for."""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations

from django.test import Client
from pytest_django import Settings

from matrix import tasks
from matrix.answers.status import figures
from matrix.query.catalogue import STATS
from sonar.models import Endpoint
from sonar.people.roles import Role
from sonar.tasks import compact
from tests import rights_samples
from tests.accounts import account, logged_in
from tests.matrix import world
from tests.matrix.world import HOUR
from tests.rights_samples import SAMPLES
from tests.test_orders import NOT_COMPARED, READ, VOLATILE

# Lists of single results have those of every origin: test_lists_have_every_origin.
LISTS = ("/api/v1/transfers/",)
# It counts what is stored, as a size class with results stays.
STORED = ("/size-classes/",)
LINK, FROM_TO = (
    "/links/RAL_DATADISK/DESY_DATADISK/",
    "source=RAL_DATADISK&destination=DESY_DATADISK",
)
PATHS = [READ[route].path for route in sorted(READ.keys() - NOT_COMPARED - {*LISTS, *STORED})]
PATHS += ["/sites/DESY/", "/api/v1/sites/DESY/", LINK, f"{LINK}?reverse=1&window=30d"]
PATHS += [f"/api/v1/matrix/?window=30d&stat={stat}" for stat in STATS]
PATHS += [
    f"/api/v1/{call}"
    for call in (
        "matrix/?rows=site&columns=cloud",
        "matrix/?compare=previous&window=24h",
        "matrix/?compare=reverse&cloud=UK",
        "matrix/?mover=http-tpc",
        "matrix/?max_age=2h",
        "matrix/?format=csv",
        "matrix/?format=plotly",
        "links/?format=csv&window=30d",
        "links/?mode=!push&window=30d",
        "links/?compare=week",
        f"series/?{FROM_TO}&window=30d",
        f"series/?{FROM_TO}&window=24h&format=plotly",
        "events/?window=30d",
        "causes/?window=30d",
    )
]
PATHS += [
    f"/{page}"
    for page in (
        "?window=30d&stat=median",
        "?rows=site&columns=site",
        "?compare=previous&window=24h",
        "?stat=vs_usual",
        "table/?window=30d",
        "table/?compare=week",
        "events/?window=30d",
        "causes/?window=30d",
        "sites/?window=30d",
        "sites/RAL/?window=30d",
    )
]
# What pages and calls say of other results that there are, and what they offer to ask for.
MENTIONED = b"|".join(
    (
        rb'<label>[\w ]+ <select [^>]*name="compare\.[^>]*>.*?</select>\s*</label>',
        rb'<datalist id="known-[^>]*>.*?</datalist>',
        rb'<p class="notice [^>]*other-origins[^>]*>.*?</p>',
        rb'"other_origins":\{[^}]*\},?',
    )
)
IN_METRICS = re.compile(rb"^sonar_(?!.*(?:seconds|bytes)).*", re.MULTILINE)


def measure(ends: list[Endpoint]) -> None:
    """Let every link have a test every six hours in five weeks; those into the last became slow."""
    with world.transfers() as some:
        for number, (source, destination) in enumerate(permutations(ends, 2)):
            for turn in range(140):
                rate = 20 + number + turn % 5
                if destination == ends[-1] and turn < 40:
                    rate /= 3
                fails = turn % 30 == 7 or (
                    source == ends[0] and destination == ends[1] and turn < 4
                )
                ago = turn * 6 * HOUR + timedelta(minutes=number + 5)
                some.add(source, destination, None if fails else rate, ago=ago)


def import_others(ends: list[Endpoint]) -> None:
    """Import results of other origins among them, newer and older ones, absurdly fast or failed."""
    profiles = [
        world.profile(mover="fts", streams=4, origin="production"),
        world.profile(origin="external"),
        world.profile(origin="external", purpose="ordered"),
    ]
    with world.transfers() as some:
        for number, (source, destination) in enumerate(permutations(ends, 2)):
            for turn in range(150):
                profile = profiles[turn % len(profiles)]
                ago = turn * 5 * HOUR + timedelta(minutes=number + 1)
                fails = number % 3 == 0 or turn % 7 == 0
                for size in ("large", "small"):
                    rate = None if fails else 3000.0
                    some.add(source, destination, rate, ago=ago, size=size, made=profile)


def read_all(client: Client, names: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Let the engines look, and yield the body of each page and call without what may differ."""
    figures.forget()
    for engine in (compact, tasks.assess, tasks.judge_links):
        engine()
    for path in PATHS:
        response = client.get(path.format_map(names))
        assert response.status_code < 500, path
        body = b"".join(response.streaming_content) if response.streaming else response.content
        rest = re.sub(MENTIONED, b"", re.sub(VOLATILE, b"", body), flags=re.DOTALL)
        yield path, b" ".join(rest.split())
    metrics = client.get("/metrics").content
    yield "/metrics", b"\n".join(IN_METRICS.findall(metrics))


def differing(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
    """Return where bodies differ, each as it was and is around the first byte of that."""
    found = {}
    for path, body in before.items():
        if body != after[path]:
            pairs = enumerate(zip(body, after[path], strict=False))
            at = next((at for at, (one, other) in pairs if one != other), len(body))
            around = slice(max(at - 80, 0), at + 80)
            found[path] = body[around], after[path][around]
    return found


def test_results_of_other_origins_change_no_page_and_no_call(
    db: None, at_noon: None, settings: Settings
) -> None:
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    assert ("/", "GET") in SAMPLES
    names = rights_samples.scene()
    ends = list(Endpoint.objects.filter(retired_at=None).order_by("id"))[:4]
    measure(ends)
    client = logged_in(account(Role.ADMINISTRATOR))
    dict(read_all(client, names))
    before = dict(read_all(client, names))
    assert differing(before, dict(read_all(client, names))) == {}
    import_others(ends)
    assert differing(before, dict(read_all(client, names))) == {}
