"""Fireflies for tests, like those that servers have sent."""

import copy
import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from tests.api import edges

# XRootD 5.5.3 at the end of a read of 20 MB; addresses are those of documentation.
XROOTD: dict[str, Any] = {
    "version": 1,
    "flow-lifecycle": {
        "state": "end",
        "current-time": "2026-11-20T04:00:02.642044+00:00",
        "start-time": "2026-11-20T04:00:00.513166+00:00",
        "end-time": "2026-11-20T04:00:02.642044+00:00",
    },
    "usage": {"received": 291, "sent": 20020014},
    "netlink": {"rtt": 2.663},
    "context": {"experiment-id": 2, "activity-id": 11, "application": "xrdcp"},
    "flow-id": {
        "afi": "ipv4",
        "src-ip": "192.0.2.1",
        "dst-ip": "192.0.2.2",
        "protocol": "tcp",
        "src-port": 1094,
        "dst-port": 41178,
    },
}
# Some of what flowd-go adds.
FLOWD = {
    "state": "established",
    "opts": ["ts", "sack"],
    "pmtu": 9000,
    "retrans": 0,
    "rtt": 14,
    "snd_cwnd": 100,
    "snd_mss": 1448,
    "total_retrans": 7,
    "busy_time": 4_000_000,
    "rwnd_limited": 1_000_000,
    "sndbuf_limited": 0,
    "delivery_rate": 15_000_000,
}


def firefly(**parts: dict[str, Any]) -> bytes:
    """Return a packet with some parts changed, given with _ for -."""
    made = copy.deepcopy(XROOTD)
    for name, values in parts.items():
        made[name.replace("_", "-")] |= values
    return b"<134>1 - vm xrootd - firefly-json - " + json.dumps(made).encode()


def begins() -> bytes:
    """Return what is sent as the same connection begins."""
    start = XROOTD["flow-lifecycle"]["start-time"]
    life = {"state": "start", "current-time": start, "start-time": start}
    usage = {"received": 188, "sent": 56}
    return json.dumps(XROOTD | {"flow-lifecycle": life, "usage": usage}).encode()


PLACES = [
    (part, name)
    for part, values in XROOTD.items()
    for name in (values if isinstance(values, dict) else [""])
]
HOSTILE = (
    *(None, True, "", [], {}, [[]], {"a": {}}, math.nan, math.inf, *edges.NUMBERS),
    *(*edges.TIMES, *edges.LOOSE_TIMES, *edges.TEXTS, *edges.SURROGATES, *edges.WRITTEN),
    *("::1%eth0", "::ffff:192.0.2.1", "192.0.2.1/32", "192.0.2.01"),
)


def replaced(changes: Iterable[tuple[tuple[str, str], object]]) -> bytes:
    """Return a packet with other values in some places."""
    made = copy.deepcopy(XROOTD)
    for (part, name), value in changes:
        if name and isinstance(made[part], dict):
            made[part][name] = value
        else:
            made[part] = value
    return json.dumps(made).encode()


def hostile_packets() -> Iterator[bytes]:
    """Each value of a packet in turn as each of HOSTILE, and some that no JSON is written as."""
    for place, value in itertools.product(PLACES, HOSTILE):
        yield replaced([(place, value)])
    valid = firefly()
    yield valid.replace(b'"netlink": {', b'"netlink": ' + b'{"a": ' * 300)
    yield valid.replace(b'"netlink": {', b'"netlink": {"rtt": -1, ')
    yield valid.replace(b"1094", b"1" * 1000)
