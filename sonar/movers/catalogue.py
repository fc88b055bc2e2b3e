"""What there is to move files with: a description of each mover, which is loaded only when used.

Registry, forms, API, planner, docs and workers read a mover's facts here and nowhere else. A new
mover is an entry of ``MOVERS`` and the module that it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from shutil import which
from typing import Protocol

from django.conf import settings

from sonar.notation.addresses import CredentialKind, scheme_of


class Need(Protocol):
    """Something that a worker needs to run a mover."""

    @property
    def label(self) -> str:
        """Return what it is, as a table says it."""

    def missing(self) -> str:
        """Say in a few words what is not there; empty if it is."""


@dataclass(frozen=True)
class PythonPackage:
    """A package that Python can import, not one within another."""

    module: str

    @property
    def label(self) -> str:
        return f"the Python package {self.module}"

    def missing(self) -> str:
        return "" if find_spec(self.module) else f"{self.label} is not installed"


@dataclass(frozen=True)
class Program:
    """A program on the worker's search path, and what Debian calls the package that has it."""

    name: str
    debian: str

    @property
    def label(self) -> str:
        return f"the program {self.name} (Debian package {self.debian})"

    def missing(self) -> str:
        return "" if which(self.name) else f"{self.label} is not on the PATH"


@dataclass(frozen=True)
class Setting:
    """A setting that a worker has to have."""

    name: str

    @property
    def label(self) -> str:
        return f"the setting {self.name}"

    def missing(self) -> str:
        return "" if getattr(settings, self.name) else f"{self.label} is empty"


DEFAULT = "http-tpc"
# A mesh of all may have hundreds that do not fit: the first ones say what is wrong.
NAMED_MISFITS = 5


class Clock(StrEnum):
    """Who times what a mover moves, and from when to when: rates by two are not pooled unsaid."""

    REQUEST = "request"
    TOOL = "tool"
    SERVICE = "service"


CLOCKS: Mapping[str, str] = {
    Clock.REQUEST.value: "from request to result",
    Clock.TOOL.value: "from the start of the program to the end of the copy",
    Clock.SERVICE.value: "as reported by the service, without the time in its queue",
}
SET_UP_SECONDS: Mapping[str, tuple[float, float]] = {Clock.SERVICE.value: (0.1, 0.9)}
"""How much longer a clock runs than the file grows, at least and at most, where nothing is busy."""


@dataclass(frozen=True)
class Parameter:
    """How a transfer is asked for, where not every mover obeys."""

    default: int | None
    refusal: str
    """Why a mover that does not obey takes no other value, and what is allowed."""


PARAMETERS: Mapping[str, Parameter] = {
    "streams": Parameter(1, "cannot set the number of streams: “streams” must be 1"),
    "tcp_buffer_bytes": Parameter(
        None, "cannot set TCP buffers: “tcp_buffer_bytes” must be left empty"
    ),
    "scitag": Parameter(None, "cannot send a flow label: “scitag” must be left empty"),
}


