"""Records of results as scripts push them."""

import uuid
from typing import Any


def result(**fields: object) -> dict[str, Any]:
    """Make one that is done, with an id of its own."""
    plain = {
        "id": str(uuid.uuid4()),
        "source": "RAL_DATADISK",
        "destination": "Glasgow_DATADISK",
        "started_at": "2026-11-20T03:00:00Z",
        "seconds": 412.5,
        "bytes": 2_000_000_000,
        "state": "done",
        "mover": "fts",
        "ip_version": 6,
    }
    return plain | fields
