"""The grid in a box: 19 sites, 342 links, and how each link behaves.

A transfer takes ``setup_seconds + size / bandwidth``. Where that comes from, link by link,
is said in the ``basis`` of the link and in the header of ``data/uk_2011_links.csv``.
"""

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
MB = 10**6

SCALE = 200
"""The sandbox is smaller than the grid by this factor in bytes and in seconds: rates stay."""

CAP = 4
"""Transfers at once into an endpoint, and out of it. With 8, two busy cores do not keep up with the
pace of 100 transfers at once; with 4 the matrix fills within 40 s all the same."""

SMALL_MB, MEDIUM_MB, LARGE_MB = 20, 200, 2000
# Of a link without troubles; and the ends of the one link that never works.
FAILURE_RATE, ALWAYS_FAILS = 0.01, ("UKI-NORTHGRID-LANCS-HEP", "UKI-SOUTHGRID-CAM-HEP")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Site:
    """An organisation's place, with its one endpoint."""

    name: str
    cloud: str
    tier: int
    country: str
    latitude: float
    longitude: float
    wan_gbit_s: float | None
    endpoint: str


@dataclass(frozen=True)
class Link:
    """How transfers from one site to another behave, at the scale of the real grid."""

    source: str
    destination: str
    bandwidth_mb_s: float
    setup_seconds: float
    spread: float
    failure_rate: float
    large_mb_s: float
    basis: str

    @property
    def ends(self) -> Pair:
        return self.source, self.destination

    def rate_mb_s(self, size_mb: float) -> float:
        """Return what the model gives for a file of this size, in MB/s."""
        return size_mb / (self.setup_seconds + size_mb / self.bandwidth_mb_s)


def load_sites() -> list[Site]:
    """Return the sites in the order of the published matrix: sources, then destinations."""
    sites = []
    for row in rows("uk_2011_sites.csv"):
        row |= {name: float(row[name]) for name in ("latitude", "longitude")}
        uplink = float(row["wan_gbit_s"]) if row["wan_gbit_s"] else None
        sites.append(Site(**row | {"tier": int(row["tier"]), "wan_gbit_s": uplink}))
    return sites


def load_links() -> list[Link]:
    figures = ("bandwidth_mb_s", "setup_seconds", "spread", "failure_rate", "large_mb_s")
    return [
        Link(**row | {name: float(row[name]) for name in figures})
        for row in rows("uk_2011_links.csv")
    ]


def registry(base_urls: Mapping[str, str]) -> dict[str, Any]:
    """Return the sandbox as the document that ``manage.py load_registry`` reads.

    ``base_urls`` gives the base URL of each endpoint, by its name; KeyError if one is missing.
    """
    sites = [asdict(site) for site in load_sites()]
    endpoints = [site.pop("endpoint") for site in sites]
    return {
        "size_classes": [
            {
                "name": name,
                "from_bytes": from_mb * MB // SCALE,
                "test_bytes": test_mb * MB // SCALE,
                "timeout_seconds": timeout_seconds,
            }
            for name, from_mb, test_mb, timeout_seconds in (
                ("small", 0, SMALL_MB, 60),
                ("medium", 100, MEDIUM_MB, 60),
                ("large", 1000, LARGE_MB, 120),
            )
        ],
        "sites": sites,
        "endpoints": [
            {
                "name": name,
                "site": site["name"],
                "label": "DATADISK",
                "base_url": base_urls[name],
                "software": "Sonar sandbox node",
                "simulated": True,
                "inbound_cap": CAP,
                "outbound_cap": CAP,
            }
            for name, site in zip(endpoints, sites, strict=True)
        ],
        "meshes": [
            {
                "name": "sandbox",
                "mover": "http-tpc",
                "mode": "pull",
                "streams": 1,
                "priority": 5,
                "sources": "all",
                "destinations": "all",
                "every": {"small": "5m", "medium": "5m", "large": "10m"},
            }
        ],
    }


def rows(name: str) -> list[dict[str, Any]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