@dataclass(frozen=True)
class MoverDescription:
    """A mover as everybody but itself knows it."""

    name: str
    """Up to 20 letters, digits and dashes: part of results, for ever."""
    label: str
    path: str
    """The class, as ``package.module:Name``; called without arguments once it is used."""
    schemes: frozenset[str]
    """Of the base URLs at both ends of a link."""
    modes: tuple[str, ...]
    """Supported active ends: for ``pull`` the destination, for ``push`` the source."""
    only_modes: Mapping[str, str] = field(default_factory=dict)
    """The one mode that there is, for schemes that have no other."""
    clock: str = Clock.REQUEST.value
    parameters: frozenset[str] = frozenset()
    """Those of ``PARAMETERS`` that it obeys; the others are left as they are by default."""
    most_streams: int | None = None
    """The largest number of streams that it supports; None if it has no known limit."""
    credentials: frozenset[CredentialKind] = frozenset()
    """Kinds of credential that it receives of its endpoints; no other leaves its file."""
    one_credential: bool = False
    """Whether it shows one credential to both ends, which then must have the same one."""
    needs: tuple[Need, ...] = ()
    """Programs, packages and settings that a worker needs to run it."""
    asks_service: bool = False
    """Whether it asks a service to move the file: meshes say which, and it chooses which end does
    the work, whatever the mode of the order."""
    simulated: bool = False
    """Whether its rates say nothing of a network."""
    of_network: bool = False
    """Whether it moves no file: the worker is one end itself, and results are NetworkResults."""

    def known_mode(self, mode: str) -> str:
        """Return the mode in which a transfer that was ordered in ``mode`` was carried out.

        It is empty where nobody tells which end did the work, and it may have been neither.
        """
        return "" if self.asks_service else mode

    def schemes_in(self, mode: str) -> frozenset[str]:
        """Return the schemes whose files it moves in this mode."""
        return frozenset(name for name in self.schemes if self.only_modes.get(name, mode) == mode)

    def what_it_moves(self, mode: str) -> str:
        """Say files of which schemes it moves, in this mode where that makes a difference."""
        moved = sorted(self.schemes_in(mode))
        schemes = f"URL scheme{'s' * (len(moved) > 1)} {', '.join(moved)}"
        return f"supports the {schemes}" + (f" in {mode} mode" if self.only_modes else "")

    def scheme_mismatch(self, mode: str, base_urls: Mapping[str, str]) -> str:
        """Say in a sentence which endpoints it cannot move files of; empty if it can all.

        ``base_urls`` has the base URL of each endpoint by its name.
        """
        schemes = self.schemes_in(mode)
        misfits = [
            f"{name} ({scheme})"
            for name, url in sorted(base_urls.items())
            if (scheme := scheme_of(url)) not in schemes
        ]
        if not misfits:
            return ""
        named, more = ", ".join(misfits[:NAMED_MISFITS]), len(misfits) - NAMED_MISFITS
        others = f" and {more} more" if more > 0 else ""
        moved = self.what_it_moves(mode)
        return f"The transfer tool {self.name} {moved}, not those of {named}{others}."

    def refusals(self, mode: str, **parameters: int | None) -> dict[str, str]:
        """Say by field what it does not obey, and what is allowed; nothing if it obeys all.

        ``parameters`` are some of ``PARAMETERS``.
        """
        sentences = {}
        if mode not in self.modes:
            allowed = " or ".join(self.modes)
            sentences["mode"] = (
                f"The transfer tool {self.name} does not support mode {mode}: “mode” must be "
                f"{allowed}."
            )
        for name, value in parameters.items():
            parameter = PARAMETERS[name]
            if name not in self.parameters and value != parameter.default:
                sentences[name] = f"The transfer tool {self.name} {parameter.refusal}."
        most, streams = self.most_streams, parameters.get("streams")
        if most and streams and streams > most:
            sentences["streams"] = (
                f"The transfer tool {self.name} uses at most {most} streams: “streams” must be "
                f"from 1 to {most}."
            )
        return sentences

    def missing(self) -> list[str]:
        """Name the programs, packages and settings that this process lacks to run it."""
        return list(filter(None, (need.missing() for need in self.needs)))


