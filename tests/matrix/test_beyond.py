"""Whether others changed as much: the model against least squares, without what is asked about."""

import re
from datetime import timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from scipy import stats

from matrix.answers.comparison import all_links
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Annotation, Site
from sonar.notation.windows import parse_time
from tests.matrix import changed_site, responses, world
from tests.matrix.responses import words
from tests.matrix.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NAMES = ("A", "B", "C", "D", "E")
# Since the moment, in all of the grid, of what B sends, and of the link from C to D.
ALL, OF_B, OF_C_TO_D = 0.8, 0.5, 0.4
MOMENT = NOW.replace(second=0) - 2 * DAY


@pytest.fixture
def grid_that_changed(db: None) -> None:
    """Make five sites with eight tests of each link before MOMENT and as many after it."""
    rng = np.random.default_rng(7)
    sites = Site.objects.bulk_create(Site(name=name) for name in NAMES)
    ends = world.endpoints((f"{site.name}_DATADISK", site) for site in sites)
    places = list(ends.values())
    with world.transfers() as some:
        for source, destination in permutations(places, 2):
            level = np.exp(rng.normal(3, 0.5))
            after = ALL * (OF_B if source.site.name == "B" else 1.0)
            if (source.site.name, destination.site.name) == ("C", "D"):
                after *= OF_C_TO_D
            for number in range(8):
                for factor, start in ((1.0, -DAY), (after, HOUR)):
                    rate = level * factor * np.exp(rng.normal(0, 0.1))
                    ago = NOW - (MOMENT + start + number * HOUR)
                    some.add(source, destination, float(rate), ago=ago)


def changes() -> Any:
    return all_links.changes(MatrixQuery.from_params(QueryDict()).around(MOMENT, NOW), NOW)


