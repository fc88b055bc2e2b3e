"""Rucio: answers of GET /export/, which have all RSEs with their attributes and protocols, and of
GET /ping, which has the version.

Attributes are free words of a VO: those that are as expected are used, others passed over.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sonar.models.aliases import AliasKind
from sonar.notation.addresses import PROTOCOLS, scheme_of
from sonar.registry.topology.base_urls import PREFERRED, TAPE, base_url, hosts_of, url_problem
from sonar.registry.topology.model import AliasFacts, EndpointFacts, SiteFacts, Topology, position
from sonar.registry.topology.reading import Shaped, Text, TopologyError, shaped
from sonar.registry.topology.several import of_hosts

NAME = "rucio"
ANSWERS = "responses from Rucio to GET /export/?distance=False and GET /ping"
SITE = "site"

# What a protocol does between sites, the best for tests first. The last of each is what Rucio's
# submitter, or a client, writes by: its priority counts, the lowest first.
DUTIES = (
    ("third_party_copy_read", "third_party_copy_write"),
    ("third_party_copy_write",),
    ("third_party_copy_read", "write"),
    ("write",),
)
THIRD_PARTY_WRITE = "third_party_copy_write"
# The submitter of Rucio 41 limits itself to these once its option `scheme` in `[conveyor]` is set,
# whatever that names (SUPPORTED_PROTOCOLS of rucio.common.constants).
ALWAYS_COPIED = (
    "root",
    "davs",
    "http",
    "https",
    "srm+https",
    "file",
    "storm",
    "scp",
    "rsync",
    "rclone",
)
UNLIMITED = "Rucio's option `scheme` in `[conveyor]` is not set"
PURPOSES = ("third_party_copy_read", THIRD_PARTY_WRITE, "read", "write")
# https and davs are one protocol, and so are root and xroot: the order of these counts.
PROTOCOL_ORDER = list(dict.fromkeys(PROTOCOLS[scheme].name for scheme in PREFERRED))
# Since this version, priority 0 is the highest; before, it was off, as null is.
ZERO_IS_BEST_SINCE = 39
ADD_PING = (
    "Add the response to GET /ping to the documents, so that Sonar applies the rules of your "
    "Rucio version."
)
ZERO_REMARKS = {
    True: "Protocols have priorities 0 and null, so Sonar treats 0 as the highest, as Rucio 39 and "
    f"later do. Rucio 32 to 38 treat 0 as disabled. {ADD_PING}",
    False: "No protocol has priority null, so Sonar treats 0 as disabled, as Rucio 31 and earlier "
    f"do. Rucio 39 and later treat 0 as the highest. {ADD_PING}",
}
NO_EXPORT = "not a response to GET /export/: `rses` is missing"
MOST_ATTRIBUTES = 10

Priorities = dict[str, int | None]


class Domains(Shaped):
    wan: Priorities | None = None
    lan: Priorities | None = None


class Protocol(Shaped):
    scheme: Text
    hostname: str | None = None
    port: int | None = None
    prefix: str | None = None
    domains: Domains | None = None

    @property
    def wan(self) -> Priorities:
        return (self.domains.wan if self.domains else None) or {}

    @property
    def lan(self) -> Priorities:
        return (self.domains.lan if self.domains else None) or {}

    @property
    def url(self) -> str:
        host = (self.hostname or "").rpartition("://")[2]
        port = f":{self.port}" if self.port else ""
        return base_url(f"{self.scheme}://{host}{port}", self.prefix or "")


class Rse(Shaped):
    id: Text | None = None
    rse: Text
    vo: Text | None = None
    rse_type: Text | None = None
    availability_read: bool | None = None
    availability_write: bool | None = None
    availability_delete: bool | None = None
    deleted: bool | None = None
    staging_area: bool | None = None
    volatile: bool | None = None
    latitude: float | None = None
    longitude: float | None = None
    attributes: dict[str, Any] | None = None
    protocols: list[Protocol] | None = None

    @property
    def in_vo(self) -> str:
        return f"{self.rse} (VO {self.vo})" if self.vo else self.rse


class Door(NamedTuple):
    """A protocol by which Sonar can test: the smallest is the best."""

    duty: int
    order: int
    priority: int
    url: str


class Version(Shaped):
    version: Text


def parse(documents: Mapping[str, dict[str, Any]], site_attribute: str = SITE) -> Topology:
    """Return what these documents say, by the names of their files; raise TopologyError.

    ``site_attribute`` is the attribute of RSEs that names their site. An RSE that is not
    understood is left out; a document of which none is understood is refused.
    """
    exports = {name: document for name, document in documents.items() if "rses" in document}
    major = _major_version({name: documents[name] for name in documents if name not in exports})
    if not exports:
        raise TopologyError([f"{name}: {NO_EXPORT}" for name in documents])
    seen: dict[str, tuple[str, Rse]] = {}
    left_out: list[str] = []
    unread: list[str] = []
    remarks: list[str] = []
    for name, document in exports.items():
        rses, problems, names = _understood(document["rses"], name)
        left_out += problems
        unread += names
        zero_is_best, remark = _meaning_of_zero(rses, major)
        remarks += [remark] if remark and remark not in remarks else []
        for rse in rses:
            for protocol in rse.protocols or []:
                _normalise(protocol, zero_is_best=zero_is_best)
            for key in (f"the name {rse.rse}", *([f"the id {rse.id}"] if rse.id else [])):
                other_document, other = seen.setdefault(key, (name, rse))
                if other != rse:
                    sentence = (
                        f"{name}: {rse.in_vo}: {other.in_vo} in {other_document} also has {key}, "
                        "but other values. Compare one VO at a time, using exports made at the "
                        "same time"
                    )
                    raise TopologyError([sentence])
    rses = sorted({rse.rse: rse for _, rse in seen.values()}.values(), key=lambda rse: rse.rse)
    topology = _topology([rse for rse in rses if not rse.deleted], site_attribute)
    return topology.model_copy(
        update={
            "left_out": [*topology.left_out, *left_out],
            "remarks": [*remarks, *topology.remarks],
            "unread": unread,
        }
    )


def _major_version(documents: Mapping[str, dict[str, Any]]) -> int | None:
    """Return the first number of the server's version; None if no document has one."""
    major = None
    for name, document in documents.items():
        if "ExceptionMessage" in document:  # the answer to a request without a right or a token
            words = f"{document.get('ExceptionClass')}: {document['ExceptionMessage']}"
            sentence = f"an error message from Rucio, not an export: {ascii(words)[:300]}"
            raise TopologyError([f"{name}: {sentence}"])
        if "version" not in document:
            raise TopologyError([f"{name}: {NO_EXPORT}"])
        text = shaped(Version, document, name).version
        number = re.match(r"(\d{1,4})\.", text, re.ASCII)
        if number is None:
            raise TopologyError([f"{name}: version: {text!r} is not a version such as 41.5.1"])
        major = int(number[1])
    return major


