"""Tests of the network between two sites of the small world, as results say them."""

from typing import Any

from sonar.models import Endpoint, NetworkResult, SizeClass
from tests.matrix.world import HOUR, NOW, World


def servers(world: World) -> tuple[Endpoint, Endpoint]:
    """Register the servers of RAL and Glasgow for tests of the network."""
    ral, glasgow = (
        Endpoint.objects.create(
            name=f"{end.site.name}_NET", site=end.site, base_url=f"iperf3://{end.site.name}.example"
        )
        for end in (world.ral, world.glasgow)
    )
    return ral, glasgow


def measured(source: Endpoint, destination: Endpoint, **facts: Any) -> NetworkResult:
    """Keep a test of 100 MB in a second, an hour ago, of whose segments one in 1,000 went twice."""
    fields: dict[str, Any] = {
        "mover": "iperf3",
        "mode": "push",
        "streams": 1,
        "ip_version": 4,
        "size_class": SizeClass.objects.get(name="small"),
        "state": "done",
        "started_at": NOW - HOUR,
        "seconds": 1.0,
        "bytes": 100_000_000,
        "sent_bytes": 100_000_000,
        "mss_bytes": 1000,
        "retransmits": 100,
        "rtt_min_ms": 92.2,
        "rtt_mean_ms": 92.4,
        "rtt_max_ms": 95.0,
        "max_cwnd_bytes": 217_200,
        "max_receive_window_bytes": 108_000,
        "congestion_control": "cubic",
        "samples": [[0.5, 50_000_000], [1.0, 100_000_000]],
    }
    return NetworkResult.objects.create(source=source, destination=destination, **(fields | facts))


def failed(source: Endpoint, destination: Endpoint, **facts: Any) -> NetworkResult:
    unknown = dict.fromkeys(
        ("rtt_min_ms", "rtt_mean_ms", "rtt_max_ms", "retransmits", "sent_bytes", "mss_bytes")
    )
    unknown |= dict.fromkeys(("max_cwnd_bytes", "max_receive_window_bytes"))
    why = {"error": "iperf3: the server is busy", "error_where": "destination"}
    return measured(
        *(source, destination),
        **(unknown | why | {"state": "failed", "bytes": 0, "samples": []} | facts),
    )