HERE = Setting("SONAR_NETWORK_ENDPOINT")
SETPRIV = Program("setpriv", "util-linux")
XRDCP = Program("xrdcp", "xrootd-client")
MOVERS: tuple[MoverDescription, ...] = (
    MoverDescription(
        name=DEFAULT,
        label="HTTP third-party copy: one server fetches the file from the other, or sends it",
        path="sonar.movers.http.tpc:HttpTpc",
        schemes=frozenset({"http", "https", "dav", "davs"}),
        modes=("pull", "push"),
        parameters=frozenset({"streams", "scitag"}),
        credentials=frozenset({CredentialKind.BEARER_TOKEN}),
        needs=(PythonPackage("urllib3"),),
    ),
    MoverDescription(
        name="xrootd",
        label="root:// third-party copy with xrdcp: the destination fetches the file from the "
        "source",
        path="sonar.movers.programs.xrootd:Xrootd",
        schemes=frozenset({"root", "xroot"}),
        modes=("pull",),
        clock=Clock.TOOL.value,
        parameters=frozenset({"streams", "scitag"}),
        most_streams=15,
        credentials=frozenset({CredentialKind.BEARER_TOKEN, CredentialKind.X509_PROXY}),
        one_credential=True,
        needs=(XRDCP, SETPRIV),
    ),
    MoverDescription(
        name="gfal2",
        label="third-party copy with gfal-copy, which supports several protocols",
        path="sonar.movers.programs.gfal2:Gfal2",
        schemes=frozenset({"http", "https", "dav", "davs", "root", "xroot", "ftp"}),
        modes=("pull", "push"),
        only_modes={"root": "pull", "xroot": "pull", "ftp": "push"},
        clock=Clock.TOOL.value,
        credentials=frozenset({CredentialKind.BEARER_TOKEN, CredentialKind.X509_PROXY}),
        one_credential=True,
        needs=(Program("gfal-copy", "gfal2-util-scripts"), XRDCP, SETPRIV),
    ),
    MoverDescription(
        name="gridftp",
        label="GridFTP with globus-url-copy, without GSI: the source sends the file",
        path="sonar.movers.programs.gridftp:GridFtp",
        schemes=frozenset({"ftp"}),
        modes=("push",),
        clock=Clock.TOOL.value,
        parameters=frozenset({"streams", "tcp_buffer_bytes"}),
        needs=(Program("globus-url-copy", "globus-gass-copy-progs"), SETPRIV),
    ),
    MoverDescription(
        name="fts3",
        label="FTS3: Sonar submits the copy to an FTS service, which runs it from its own queue",
        path="sonar.movers.fts3.mover:Fts3",
        # Not root: FTS times such a copy in steps of 2.5 s.
        schemes=frozenset({"http", "https", "dav", "davs"}),
        modes=("pull",),
        clock=Clock.SERVICE.value,
        parameters=frozenset({"streams", "scitag"}),
        credentials=frozenset({CredentialKind.BEARER_TOKEN}),
        needs=(PythonPackage("urllib3"),),
        asks_service=True,
    ),
    MoverDescription(
        name="iperf3",
        label="network test with iperf3, without files: a worker sends data to a server or "
        "receives it",
        path="sonar.movers.programs.iperf3:Iperf3",
        schemes=frozenset({"iperf3"}),
        modes=("pull", "push"),
        clock=Clock.TOOL.value,
        parameters=frozenset({"streams", "tcp_buffer_bytes"}),
        needs=(Program("iperf3", "iperf3"), SETPRIV, HERE),
        of_network=True,
    ),
    MoverDescription(
        name="fake",
        label="simulation for demonstrations: no data is moved, and each link has a constant rate",
        path="sonar.movers.fake:FakeMover",
        schemes=frozenset({"fake"}),
        modes=("pull", "push"),
        parameters=frozenset({"streams", "tcp_buffer_bytes", "scitag"}),
        credentials=frozenset({CredentialKind.BEARER_TOKEN}),
        simulated=True,
    ),
)


NETWORK_SCHEMES = frozenset(
    scheme for mover in MOVERS if mover.of_network for scheme in mover.schemes
)


def names() -> list[str]:
    return [mover.name for mover in MOVERS]


def describe(name: str) -> MoverDescription:
    """Return the description of a mover; ValueError names those there are."""
    description = kept(name)
    if not description.path:
        raise ValueError(no_such_mover(name))
    return description


def kept(name: str) -> MoverDescription:
    """Return the description of a mover that a row names; of one that no longer exists its name."""
    described = next((mover for mover in MOVERS if mover.name == name), None)
    return described or MoverDescription(
        name, label="", path="", schemes=frozenset(), modes=(), clock=""
    )


def no_such_mover(name: str) -> str:
    return f"there is no transfer tool {name!r}; allowed: {', '.join(names())}"


def carries_files(base_url: str) -> bool:
    """Say whether there are files at a base URL, and not only a server that measures a network."""
    return scheme_of(base_url) not in NETWORK_SCHEMES