def _understood(rows: object, document: str) -> tuple[list[Rse], list[str], list[str]]:
    """Return RSEs; a sentence for each that is not understood; and the names and ids of those."""
    rses: list[Rse] = []
    problems: list[str] = []
    unread: list[str] = []
    for key, row in shaped(dict[str, Any], rows, f"{document}: rses").items():
        said = row if isinstance(row, dict) else {}
        names = [text for text in (said.get("rse"), key, said.get("id")) if isinstance(text, str)]
        label = names[0] if names[0].isprintable() else ascii(names[0])
        try:
            rses.append(shaped(Rse, row, label[:80]))
        except TopologyError as error:
            problems.append(error.problems[0])
            unread += [name for name in names if name.isprintable()]
    if problems and not rses:
        raise TopologyError([f"{document}: {problem}" for problem in problems])
    return rses, problems, unread


def _meaning_of_zero(rses: Sequence[Rse], major: int | None) -> tuple[bool, str]:
    """Say whether priority 0 is the highest, else it is off; and what is not certain of that."""
    if major is not None:
        return major >= ZERO_IS_BEST_SINCE, ""
    protocols = [protocol for rse in rses for protocol in rse.protocols or []]
    has_null = any(None in (*row.wan.values(), *row.lan.values()) for row in protocols)
    has_zero = any(row.wan.get(purpose) == 0 for row in protocols for purpose in PURPOSES)
    return has_null, ZERO_REMARKS[has_null] if has_zero else ""


def _normalise(protocol: Protocol, *, zero_is_best: bool) -> None:
    """Let only null be off, and third-party copies be two purposes, as in Rucio 1.29 and later."""
    wan = protocol.wan
    if "third_party_copy" in wan:
        wan = wan | dict.fromkeys(DUTIES[0], wan["third_party_copy"])
    priorities = {name: value if value or zero_is_best else None for name, value in wan.items()}
    protocol.domains = Domains(wan=priorities, lan=protocol.lan)


