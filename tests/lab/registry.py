"""The servers of a lab as Sonar's registry has them."""

from typing import Any

from tests.lab.link import Lab, Link
from tests.lab.scenarios import SIZES

TIMEOUT_SECONDS = 120
EVERY = "5m"


def registry(lab: Lab) -> dict[str, Any]:
    """Return what a registry file of a lab says: each server at a site of its own."""
    servers = {
        server.name: server
        for link in lab.links.values()
        for server in (link.source, link.destination)
    }
    return {
        "size_classes": size_classes(),
        "sites": [{"name": name, "tier": 2} for name in servers],
        "endpoints": [
            {"name": name, "site": name, "base_url": f"{server.url}/base"}
            for name, server in servers.items()
        ],
        "meshes": [mesh(name, link) for name, link in lab.links.items()]
        + [
            mesh(f"{name}-{way}", link)
            for name, links in lab.partners.items()
            for way, link in zip(("FROM", "TO"), links, strict=True)
        ],
    }


def mesh(name: str, link: Link) -> dict[str, Any]:
    return {
        "name": name,
        "sources": [link.source.name],
        "destinations": [link.destination.name],
        "every": dict.fromkeys(SIZES, EVERY),
    }


def size_classes() -> list[dict[str, Any]]:
    bounds = [0, *(size // 2 for size in list(SIZES.values())[1:])]
    return [
        {
            "name": name,
            "from_bytes": bound,
            "test_bytes": size,
            "timeout_seconds": TIMEOUT_SECONDS,
        }
        for (name, size), bound in zip(SIZES.items(), bounds, strict=True)
    ]
