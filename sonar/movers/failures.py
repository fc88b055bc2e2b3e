"""Whose failure it is: what storage servers and programs say of it, read from one table.

The same words of the same server mean the same, whichever mover carried them. ``judge`` reads each
aspect of a failure from the first row of ``ROWS`` that says something about it:

- the endpoint. A program or service that names it comes first, then what a server says of itself
  or of the other endpoint: which one that is depends on the mode, which gfal2 and FTS state in
  their text. An endpoint is also named by the path of its file, or by its host and port. Where the
  endpoint cannot be known, the failure is of the way between them (``Where.TRANSFER``);
- its kind, else by the HTTP status or the code of errno;
- whether it lasts, and the phase, where a row knows better than the kind.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from sonar.movers.base import MoverError, Order, Where
from sonar.movers.file_address import host_of, path_of
from sonar.movers.http.failures import lasts

Error = TypeVar("Error", bound=MoverError)

LONGEST_TEXT = 2_000
"""Characters of a text that are looked at."""


class Kind(StrEnum):
    NO_SPACE = "no space"
    NO_FILE = "no file"
    NO_DIRECTORY = "no directory"
    EXISTS = "file exists"
    DENIED = "denied"
    EXPIRED = "expired"
    CERTIFICATE = "certificate"
    NO_NAME = "name not found"
    UNREACHABLE = "unreachable"
    BROKEN = "broke off"
    STALLED = "stalled"
    BUSY = "busy"
    SEARCHING = "looking for the file"
    LIMIT = "limit"
    POLICY = "policy"
    CHECKSUM = "checksum"
    INCOMPLETE = "incomplete"
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"
    SERVER = "server error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    PREPARATION = "preparation"
    TRANSFER = "transfer"
    VERIFICATION = "verification"
    SERVICE = "service"
    """In the service that moves files: no storage server was asked."""


class Of(StrEnum):
    """Whose failure it is, where the text alone does not say it."""

    NAMED = "named"
    """The endpoint that the row's group ``end`` has matched."""
    ACTIVE = "active"
    """The endpoint that was sent COPY; of a test by iperf3 the worker's."""
    PASSIVE = "passive"
    PEER = "peer"
    """The server that the speaker talks to."""
    WAY = "way"
    """The way between both, or the peer while COPY is not answered yet: nothing moves then."""
    WRITER = "writer"
    """The server that writes: the one that refuses for lack of space, or the destination."""


LASTING = frozenset(
    {
        *(Kind.NO_FILE, Kind.NO_DIRECTORY, Kind.EXISTS, Kind.DENIED, Kind.EXPIRED),
        *(Kind.CERTIFICATE, Kind.LIMIT, Kind.POLICY, Kind.UNSUPPORTED, Kind.REFUSED),
    }
)
"""Kinds that another attempt does not change, unless the status or a row says otherwise."""
PHASES = {
    **dict.fromkeys(Kind, Phase.PREPARATION),
    **dict.fromkeys((Kind.CHECKSUM, Kind.INCOMPLETE), Phase.VERIFICATION),
    **dict.fromkeys((Kind.NO_SPACE, Kind.BROKEN, Kind.STALLED, Kind.SERVER), Phase.TRANSFER),
    **dict.fromkeys((Kind.CANCELLED, Kind.UNKNOWN), Phase.TRANSFER),
}
STATUS_KINDS = {
    **dict.fromkeys((401, 402, 403, 407), Kind.DENIED),
    **dict.fromkeys((404, 410), Kind.NO_FILE),
    **dict.fromkeys((405, 501), Kind.UNSUPPORTED),
    **dict.fromkeys((408, 504), Kind.STALLED),
    **dict.fromkeys((202, 423, 425, 429, 503), Kind.BUSY),
    409: Kind.NO_DIRECTORY,
    502: Kind.UNREACHABLE,
    507: Kind.NO_SPACE,
}
ERRNO_KINDS = {
    **dict.fromkeys((1, 13, 30), Kind.DENIED),
    2: Kind.NO_FILE,
    17: Kind.EXISTS,
    95: Kind.UNSUPPORTED,
    **dict.fromkeys((28, 122), Kind.NO_SPACE),
    **dict.fromkeys((111, 112, 113), Kind.UNREACHABLE),
    110: Kind.STALLED,
}
FIRST_OF_SERVER = 500
LASTING_ERRNO = frozenset({1, 2, 13, 17, 20, 21, 22, 36, 95})