def least_squares(logs: np.ndarray, without: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return effects of rows and of columns without some cells, their design, and sigma."""
    rows, columns = np.nonzero(~np.isnan(logs) & ~without)
    design = np.hstack([np.eye(len(logs))[rows], np.eye(len(logs))[columns]])
    values = logs[rows, columns]
    effects = np.linalg.lstsq(design, values, rcond=None)[0]
    dof = len(values) - int(np.linalg.matrix_rank(design))
    return effects, design, float(np.sqrt(((values - design @ effects) ** 2).sum() / dof))


@pytest.mark.parametrize("link", ["CD", "BE"])
def test_a_link_is_expected_to_do_what_the_model_without_it_says(grid_that_changed, link):
    matrix = changes()
    logs = all_links.finite_logs(matrix.cells.value)
    row, column = map(NAMES.index, link)
    without = np.zeros(logs.shape, dtype=bool)
    without[row, column] = True
    effects, design, sigma = least_squares(logs, without)
    place = np.hstack([np.eye(5)[row], np.eye(5)[column]])
    expected = place @ effects
    own = all_links.link_net_change(matrix, *(f"{name}_DATADISK" for name in link))
    assert own.expected == pytest.approx(np.exp(expected))
    assert own.factor == pytest.approx(np.exp(logs[row, column] - expected))
    assert own.links == 19
    # The error of a prediction: what a link scatters by itself, and what its effects do.
    error = sigma * np.sqrt(1 + place @ np.linalg.pinv(design.T @ design) @ place)
    dof = 19 - 9
    assert own.p == pytest.approx(2 * stats.t.sf(abs(np.log(own.factor)) / error, dof))
    reach = np.exp(stats.t.ppf(0.975, dof) * error)
    assert (own.low, own.high) == pytest.approx((own.factor / reach, own.factor * reach))


def test_what_is_its_own_is_told_from_what_all_did(grid_that_changed):
    matrix = changes()
    own = all_links.link_net_change(matrix, "C_DATADISK", "D_DATADISK")
    shared = all_links.link_net_change(matrix, "B_DATADISK", "E_DATADISK")
    assert own.low < OF_C_TO_D < own.high
    assert own.p < 0.001
    assert shared.expected == pytest.approx(ALL * OF_B, rel=0.2)
    assert shared.low < 1 < shared.high
    said = own.sentence("this link is", has_changed=True)
    change = r"Other links changed as well \(19 links, 0.\d+×\)"
    assert re.fullmatch(rf"{change}\. Relative to them, this link is at .*×.*", said)
    said = shared.sentence("this link is", has_changed=True)
    assert re.fullmatch(r"Other links changed by a similar factor \(19 links, 0.\d+×\)\.", said)


def test_a_site_is_compared_with_the_links_of_others(grid_that_changed):
    matrix = changes()
    logs = all_links.finite_logs(matrix.cells.value)
    row = NAMES.index("B")
    without = np.zeros(logs.shape, dtype=bool)
    without[row] = True
    effects, *_ = least_squares(logs, without)
    others = np.delete(effects[:5], row).mean() + effects[5:]
    rest = (logs[row] - others)[~np.isnan(logs[row])]
    sent, received = (
        all_links.site_net_change(matrix, "B", end) for end in ("source", "destination")
    )
    test = stats.ttest_1samp(rest, 0)
    assert sent.factor == pytest.approx(np.exp(rest.mean()))
    assert sent.p == pytest.approx(test.pvalue)
    assert (sent.low, sent.high) == pytest.approx(tuple(np.exp(test.confidence_interval())))
    assert sent.expected == pytest.approx(np.exp(others.mean()))
    assert sent.links == 16
    assert sent.low < OF_B < sent.high
    assert received.low < 1 < received.high


@pytest.mark.long
def test_the_pages_say_it(client, grid_that_changed):
    asked = MatrixQuery.from_params(QueryDict()).around(MOMENT, NOW)
    html = words(responses.html(client, asked.url("/links/C_DATADISK/D_DATADISK/")))
    assert re.search(r"\(19 links, 0\.\d+×\)\. Relative to them, this link is at 0\.[34]\d×", html)
    html = words(responses.html(client, asked.url("/sites/B/")))
    others = r"Other links changed as well \(16 links, 0\.[78]\d×\)\. Relative to them, this site"
    assert re.search(rf"{others} sent at 0\.", html)
    assert "Other links " not in words(responses.html(client, "/sites/B/?compare=reverse"))


RELATIVE = ". Relative to them, this site sent at 0.80×"


@pytest.mark.parametrize(
    ("expected", "p", "has_changed", "said"),
    [
        (1.03, 0.2, False, "Other links did not change either (323 links, 1.03×)."),
        (1.03, 0.2, True, "Other links did not change (323 links, 1.03×)."),
        (1.03, 0.01, True, f"Other links did not change (323 links, 1.03×){RELATIVE}"),
        (0.62, 0.2, True, "Other links changed by a similar factor (323 links, 0.62×)."),
        (0.62, 0.01, False, f"Other links changed as well (323 links, 0.62×){RELATIVE}"),
    ],
)
def test_what_others_did_is_said_in_plain_words(expected, p, has_changed, said):
    own = all_links.NetChange(expected, 0.8, 0.7, 0.9, p, 323)
    assert own.sentence("this site sent", has_changed=has_changed).startswith(said)


@pytest.mark.parametrize("text", ["", "compare=reverse", "compare=week&compare.size=small"])
def test_where_more_than_time_differs_nothing_has_changed(grid_that_changed, text):
    assert all_links.changes(MatrixQuery.from_params(QueryDict(text)), NOW) is None


def test_without_others_nothing_is_expected(client, small_world):
    ends = small_world.ral, small_world.glasgow
    with world.transfers() as some:
        for number in range(5):
            some.add(*ends, 10.0 + number, ago=number * HOUR)
            some.add(*ends, 20.0 + number, ago=3 * DAY + number * HOUR)
    asked = MatrixQuery.from_params(QueryDict()).around(MOMENT, NOW)
    assert all_links.link_net_change(changes(), ends[0].name, ends[1].name) is None
    assert all_links.link_net_change(changes(), "nowhere", ends[1].name) is None
    assert all_links.site_net_change(changes(), "RAL", "source") is None
    assert all_links.site_net_change(changes(), "DESY", "source") is None
    html = words(responses.html(client, asked.url("/links/RAL_DATADISK/Glasgow_DATADISK/")))
    assert "Too few other links have results" in html


def test_a_moment_stands_for_two_windows_of_one_length(client, db):
    world.make()
    answer = client.get("/links/RAL_DATADISK/DESY_DATADISK/?compare.around=2026-11-19T20:15:00Z")
    assert answer.headers["Location"] == (
        "/links/RAL_DATADISK/DESY_DATADISK/?from=2026-11-19T20:15:00Z&to=2026-11-20T12:01:00Z"
        "&compare=2026-11-19T04:29:00Z..2026-11-19T20:15:00Z"
    )
    answer = client.get("/?compare.around=2026-10-01&window=24h&compare.of=mean")
    assert answer.headers["Location"] == (
        "/?from=2026-10-01T00:00:00Z&to=2026-10-08T00:00:00Z"
        "&compare=2026-09-24T00:00:00Z..2026-10-01T00:00:00Z&compare.of=mean"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("compare.around=2026-11-21", "compare.around: 21 Nov 00:00 UTC is in the future"),
        ("compare.around=1970-01-02", "compare.around: 2 Jan 1970 00:00 UTC is too early"),
        (
            "compare.around=noon",
            "compare.around “noon” is not a valid time. Use the format 2026-11-20 04:00",
        ),
        ("compare.around=2026-11-01&compare=week", "“compare.around” sets the time range"),
    ],
)
def test_a_moment_without_both_sides_is_a_400(client, small_world, text, sentence):
    answer = client.get(f"/?{text}")
    assert answer.status_code == 400
    assert sentence in words(answer.text)


@pytest.mark.long
def test_notes_and_changes_lead_to_the_time_before_and_after(client, db):
    changed_site.make()
    site = "/sites/UKI-SCOTGRID-GLASGOW/"
    html = responses.html(client, site)
    (note,) = Annotation.objects.all()
    asked = MatrixQuery.from_params(QueryDict()).around(note.starts_at, NOW)
    assert f'href="{asked.url(site)}">Compare before and after</a>'.replace("&", "&amp;") in html
    (since,) = re.findall(r'href="([^"]*)">Compare with the previous 7 days</a>', html)
    # When the first of the slower links did, at its first test after the change.
    (start,) = re.findall(r"from=(.*?)&", since)
    assert timedelta(0) <= parse_time(start) - changed_site.CHANGED < changed_site.EVERY
    compared = responses.html(client, since.replace("&amp;", "&"))
    assert 'id="comparison"' in compared
    assert "Compare with the previous 7 days" not in compared
    link = "/links/PIC_DATADISK/UKI-SCOTGRID-GLASGOW_DATADISK/"
    (since,) = re.findall(
        r'href="([^"]*)">Compare with the previous 7 days</a>', responses.html(client, link)
    )
    said = words(responses.html(client, since.replace("&amp;", "&")))
    assert "Large files: slower than" in said, said[said.index("Large files") :][:300]


@pytest.mark.parametrize(
    "path", ["/", "/table/", "/sites/RAL/", "/links/RAL_DATADISK/DESY_DATADISK/"]
)
def test_a_moment_can_be_chosen_without_a_script(client, small_world, path):
    assert 'name="compare.around"' in responses.html(client, path)
    answer = client.get(f"{path}?compare.around=2026-11-19+20:15")
    assert "compare=2026-11-19T04:29:00Z..2026-11-19T20:15:00Z" in answer.headers["Location"]