def _topology(rses: Sequence[Rse], site_attribute: str) -> Topology:
    sites, left_out = _sites(rses, site_attribute)
    endpoints: list[EndpointFacts] = []
    hosts: dict[str, set[str]] = {}
    remarks = _attribute_remarks(rses, site_attribute)
    for rse in rses:
        doors = sorted(filter(None, map(_door, rse.protocols or [])))
        reason = _unusable(rse, doors, site_attribute)
        is_off = rse.availability_read is False and rse.availability_write is False
        endpoints.append(
            EndpointFacts(
                name=rse.rse,
                source_id=rse.id or "",
                site=_attribute(rse, site_attribute),
                base_url="" if reason else doors[0].url,
                label=_attribute(rse, "type") or None,
                retired=is_off,
                unusable=reason,
            )
        )
        if reason or is_off:
            continue
        between_sites = [row for row in rse.protocols or [] if any(_purposes(row))]
        hosts[rse.rse] = hosts_of(row.url for row in between_sites)
        remarks += _remarks(rse, doors[0])
    usable = [facts for facts in endpoints if not facts.unusable]
    used = {facts.site for facts in usable if not facts.retired}
    of_endpoints, several = of_hosts(usable, hosts)
    names = [AliasFacts(kind=AliasKind.RSE, name=row.name, endpoint=row.name) for row in endpoints]
    return Topology(
        source=NAME,
        sites=[site for site in sites if site.name in used],
        endpoints=endpoints,
        aliases=[*names, *of_endpoints],
        left_out=[*left_out, *several],
        remarks=remarks,
    )