class Row(NamedTuple):
    words: str
    """A regular expression, in any case, of a text whose paths and URLs are ``/``."""
    end: Of | Where | None
    kind: Kind | None
    seen: str
    lasts: bool | None = None
    phase: Phase | None = None


ROWS = (
    # Phases that words tell, whatever else they say.
    Row(r"source and user-defined", None, Kind.CHECKSUM, "FTS 3.14", lasts=True,
        phase=Phase.PREPARATION),
    Row(r"(?-i:DESTINATION CHECKSUM)|^verification failed|(size|checksum)s? mismatch", None, None,
        "gfal2, FTS 3.14, dCache", phase=Phase.VERIFICATION),
    Row(r"checksums? do(es)? not match", None, None, "FTS 3.14", phase=Phase.VERIFICATION),
    Row(r"rejected GET|received 0 B\b", None, None, "dCache", phase=Phase.PREPARATION),
    # Before the copy FTS looks whether the file is absent, after it how long it is.
    Row(r"(?-i:DESTINATION) \[2\] Result", None, Kind.INCOMPLETE, "FTS 3.14", lasts=False,
        phase=Phase.VERIFICATION),
    # A program or service that names the endpoint. Of nested errors the inner one comes first:
    # it is what the destination says of its source.
    Row(r"^\W*(?-i:(?P<end>SOURCE|DESTINATION))\b", Of.NAMED, None, "FTS 3.14, gfal2",
        phase=Phase.PREPARATION),
    Row(r"\((?P<end>source|destination)\)", Of.NAMED, None, "xrdcp 4 to 6, xrootd#2326"),
    Row(r"(?-i:\b(?P<end>SOURCE|DESTINATION)) ", Of.NAMED, None, "gfal2 2.23",
        phase=Phase.PREPARATION),
    Row(r"could not \w+ the (?P<end>source|destination)\b", Of.NAMED, None, "gfal2-util"),
    Row(r"\b(?P<end>source|destination) does not support", Of.NAMED, Kind.UNSUPPORTED, "xrdcp 6"),
    Row(r"unknown (?P<end>source|destination) host", Of.NAMED, Kind.NO_NAME, "dCache", lasts=False),
    # The server that was sent COPY, of itself where the words would mean the other one.
    Row(r"connection to local/private address\w* is forbidden", Of.ACTIVE, Kind.POLICY, "XRootD 6"),
    Row(r"failed to load CRL|no valid CRL|category: CRL|SSL CA cert", Of.ACTIVE, Kind.CERTIFICATE,
        "XRootD with curl, xrootd#2067; dCache", lasts=False),
    Row(r"problem with the local SSL certificate", Of.ACTIVE, Kind.CERTIFICATE, "curl"),
    Row(r"no bytes have been \w+", Where.TRANSFER, Kind.STALLED,
        "XRootD 5 and 6, as an error of the server's file system"),
    Row(r"local filesystem: .*(no space|quota)", Of.ACTIVE, Kind.NO_SPACE, "XRootD 5 and 6",
        lasts=False),
    # Closing a file that came in part fails: whatever broke the copy is hidden by it.
    Row(r"failure when closing file handle", Where.TRANSFER, None, "XRootD, xrootd#2878"),
    Row(r"provided targetsize", Where.TRANSFER, Kind.INCOMPLETE, "EOS 5, xrootd#2067"),
    Row(r"local filesystem", Of.ACTIVE, None, "XRootD 5 and 6"),
    Row(r"internal (logic|state) error|failed to (initialize|finalize)|libcurl multi-handle",
        Of.ACTIVE, Kind.SERVER, "XRootD 5 and 6"),
    Row(r"no empty buffers|failed to open/read local data", Of.ACTIVE, Kind.SERVER,
        "XRootD 5, xrootd#2108, #2470"),
    Row(r"transfer not accepted|failed to select pool", Of.ACTIVE, Kind.BUSY, "dCache"),
    Row(r"(dcache|pool) is shutting down", Of.ACTIVE, Kind.BUSY, "dCache", phase=Phase.TRANSFER),
    Row(r"TransferManager restarted|transfer service unavailable", Of.ACTIVE, Kind.SERVER,
        "dCache"),
    Row(r"file has no checksum", Of.ACTIVE, Kind.CHECKSUM, "dCache", lasts=True),
    Row(r"could not COPY\.", Of.ACTIVE, None, "davix 0.8"),
    # The active end died, or the time limit of FTS or gfal2 is over.
    Row(r"connection terminated abruptly", Where.TRANSFER, Kind.BROKEN, "davix 0.8"),
    # The server that was sent COPY, of the other one.
    Row(r"remote host returned '\d{3}", Of.PASSIVE, None, "XRootD 6, asking for a size"),
    Row(r"remote side\b.{0,120}failed with status", Of.PASSIVE, None, "XRootD 4 to 6"),
    Row(r"while fetching (remote|file) size", Of.PASSIVE, None, "XRootD 5.3 to 5.8"),
    Row(r"rejected (GET|PUT|HEAD|DELETE)|status code:? \d{3}", Of.PASSIVE, None, "dCache, StoRM"),
    Row(r"remote server not ready", Of.PASSIVE, Kind.BUSY, "dCache"),
    Row(r"remote server failed to provide length", Of.PASSIVE, Kind.STALLED, "dCache"),
    Row(r"GET response contains no content", Of.PASSIVE, Kind.INCOMPLETE, "dCache",
        phase=Phase.TRANSFER),
    Row(r"socket timeout on \w+ \(received (?!0 B)", Where.TRANSFER, Kind.STALLED, "dcache#8003"),
    Row(r"socket timeout on", Of.PASSIVE, Kind.STALLED, "dCache"),
    Row(r"no (useful )?checksum in HEAD", Of.PASSIVE, Kind.CHECKSUM, "dCache", lasts=True),
    Row(r"content-length \(\d+\) does not match", Of.PASSIVE, Kind.INCOMPLETE, "dCache"),
    # iperf3: the server is at the other endpoint than the worker, which is the active one.
    Row(r"unable to connect to server.*(name or service not known|no address)", Of.PASSIVE,
        Kind.NO_NAME, "iperf3 3.12", lasts=True),
    Row(r"server is busy running", Of.PASSIVE, Kind.BUSY, "iperf3 3.12"),
    Row(r"test authorization failed", Of.PASSIVE, Kind.DENIED, "iperf3 3.12"),
    Row(r"server's maximum permitted limit|larger than server limit", Of.PASSIVE, Kind.LIMIT,
        "iperf3 3.18"),
    Row(r"server test duration expired", Of.PASSIVE, Kind.LIMIT, "iperf3 3.18", lasts=False),
    Row(r"ensure other side is iperf3", Of.PASSIVE, Kind.UNSUPPORTED, "iperf3 3.12"),
    Row(r"TCP_CONGESTION", Where.CONTROL, Kind.UNSUPPORTED, "iperf3 3.18: this machine"),
    Row(r"parameter error|socket buffer size|unable to create a new stream", Where.CONTROL,
        Kind.LIMIT, "iperf3 3.12: this machine"),
    # The destination file, whoever speaks.
    Row(r"(?<!if remote )file (already )?exists?\b|already exists|exists and overwrite",
        Where.DESTINATION, Kind.EXISTS, "XRootD, StoRM, gfal2, FTS"),
    Row(r"is a directory|\[30(16|18)\]", Where.DESTINATION, Kind.EXISTS, "XRootD, xrootd#1366"),
    Row(r"unable to (create|write) /|write (access to )?the file|write into HDFS",
        Where.DESTINATION, None, "XRootD, HDFS"),
    Row(r"third.party transfer error|error (fetching|pushing|checking)\b", Of.PASSIVE, None,
        "StoRM"),
    Row(r"\bcopy HTTP \d", Of.ACTIVE, None, "davix 0.8: the answer to COPY"),
    # XRootD 5 answers a pull only once the source has answered it.
    Row(r": copy\b.{0,80}(timed out|timeout)", Where.TRANSFER, Kind.STALLED, "davix 0.8"),
    Row(r"no space left|insufficient storage|disk (is )?full|not enough (free |disk )?space"
        r"|no ?free ?space|out of space|reserve space|pools are full|no write pools|\[30(09|21)\]",
        Of.WRITER, Kind.NO_SPACE, "all", lasts=False),
    Row(r"disk quota|quota (not defined|exceeded|exhausted)|over quota|quota-not-exceeded",
        Of.WRITER, Kind.NO_SPACE, "EOS, dCache, XFS", lasts=False),
    Row(r"no read pools|file is unavailable|not online", Where.SOURCE, Kind.BUSY, "dCache, SRM"),
    # FTS of itself.
    Row(r"no share configured", None, Kind.LIMIT, "FTS 3.14"),
    Row(r"refresh(ed)? token", None, Kind.EXPIRED, "FTS 3.14", lasts=False),
    Row(r"was stalled|probably stalled|performance marker timeout|timeout has been exceeded", None,
        Kind.STALLED, "FTS 3.14, gfal2 over gsiftp"),
    Row(r"\bcancell?ed\b|user banned|storage banned", None, Kind.CANCELLED, "FTS 3.13, 3.14"),
    # What it is. The endpoint is the peer of the speaker for what happens on the way there.
    Row(r"checksums?\b.{0,40}\bmatch|checksum (error|mismatch)"
        r"|\b(adler32|md5)\b.{0,60}( != |match)", None, Kind.CHECKSUM, "gfal2, FTS, xrdcp, dCache"),
    Row(r"size mismatch|file size \(", None, Kind.INCOMPLETE, "FTS 3.14", lasts=False),
    # The key of a third-party copy, which waited for longer in the queue of the destination.
    Row(r"(tpc|;) (authorization|key) expired", None, Kind.EXPIRED, "XRootD, xrootd#2326; EOS 5",
        lasts=False),
    Row(r"(token|proxy|credential|macaroon)s?\b.{0,20}\bexpired|expired (token|proxy)", None,
        Kind.EXPIRED, "XRootD, FTS, GSI"),
    Row(r"peer certificate|certificate\b.{0,20}(verif|has expired|is not|revoked|problem)"
        r"|certificate\b.{0,60}(rejected|n.t match|not match)"
        r"|issuer is not trusted|self.signed|PKIX path|CRL has expired|unable to get local issuer"
        r"|alert .{0,20}certificate",
        Of.PEER, Kind.CERTIFICATE, "curl, Neon, Java, OpenSSL", lasts=True),
    Row(r"could(n't| not) resolve|unknown ?(\w+ )?host|name or service not known"
        r"|name resolution|curl error \(6\)|invalid address", Of.PEER, Kind.NO_NAME,
        "curl, davix, Java, xrdcp"),
    Row(r"could(n't| not) connect|failed to connect|unable to connect|connect to .{1,120} failed"
        r"|connection (failed for|refused|error)|curl error \(7\)", Of.PEER, Kind.UNREACHABLE,
        "curl, davix, dCache, Java, xrdcp, globus"),
    Row(r"no route to host|network is unreachable|host is down|servers are reachable", Of.PEER,
        Kind.UNREACHABLE, "the system, XRootD"),
    Row(r"(SSL connect|TLS) error|the handshake|handshake (fail|problem)|curl error \(35\)",
        Of.PEER, Kind.UNREACHABLE, "curl, Neon, Java, xrdcp"),
    Row(r"timed? ?out|timeout|operation expired|operation too slow", Of.WAY, Kind.STALLED,
        "curl, Neon, xrdcp"),
    Row(r"partial file|receiving data from the peer|returned nothing|framing layer|reset by peer",
        Of.WAY, Kind.BROKEN, "curl"),
    Row(r"broken pipe|sending data|send PUT request|premature end|early EOF", Of.WAY, Kind.BROKEN,
        "dCache, StoRM"),
    Row(r"(socket|stream) disconnect|end.of.file|proper state|closed unexpectedly"
        r"|server has terminated", Of.WAY, Kind.BROKEN, "xrdcp, globus, iperf3"),
    Row(r"failed to open local resource|no servers are available to read", None, Kind.SEARCHING,
        "the manager of an XRootD cluster, for a name that it has not looked up before",
        lasts=False),
    Row(r"too many (transfers|requests|connections|open files)|\bbusy\b|overload|\[30(03|24)\]"
        r"|try again later|temporarily|upload in progress|is locked", None, Kind.BUSY,
        "dCache, XRootD, globus", lasts=False),
    Row(r"not supported|unsupported|disallowed scheme|does not (support|allow)", None,
        Kind.UNSUPPORTED, "XRootD, gfal2, davix"),
    Row(r"permission (was )?(denied|refused)|\bdenied\b|not (authori[sz]ed|authenticated|permitted)"
        r"|unauthori[sz]ed|auth(entication|orization)? (failed|error)|login incorrect"
        r"|no protocols left|read-only file ?system|\b530[ -]|(\[|status )30(10|25|30)\b", None,
        Kind.DENIED, "all"),
    Row(r"no such file|not found|does not exist|(\[|status )3011\b", None, Kind.NO_FILE, "all"),
    Row(r"\bparent\b", None, Kind.NO_DIRECTORY, "StoRM"),
    Row(r"closing file handle", None, Kind.INCOMPLETE, "XRootD"),
    Row(r"internal (server )?error|input/output error|cannot allocate|system error in write"
        r"|\[30(05|07|08|12)\]", None, Kind.SERVER, "XRootD, globus"),
)  # fmt: skip
COMPILED = tuple((re.compile(row.words, re.IGNORECASE), row) for row in ROWS)

