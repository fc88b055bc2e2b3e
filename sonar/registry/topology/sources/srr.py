"""What a storage reports of itself (SRR, storage resource reporting): its software and its room.

It adds nothing: endpoints are known by their hosts, and are given the software that is there.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from sonar.notation.units import format_bytes
from sonar.registry.tape import says_tape
from sonar.registry.topology.base_urls import hosts_of
from sonar.registry.topology.elements import Each, shaped_elements
from sonar.registry.topology.model import Topology
from sonar.registry.topology.reading import Shaped, Text, TopologyError

NAME = "srr"
ANSWERS = "storage resource reports (SRR) of storage services"
Size = Annotated[int, Field(ge=0, le=10**21)]


class StorageEndpoint(Shaped):
    name: Text | None = None
    endpointurl: Text | None = None


class StorageShare(Shaped):
    name: Text
    totalsize: Size | None = None
    usedsize: Size | None = None
    # online, nearline or offline; replica, output or custodial.
    accesslatency: Any = None
    retentionpolicy: Any = None


class StorageService(Shaped):
    name: Text | None = None
    implementation: Text | None = None
    implementationversion: Text | None = None
    storageendpoints: Each[list[StorageEndpoint]] = []
    storageshares: Each[list[StorageShare]] = []


def parse(documents: Mapping[str, dict[str, Any]]) -> Topology:
    """Return what these documents say, by the names of their files; raise TopologyError."""
    software: dict[str, str] = {}
    remarks: list[str] = []
    left_out: list[str] = []
    for name, document in documents.items():
        if "storageservice" not in document:
            sentence = "not a storage resource report: `storageservice` is missing"
            raise TopologyError([f"{name}: {sentence}"])
        service, unread = shaped_elements(
            StorageService, document["storageservice"], f"{name}: storageservice"
        )
        left_out += unread
        words = f"{service.implementation or ''} {service.implementationversion or ''}".strip()
        urls = [row.endpointurl for row in service.storageendpoints if row.endpointurl]
        software |= dict.fromkeys(hosts_of(urls), words) if words else {}
        remarks += [_room(service.name or name, share) for share in service.storageshares]
    return Topology(
        source=NAME,
        adds=False,
        software=software,
        remarks=list(filter(None, remarks)),
        left_out=left_out,
    )


def _room(service: str, share: StorageShare) -> str:
    if share.totalsize is None or share.usedsize is None:
        return ""
    free = format_bytes(max(share.totalsize - share.usedsize, 0))
    room = f"{service}, share {share.name}: {free} of {format_bytes(share.totalsize)} free"
    marks = (share.accesslatency, share.retentionpolicy)
    is_tape = says_tape(*(text for text in marks if isinstance(text, str)))
    return f"{room}, on tape" if is_tape else room
