"""The grid in a box: what was published comes out as published, the rest has a basis."""

import csv
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

from sonar.sandbox import topology
from sonar.sandbox.topology import SCALE, Link, load_links, load_sites
from tests.sandbox import derive

LARGE = 2000
GLASGOW = "UKI-SCOTGRID-GLASGOW"


def published_matrix() -> list[dict[str, str]]:
    with Path(topology.DATA, "large_t2_to_t1.csv").open() as file:
        return list(csv.DictReader(file))


def links() -> dict[tuple[str, str], Link]:
    return {link.ends: link for link in load_links()}


def name_of(endpoint: str) -> str:
    return endpoint.removesuffix("_DATADISK")


def endpoint_of(site: str) -> str:
    return f"{site}_DATADISK"


def test_sites_are_those_of_the_published_matrix_with_one_endpoint_each() -> None:
    sites = load_sites()
    assert [site.tier for site in sites] == [2] * 9 + [1] * 10
    assert [site.endpoint for site in sites] == [f"{site.name}_DATADISK" for site in sites]
    assert len({site.name for site in sites}) == 19
    sources = [row["source"] for row in published_matrix()][:-1]
    destinations = list(published_matrix()[0])[1:-1]
    assert [site.endpoint for site in sites] == sources + destinations


def test_every_site_has_a_cloud_a_country_and_a_position_and_tier_2s_their_uplinks() -> None:
    for site in load_sites():
        assert site.cloud in {"UK", "DE", "IT", "ES", "NG", "TW", "NL", "CA", "FR", "US"}
        assert len(site.country) == 2
        assert -90 < site.latitude < 90
        assert -180 < site.longitude < 180
        assert (site.wan_gbit_s is None) == (site.tier == 1)
    assert {site.name: site.wan_gbit_s for site in load_sites()}[GLASGOW] == 6


def test_every_ordered_pair_of_sites_is_a_link_once_and_says_what_it_is_based_on() -> None:
    names = [site.name for site in load_sites()]
    assert len(load_links()) == 342
    assert set(links()) == {(a, b) for a in names for b in names if a != b}
    bases = Counter(link.basis for link in load_links())
    assert bases == {"published": 90, "glasgow_sonar": 9, "derived": 243}


def test_the_shipped_file_is_what_is_derived_from_the_published_tables() -> None:
    shipped = Path(topology.DATA, "uk_2011_links.csv").read_text()
    assert shipped == derive.render(derive.derive_links())
    assert load_links() == derive.derive_links()


def test_the_published_matrix_comes_out_of_the_model() -> None:
    for row in published_matrix()[:-1]:
        for destination in list(row)[1:-1]:
            link = links()[name_of(row["source"]), name_of(destination)]
            assert link.basis == "published"
            assert link.rate_mb_s(LARGE) == pytest.approx(float(row[destination]), rel=1e-3)


def test_the_published_averages_come_out_of_the_model() -> None:
    # Within what rounding the cells, and then their average, to two digits can do.
    *rows, averages = published_matrix()
    told = {row["source"]: row["Average"] for row in rows} | averages
    published = [link for link in load_links() if link.basis == "published"]
    for name in told.keys() - {"source"}:
        # A Tier-2 is only a source there, and a Tier-1 only a destination.
        of_name = [link for link in published if name in ("Average", *map(endpoint_of, link.ends))]
        mean = fmean(link.rate_mb_s(LARGE) for link in of_name)
        assert mean == pytest.approx(float(told[name]), abs=0.01)


def test_the_glasgow_table_comes_out_of_the_model_in_both_size_classes() -> None:
    with Path(topology.DATA, "glasgow_sonar.csv").open() as file:
        rows = {
            (row["source"], row["destination"], row["size_class"]): float(row["rate_mean_mb_s"])
            for row in csv.DictReader(file)
        }
    inbound = [link for link in load_links() if link.basis == "glasgow_sonar"]
    assert len(inbound) == 9
    for link in inbound:
        for size_class, size_mb in (("small", 20), ("large", LARGE)):
            rate = rows[link.source, link.destination, size_class]
            assert link.rate_mb_s(size_mb) == pytest.approx(rate, rel=1e-3)


def test_every_link_is_possible() -> None:
    for link in load_links():
        assert 0 < link.setup_seconds < LARGE / link.large_mb_s
        assert 0.3 < link.large_mb_s < 40
        assert link.rate_mb_s(20) < link.rate_mb_s(200) < link.rate_mb_s(LARGE)
        assert link.rate_mb_s(LARGE) == pytest.approx(link.large_mb_s, rel=1e-3)


def test_troubles_are_invented_on_derived_links_only() -> None:
    troubled = [link for link in load_links() if link.failure_rate > 0.01]
    assert {link.basis for link in troubled} == {"derived"}
    assert sorted(link.failure_rate for link in troubled) == [0.2, 0.2, 0.25, 0.25, 0.3, 1.0]
    assert {link.failure_rate for link in load_links()} == {0.01, 0.2, 0.25, 0.3, 1.0}


def test_the_registry_names_every_endpoint_with_its_url() -> None:
    urls = {site.endpoint: f"http://127.0.0.1/{site.name}" for site in load_sites()}
    document = topology.registry(urls)
    assert {entry["name"]: entry["base_url"] for entry in document["endpoints"]} == urls
    assert [entry["site"] for entry in document["endpoints"]] == [
        entry["name"] for entry in document["sites"]
    ]
    assert all(entry["simulated"] for entry in document["endpoints"])
    assert document["meshes"][0]["mover"] == "http-tpc"
    with pytest.raises(KeyError):
        topology.registry({})


def test_size_classes_are_scaled_and_leave_the_slowest_link_three_times_what_it_needs() -> None:
    classes = topology.registry({site.endpoint: "" for site in load_sites()})["size_classes"]
    assert [entry["test_bytes"] for entry in classes] == [100_000, 1_000_000, 10_000_000]
    assert [entry["from_bytes"] for entry in classes] == [0, 500_000, 5_000_000]
    for entry in classes:
        size_mb = entry["test_bytes"] * SCALE / 1e6
        slowest = max(size_mb / link.rate_mb_s(size_mb) / SCALE for link in load_links())
        assert entry["timeout_seconds"] > 3 * slowest