# What XRootD and StoRM answer to COPY themselves once they have asked the other server.
ASKED_BOTH = re.compile(
    r"^failure: (?!unable to )|third.party transfer error|HTTP library fail", re.IGNORECASE
)
# Of gfal2 and davix: what COPY was answered, and the verdict that its answer ended with.
COPY_ANSWER = re.compile(r"(last attempt|with error): copy\b|\bcopy HTTP \d", re.IGNORECASE)
COPY_VERDICT = re.compile(r"\btransfer (failed|failure|aborted)\b", re.IGNORECASE)
MODE = re.compile(r"3rd (pull|push)|streamed", re.IGNORECASE)
PASSIVE_STATUS = re.compile(
    r"(?:returned '|status code:? |rejected \w+: |transfer error: |exists: "
    r"|(?:fetching|pushing) /: |request after [^:]{1,40}: )([1-5]\d\d)\b",
    re.IGNORECASE,
)
STATUS = re.compile(r"\bHTTP ([1-5]\d\d)\b", re.IGNORECASE)
# A whole path, of a URL too; a full stop, say, may follow it.
PATH = re.compile(r"""(?:\b\w+://[^/\s]+/*)?(/[^\s;,"'?]*[^\s;,."':)?])""")
ADDRESS = re.compile(r"""\b\w+://[^\s;,"']*[^\s;,."':)]|(?<![\w.])/[^\s;,"']*[^\s;,."':)]""")
# Both files of a copy, which XRootD adds to each error; and what StoRM did, with the other one.
BOTH_FILES = re.compile(r", (?:local|remote)=[^,\s]*")
DOING = re.compile(r"\b(fetching|pushing) [^\s:]+:\S*")
HOST = re.compile(r"(?:unable to connect|authentication) to (\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class Failure:
    """What the words of a server or a program mean."""

    where: Where
    kind: Kind
    phase: Phase
    lasts: bool

    def error(self, message: str) -> MoverError:
        return self.error_as(MoverError, message)

    def error_as(self, error_class: type[Error], message: str) -> Error:
        error = error_class(self.where, message, permanent=self.lasts)
        error.kind, error.phase = self.kind, self.phase
        return error


def judge(
    text: str,
    order: Order | None = None,
    *,
    status: int = 0,
    errno: int = 0,
    is_verdict: bool = False,
) -> Failure:
    """Return what a text means.

    A COPY that was refused with this ``status`` has it as its answer. With ``is_verdict`` the
    active end reports how its copy ended. Otherwise a program or service says it, and ``errno`` is
    the code that it gives. The mode is that of the order, unless the text states one.
    """
    text = BOTH_FILES.sub("", " ".join(text[:LONGEST_TEXT].split()))
    words = ADDRESS.sub("/", text)
    active, passive = _ends(words, order)
    refused = bool(status) or bool(COPY_ANSWER.search(words))
    peer = otherwise = None
    if refused:
        peer = passive if status and ASKED_BOTH.search(words) else active
        otherwise = active
    elif is_verdict or COPY_VERDICT.search(words):
        peer = passive
    where, kind, lasting, phase = _first(
        words,
        {
            Of.ACTIVE: active,
            Of.PASSIVE: passive,
            Of.PEER: peer,
            Of.WAY: peer if refused else None,
            Of.WRITER: active if refused else Where.DESTINATION,
        },
    )
    if inner := PASSIVE_STATUS.search(words) or (None if status else STATUS.search(words)):
        status = int(inner[1])
    elif refused and where is passive:
        status = 0  # that of COPY says nothing of the server that was not sent it
    if where is None and not refused and order:
        where = named_end(order, DOING.sub("", text))
    where = where or otherwise or Where.TRANSFER
    # gfal2 gives 13 for a TLS handshake that timed out, too: words count before the code.
    by_code = kind is None and errno in LASTING_ERRNO
    kind = _kind(kind, where, status, errno, is_sure=not refused or where is passive)
    if lasting is None:
        lasting = lasts(status) if status else by_code or kind in LASTING
    if refused:
        phase = Phase.PREPARATION
    return Failure(where, kind, phase or PHASES[kind], lasting)


def _ends(words: str, order: Order | None) -> tuple[Where | None, Where | None]:
    """Return the active end and the passive one, by the mode that is stated last."""
    stated = [match[1] for match in MODE.finditer(words)]
    mode = (stated[-1] or "").lower() if stated else order.mode if order else ""
    ends = {
        "pull": (Where.DESTINATION, Where.SOURCE),
        "push": (Where.SOURCE, Where.DESTINATION),
    }
    return ends.get(mode, (None, None))


def _first(
    words: str, ends: dict[Of, Where | None]
) -> tuple[Where | None, Kind | None, bool | None, Phase | None]:
    """Return of each aspect what the first row says of it; None where no row does."""
    where, kind, lasting, phase = None, None, None, None
    for pattern, row in COMPILED:
        if not (match := pattern.search(words)):
            continue
        if where is None and row.end is Of.NAMED:
            where = Where(match["end"].lower())
        elif where is None and row.end is not None:
            where = ends[row.end] if isinstance(row.end, Of) else row.end
        if kind is None:
            kind, lasting = row.kind, row.lasts
        phase = phase or row.phase
    return where, kind, lasting, phase


def _kind(kind: Kind | None, where: Where, status: int, errno: int, *, is_sure: bool) -> Kind:
    """Return the kind that words tell, or else a code.

    The destination does not find a directory: not sure where the status of COPY alone says so.
    """
    by_words = kind is not None
    if kind is None and status:
        kind = STATUS_KINDS.get(status, Kind.SERVER if status >= FIRST_OF_SERVER else Kind.REFUSED)
    kind = kind or ERRNO_KINDS.get(errno, Kind.UNKNOWN)
    if kind is Kind.NO_FILE and where is Where.DESTINATION and (by_words or is_sure):
        return Kind.NO_DIRECTORY
    return Kind.REFUSED if kind is Kind.NO_DIRECTORY and where is not Where.DESTINATION else kind


def named_end(order: Order, text: str) -> Where | None:
    """Return the end whose file a text names by its path, or whose server by host and port."""
    paths, host = set(PATH.findall(text)), HOST.search(text)
    named = [
        end.where
        for end in (order.source, order.destination)
        if path_of(end, end.url) in paths or (host and host[1].rstrip(".") == host_of(end))
    ]
    return named[0] if len(named) == 1 else None