def _unusable(rse: Rse, doors: Sequence[Door], site_attribute: str) -> str:
    """Say why Sonar must not, or cannot, test there; empty if it can."""
    label = _attribute(rse, "type").upper()
    istape = str((rse.attributes or {}).get("istape")).lower() in {"true", "1", "yes"}
    is_tape = rse.rse_type == "TAPE" or label.endswith("TAPE") or istape
    is_off = rse.availability_read is False and rse.availability_write is False
    reasons = {
        # As Rucio's own RseData.is_tape, and what VOs mark by other attributes.
        TAPE: is_tape or _is_set(rse, "staging_required"),
        "the RSE is volatile, a cache that does not keep files": rse.volatile,
        "the RSE is a staging area, which keeps files for a short time": rse.staging_area,
        f"the RSE has no attribute `{site_attribute}`": not _attribute(rse, site_attribute),
        _obstacles(rse.protocols or []): not doors,
        "the URLs of the RSE are signed by Rucio (attribute `sign_url`)": _is_set(rse, "sign_url"),
        "the RSE is not readable (availability_read is false)": not is_off
        and rse.availability_read is False,
        "the RSE is not writable (availability_write is false)": not is_off
        and rse.availability_write is False,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _purposes(protocol: Protocol) -> list[bool]:
    return [protocol.wan.get(purpose) is not None for purpose in PURPOSES]


def _door(protocol: Protocol) -> Door | None:
    """Return how well Sonar can test by a protocol; None if it cannot, or must not write there."""
    if protocol.scheme not in PREFERRED or url_problem(protocol.url):
        return None
    order = PROTOCOL_ORDER.index(PROTOCOLS[protocol.scheme].name)
    for duty, purposes in enumerate(DUTIES):
        priorities = [protocol.wan.get(purpose) for purpose in purposes]
        if None not in priorities:
            return Door(duty, order, priorities[-1] or 0, protocol.url)
    return None


def _obstacles(protocols: Sequence[Protocol]) -> str:
    """Say why none of these protocols can be tested by."""
    clauses = []
    for protocol in protocols:
        if protocol.scheme not in PREFERRED:
            continue
        if not any(_purposes(protocol)):
            is_local = any(priority is not None for priority in protocol.lan.values())
            clause = "is for the LAN only" if is_local else "is disabled"
        elif not any(_purposes(protocol)[1::2]):
            clause = "is for reading only"
        else:
            clause = f"cannot be used: {url_problem(protocol.url)}"
        clauses.append(f"{protocol.scheme} {clause}")
    others = sorted({row.scheme for row in protocols} - {*PREFERRED})
    if not clauses:
        only = f", only {', '.join(others)}" if others else ""
        return f"the RSE has no protocol that Sonar can test{only}"
    clauses += [f"{scheme} is not tested" for scheme in others]
    return f"the RSE has no protocol that Sonar can test: {', '.join(dict.fromkeys(clauses))}"


def _remarks(rse: Rse, door: Door) -> list[str]:
    """Say where Sonar's choice is not what Rucio writes to, and where test files stay."""
    remarks = []
    writing = sorted(
        (priority, protocol.url)
        for protocol in rse.protocols or []
        if (priority := protocol.wan.get(THIRD_PARTY_WRITE)) is not None
    )
    if not writing:
        remarks.append(f"{rse.rse}: Rucio does not write to it by third-party copy")
    elif (writing[0][0], door.url) not in writing:
        url = writing[0][1]
        scheme = scheme_of(url)
        limit = "" if scheme in ALWAYS_COPIED else f", and only if {UNLIMITED}"
        remarks.append(
            f"{rse.rse}: Sonar tests {door.url}, but Rucio prefers {_shown(url)} for writing if "
            f"the source has a scheme compatible with {scheme}{limit}"
        )
    elif scheme_of(door.url) not in ALWAYS_COPIED:
        remarks.append(f"{rse.rse}: Rucio writes to {door.url} only if {UNLIMITED}")
    if _is_set(rse, "restricted_write"):
        remarks.append(
            f"{rse.rse}: only Rucio administrators can write to it (attribute `restricted_write`)"
        )
    if rse.availability_delete is False:
        remarks.append(
            f"{rse.rse}: files cannot be deleted (availability_delete is false), so test files "
            "remain"
        )
    return remarks


def _shown(url: str) -> str:
    return url if url.isprintable() else ascii(url)


def _attribute_remarks(rses: Sequence[Rse], site_attribute: str) -> list[str]:
    """Say which attributes there are, if none of the RSEs has the one of its site."""
    if not rses or any(_attribute(rse, site_attribute) for rse in rses):
        return []
    counts = Counter(
        name
        for rse in rses
        for name, value in (rse.attributes or {}).items()
        if isinstance(value, str) and name.isprintable()
    )
    names = ", ".join(f"`{name[:80]}`" for name, _ in counts.most_common(MOST_ATTRIBUTES))
    return [
        f"No RSE has the attribute `{site_attribute}`. Set SONAR_RUCIO_SITE_ATTRIBUTE to the one "
        f"that names the site. Attributes with text values: {names or 'none'}"
    ]


def _sites(rses: Sequence[Rse], site_attribute: str) -> tuple[list[SiteFacts], list[str]]:
    """Return sites, with the first value that an RSE has; and where RSEs contradict each other."""
    said: defaultdict[str, defaultdict[str, dict[Any, str]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for rse in rses:
        if site := _attribute(rse, site_attribute):
            fields = said[site]
            for field, value in _site_values(rse).items():
                fields[field].setdefault(value, rse.rse)
    sites = []
    contradictions = []
    for site, fields in said.items():
        first = {field: next(iter(values)) for field, values in fields.items()}
        latitude, longitude = first.pop("position", (None, None))
        sites.append(SiteFacts(name=site, latitude=latitude, longitude=longitude, **first))
        for field, values in fields.items():
            if len(values) > 1:
                each = ", ".join(f"{value} ({name})" for value, name in values.items())
                contradictions.append(
                    f"site {site}: its RSEs differ in {field}: {each}. The first value is used"
                )
    return sites, contradictions


def _site_values(rse: Rse) -> dict[str, Any]:
    """Return what an RSE says of its site, by field."""
    country, tier = _attribute(rse, "country"), re.fullmatch("T?([0-3])", _attribute(rse, "tier"))
    where = position(rse.latitude, rse.longitude)
    values = {
        "cloud": _attribute(rse, "cloud") or None,
        "tier": int(tier[1]) if tier else None,
        "country": country if re.fullmatch("[A-Z]{2}", country) else None,
        "position": where if where != (None, None) else None,
    }
    return {field: value for field, value in values.items() if value is not None}


def _attribute(rse: Rse, name: str) -> str:
    """Return an attribute as text; empty if it has none, or one that is no text and no number."""
    value = (rse.attributes or {}).get(name)
    is_said = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip()[:80] if is_said else ""


def _is_set(rse: Rse, name: str) -> bool:
    """Say whether an attribute has any value but false, as Rucio does."""
    value = (rse.attributes or {}).get(name)
    return bool(value) and str(value).lower() != "false"
