"""The ways of misbehaving: each a small function, a name and a sentence, in one table.

`WAYS` is what tests and long runs take. A way spoils some methods and leaves the others to
`decent`, so that it may be met while a source is prepared, moved, verified or deleted. What no
client could find out is not in it: a success with a file that is described as whole.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache

from tests.storage.hostile import decent
from tests.storage.hostile.decent import Visit
from tests.storage.hostile.disk import Content, file_of, noise
from tests.storage.hostile.wire import LAST_CHUNK, Head, chunk, head_of, marker

Act = Callable[[Visit], Awaitable[None]]

WITH_BODY = frozenset({"GET", "PUT", "COPY", "MOVE", "DELETE", "MKCOL"})
EVERY = WITH_BODY | {"HEAD"}
COPY = frozenset({"COPY"})

# What a measurement asks of an end, by its role.
PREPARED = frozenset({"HEAD", "MKCOL", "PUT", "MOVE"})
ROLES: dict[str, frozenset[str]] = {
    "source of a pull": PREPARED | {"GET"},
    "destination of a pull": frozenset({"HEAD", "MKCOL", "COPY"}),
    "source of a push": PREPARED | {"COPY"},
    "destination of a push": frozenset({"HEAD", "MKCOL", "PUT"}),
}


@dataclass(frozen=True)
class Way:
    """One way of misbehaving; the first sentence of its function says what it does."""

    act: Act
    methods: frozenset[str] = EVERY
    at_once: bool = False
    """Before a request is read."""
    only_incoming: bool = False
    """Only where the file of a test is there."""
    scheme: str = "http"
    stranger: bool = False
    """Leads to 127.0.0.2, where somebody notes who comes."""
    harmless: bool = False
    """Odd, but allowed: a measurement has to succeed, and what arrived to be verified."""

    @property
    def name(self) -> str:
        return self.act.__name__.replace("_", "-")

    @property
    def sentence(self) -> str:
        return (self.act.__doc__ or "").split("\n")[0]

    def spoils(self, role: str) -> bool:
        """Return whether a measurement with such an end in this role has to fail."""
        if self.harmless:
            return False
        if self.only_incoming and role.startswith("source"):
            return False
        return bool(self.methods & ROLES[role])

    def applies(self, visit: Visit) -> bool:
        """Return whether this request is one that it spoils."""
        if self.only_incoming and not (visit.head.is_of_incoming and visit.file):
            return False
        return visit.head.method in self.methods


WAYS: dict[str, Way] = {}


def way(
    methods: frozenset[str] = EVERY,
    *,
    at_once: bool = False,
    only_incoming: bool = False,
    scheme: str = "http",
    stranger: bool = False,
    harmless: bool = False,
) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        one = Way(
            act,
            methods,
            at_once=at_once,
            only_incoming=only_incoming,
            scheme=scheme,
            stranger=stranger,
            harmless=harmless,
        )
        WAYS[one.name] = one
        return act

    return add


def text_plain(**headers: str) -> str:
    """Return the head of a COPY's answer that ends when the connection does."""
    return head_of(201, **({"Connection": "close"} | headers))


# Connections


@way()
async def never_answers(visit: Visit) -> None:
    """Takes the request and says nothing."""
    await visit.peer.hang()


@way(at_once=True)
async def never_reads(visit: Visit) -> None:
    """Accepts the connection and reads nothing."""
    await visit.peer.hang()


@way(at_once=True, scheme="https")
async def never_shakes_hands(visit: Visit) -> None:
    """Accepts the connection and does not begin TLS."""
    await visit.peer.hang()


@way(at_once=True)
async def closes_at_once(visit: Visit) -> None:
    """Accepts the connection and hangs up."""


@way(at_once=True)
async def resets_at_once(visit: Visit) -> None:
    """Accepts the connection and tears it."""
    visit.peer.reset()


@way()
async def closes_after_the_request(visit: Visit) -> None:
    """Takes the request and hangs up."""


@way(WITH_BODY)
async def closes_after_the_header(visit: Visit) -> None:
    """Announces a body and hangs up."""
    await visit.peer.send(head_of(201, **{"Content-Length": "1000"}))


@way(COPY)
async def resets_in_the_body(visit: Visit) -> None:
    """Tears the connection after a marker."""
    await decent.begin(visit)
    await visit.peer.send(chunk(marker(1)))
    visit.peer.reset()


# Headers


@way()
async def answers_garbage(visit: Visit) -> None:
    """Answers bytes that are no HTTP, and hangs up."""
    await visit.peer.send(noise(10_000))


@way()
async def answers_garbage_for_ever(visit: Visit) -> None:
    """Answers bytes that are no HTTP, without an end."""
    await visit.peer.flood(lambda number: noise(50_000, number))


@way()
async def endless_header(visit: Visit) -> None:
    """Answers one line of a header that never ends."""
    await visit.peer.send("HTTP/1.1 201 Created\r\nX-Long: ")
    await visit.peer.flood(lambda _: b"a" * 50_000)


@way()
async def endless_header_lines(visit: Visit) -> None:
    """Answers ever more lines of a header."""
    await visit.peer.send("HTTP/1.1 201 Created\r\n")
    await visit.peer.flood(lambda number: f"X-Line-{number}: again\r\n".encode())


@way()
async def drips_a_header(visit: Visit) -> None:
    """Answers a header, a byte each second."""
    await visit.peer.drip(b"HTTP/1.1 201 Created\r\nX-Slow: ")


@way()
async def flood_of_100(visit: Visit) -> None:
    """Says `100 Continue` for ever."""
    await visit.peer.flood(lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" * 20)


@way()
async def flood_of_103(visit: Visit) -> None:
    """Says `103 Early Hints` for ever."""
    await visit.peer.flood(lambda _: b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n" * 20)


@way()
async def odd_status_line(visit: Visit) -> None:
    """Answers with a status that is no number."""
    await visit.peer.send("HTTP/1.1 two hundred\r\nContent-Length: 0\r\n\r\n")


@way()
async def status_999(visit: Visit) -> None:
    """Answers with a status that does not exist."""
    await visit.peer.send("HTTP/1.1 999 Nine\r\nContent-Length: 0\r\n\r\n")


@way()
async def http_0_9(visit: Visit) -> None:
    """Answers a body without any header, as in 1991."""
    await visit.peer.send("<html>success: Created</html>\n")


@way(frozenset({"HEAD"}))
async def negative_size(visit: Visit) -> None:
    """Says that files have less than no bytes."""
    await visit.peer.send(head_of(200, **{"Content-Length": "-5"}))


@way(frozenset({"HEAD"}))
async def astronomic_size(visit: Visit) -> None:
    """Says that files have 10^40 bytes."""
    await visit.peer.send(head_of(200, **{"Content-Length": "1" + 40 * "0"}))


@way(frozenset({"HEAD"}))
async def size_is_no_number(visit: Visit) -> None:
    """Says a word where the size is to be."""
    await visit.peer.send(head_of(200, **{"Content-Length": "many"}))


# Bodies


@way(WITH_BODY)
async def content_length_too_long(visit: Visit) -> None:
    """Announces more than it sends, and waits."""
    await visit.peer.send(head_of(201, **{"Content-Length": "9999"}) + "success: Created\n")
    await visit.peer.hang()


@way(COPY)
async def content_length_too_short(visit: Visit) -> None:
    """Announces less than it sends: what is left belongs to the next answer."""
    await visit.peer.send(head_of(201, **{"Content-Length": "5"}) + "success: Created\n")


@way(WITH_BODY)
async def broken_chunks(visit: Visit) -> None:
    """Sends chunks whose lengths are none."""
    await visit.peer.send(head_of(201, **{"Transfer-Encoding": "chunked"}))
    await visit.peer.send("zz\r\nsuccess: Created\r\n-1\r\n\r\n")


@way(WITH_BODY)
async def endless_chunk(visit: Visit) -> None:
    """Announces a chunk of 16 exabytes and sends of it without an end."""
    await visit.peer.send(head_of(201, **{"Transfer-Encoding": "chunked"}))
    await visit.peer.send("ffffffffffffffff\r\n")
    await visit.peer.flood(lambda _: b"a" * 50_000)


@way(WITH_BODY)
async def endless_line(visit: Visit) -> None:
    """Sends a body without an end and without a line."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda _: b"a" * 50_000)


@way(WITH_BODY)
async def endless_lines(visit: Visit) -> None:
    """Sends a body of empty lines without an end."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda _: b"\n" * 50_000)


@way(WITH_BODY)
async def drips_a_body(visit: Visit) -> None:
    """Sends a body, a byte each second."""
    await visit.peer.send(text_plain())
    await visit.peer.drip(b"success")


@cache
def bomb() -> bytes:
    """Return 1 GB of spaces as 1 MB of gzip."""
    return gzip.compress(b" " * 10_000_000) * 100


@way(WITH_BODY)
async def gzip_bomb(visit: Visit) -> None:
    """Sends 1 MB that is 1 GB once it is unpacked."""
    data = bomb()
    headers = {"Content-Encoding": "gzip", "Content-Length": str(len(data))}
    await visit.peer.send(head_of(201, **headers))
    await visit.peer.send(data)


# Markers and verdicts


@way(COPY)
async def markers_without_progress(visit: Visit) -> None:
    """Sends a marker five times a second, of no byte."""
    await visit.peer.send(text_plain())
    await visit.peer.repeat(marker(0), pause=0.2)


@way(COPY)
async def markers_back_and_forth(visit: Visit) -> None:
    """Sends markers whose bytes grow and shrink."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda number: marker(number % 7).encode())


@way(COPY)
async def markers_that_creep(visit: Visit) -> None:
    """Sends markers of one more byte each, for ever."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda number: marker(number).encode())


@way(COPY)
async def flood_of_markers(visit: Visit) -> None:
    """Sends fifty markers at once, and again."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda _: marker(1).encode() * 50)


@way(COPY)
async def flood_of_stripes(visit: Visit) -> None:
    """Sends markers of ever new stripes."""
    await visit.peer.send(text_plain())
    await visit.peer.flood(lambda number: marker(1, stripe=number).encode())


@way(COPY)
async def negative_progress(visit: Visit) -> None:
    """Sends a marker of less than no bytes, and a success."""
    await visit.peer.answer(201, marker(-(10**30)) + "success: Created\n")


@way(COPY)
async def success_before_anything_moved(visit: Visit) -> None:
    """Tells of a success at once, and nothing is there."""
    await visit.peer.answer(201, "success: Created\n")


async def moved(visit: Visit, change: Callable[[Content], Content]) -> None:
    """Make the transfer, with other content than was sent."""
    if "source" in visit.head.headers:
        content = change(await decent.fetch(visit.head.headers["source"]))
        visit.disk.keep(visit.head.path, content)
        return
    content = change(visit.file or Content())
    await decent.give(visit.head.headers["destination"], file_of(content))


async def spoilt(visit: Visit, change: Callable[[Content], Content]) -> None:
    """Make the transfer with other content, and tell of a success."""
    if not await decent.may_begin(visit):
        return
    await moved(visit, change)
    await visit.peer.answer(201, "success: Created\n")


@way(COPY)
async def success_of_another_size(visit: Visit) -> None:
    """Moves half the file and tells of a success."""
    await spoilt(visit, lambda content: replace(content, bytes=content.bytes // 2))


@way(frozenset({"GET", "COPY"}))
async def success_of_other_content(visit: Visit) -> None:
    """Moves as many bytes, but others, and tells of a success."""
    if visit.head.method == "GET":
        size = (visit.file or Content()).bytes
        await visit.peer.send(head_of(200, **{"Content-Length": str(size)}))
        await visit.peer.send(noise(size))
    elif "source" in visit.head.headers:
        await spoilt(visit, lambda content: replace(content, checksum=content.checksum ^ 1))
    else:
        size = (visit.file or Content()).bytes
        await decent.give(visit.head.headers["destination"], noise(size))
        await visit.peer.answer(201, "success: Created\n")


@way(COPY)
async def success_then_silence(visit: Visit) -> None:
    """Moves the file, tells of a success, and does not end its answer."""
    if await decent.may_begin(visit):
        await decent.begin(visit)
        await moved(visit, lambda content: content)
        await visit.peer.send(chunk("success: Created\n"))
        await visit.peer.hang()


@way(COPY)
async def success_then_failure(visit: Visit) -> None:
    """Tells of a success, and then of a failure."""
    await visit.peer.answer(201, "success: Created\nfailure: no\n")


@way(COPY)
async def success_then_more(visit: Visit) -> None:
    """Tells of a success, and then goes on with markers."""
    await visit.peer.answer(201, "success: Created\n" + marker(1))


@way(COPY)
async def huge_failure(visit: Visit) -> None:
    """Tells of a failure in a megabyte of words."""
    await visit.peer.answer(201, "failure: " + "no such luck " * 80_000)


@way(COPY)
async def created_without_a_body(visit: Visit) -> None:
    """Answers 201 without a body, and nothing is there."""
    await visit.peer.answer(201)


@way(COPY)
async def no_content(visit: Visit) -> None:
    """Answers 204, and nothing is there."""
    await visit.peer.send("HTTP/1.1 204 No Content\r\n\r\n")


@way()
async def escapes_and_nuls(visit: Visit) -> None:
    """Answers an error of NUL bytes, escapes for terminals and directions for readers."""
    text = "\0\x1b[2J\x1b]0;owned\x07 \u202egnirts\u202c \r\n\t no"
    await visit.peer.answer(500, text)


# Odd, but allowed


@way(frozenset({"HEAD"}), harmless=True)
async def head_knows_no_directories(visit: Visit) -> None:
    """Answers 404 to HEAD of a directory, which only PROPFIND describes."""
    if visit.disk.is_directory(visit.head.path):
        await visit.peer.answer(404)
    else:
        await decent.look(visit)


@way(frozenset({"HEAD"}), harmless=True)
async def digest_with_a_colon(visit: Visit) -> None:
    """Writes a colon where a checksum has an equals sign."""
    if visit.file is None:
        await decent.look(visit)
        return
    headers = {"Digest": f"Adler32:{visit.file.adler32}"}
    await visit.peer.send(head_of(200, **{"Content-Length": str(visit.file.bytes)} | headers))


@way(frozenset({"MOVE"}), harmless=True)
async def no_rename(visit: Visit) -> None:
    """Answers 501 to MOVE, as an object store does."""
    await visit.peer.answer(501, "rename is not supported by this storage\n")


@way(COPY, harmless=True)
async def verifies_for_long(visit: Visit) -> None:
    """Moves the file, and reports all of it for longer than a stall may last before its verdict."""
    if not await decent.may_begin(visit):
        return
    await decent.begin(visit)
    content = await decent.carry_out(visit)
    for _ in range(8):
        await visit.peer.send(chunk(marker(content.bytes)))
        await asyncio.sleep(0.5)
    await visit.peer.send(chunk("success: Created\n") + LAST_CHUNK)


@way(COPY)
async def verifies_for_ever(visit: Visit) -> None:
    """Moves the file, and reports all of it without an end."""
    if await decent.may_begin(visit):
        await decent.begin(visit)
        content = await decent.carry_out(visit)
        await visit.peer.repeat(chunk(marker(content.bytes)), pause=0.5)


# Redirects


def address_of(head: Head) -> str:
    return f"http://{head.headers.get('host', '127.0.0.1')}"


@way()
async def redirects_to_itself(visit: Visit) -> None:
    """Redirects each request to its own address."""
    await visit.peer.answer(307, Location=address_of(visit.head) + visit.head.target)


@way()
async def redirects_in_a_circle(visit: Visit) -> None:
    """Redirects from one address to another and back."""
    other = visit.head.target.removesuffix("/x") + (
        "" if visit.head.target.endswith("/x") else "/x"
    )
    await visit.peer.answer(307, Location=address_of(visit.head) + other)


@way()
async def redirects_to_a_file(visit: Visit) -> None:
    """Redirects to a file of whoever asks."""
    await visit.peer.answer(307, Location="file:///etc/hostname")


@way()
async def redirects_to_another_host(visit: Visit) -> None:
    """Redirects to a host where nothing listens."""
    await visit.peer.answer(307, Location="http://127.0.0.77:9/elsewhere")


async def lead(visit: Visit, status: int, to: str) -> None:
    """Redirect; {port} is where a stranger of 127.0.0.2 listens, and this endpoint, too."""
    port = visit.head.headers.get("host", "").rpartition(":")[2]
    await visit.peer.answer(status, "stranger-words\n", Location=to.format(port=port))


@way(stranger=True)
async def redirects_to_a_stranger(visit: Visit) -> None:
    """Redirects each request, once and for all, to somebody else's server."""
    await lead(visit, 308, "http://127.0.0.2:{port}/base/sonar/incoming/1?authz=stranger-words")


@way(COPY, stranger=True)
async def redirects_copies(visit: Visit) -> None:
    """Redirects COPY, with what it lends, to somebody else's server."""
    await lead(visit, 307, "http://127.0.0.2:{port}/base/sonar/incoming/1")


@way(frozenset({"PUT", "MOVE", "MKCOL"}), stranger=True)
async def redirects_uploads(visit: Visit) -> None:
    """Redirects what makes files and directories to somebody else's server."""
    await lead(visit, 302, "http://127.0.0.2:{port}/base/sonar/source/1")


@way(frozenset({"DELETE"}), stranger=True)
async def redirects_deletes(visit: Visit) -> None:
    """Redirects each DELETE to a file of somebody else's server."""
    await lead(visit, 307, "http://127.0.0.2:{port}/base/sonar/incoming/1")


@way(stranger=True)
async def redirects_without_a_scheme(visit: Visit) -> None:
    """Redirects to a host without saying by which protocol."""
    await lead(visit, 301, "//127.0.0.2:{port}/elsewhere")


@way(stranger=True)
async def redirects_with_user_information(visit: Visit) -> None:
    """Redirects to an address that begins like its own, which is a user's name."""
    await lead(visit, 303, "http://127.0.0.1:{port}@127.0.0.2:{port}/elsewhere")


@way(stranger=True)
async def redirects_by_a_number(visit: Visit) -> None:
    """Redirects to a host that is written as one number."""
    await lead(visit, 307, "http://2130706434:{port}/elsewhere")


@way(stranger=True)
async def redirects_by_steps(visit: Visit) -> None:
    """Redirects to itself, and from there to somebody else's server."""
    host = "127.0.0.2" if visit.head.target.endswith("/step") else "127.0.0.1"
    await lead(visit, 307, f"http://{host}:{{port}}{visit.head.target}/step")


@way()
async def redirects_to_metadata(visit: Visit) -> None:
    """Redirects to where clouds tell virtual machines their secrets."""
    await lead(visit, 302, "http://169.254.169.254/latest/meta-data/")


@way()
async def redirects_inside(visit: Visit) -> None:
    """Redirects to a private address."""
    await lead(visit, 307, "http://10.0.0.1:{port}/")


@way()
async def redirects_to_ipv6(visit: Visit) -> None:
    """Redirects to the same machine in another family of addresses."""
    await lead(visit, 307, "http://[::ffff:127.0.0.1]:{port}/")


@way()
async def redirects_nowhere(visit: Visit) -> None:
    """Redirects to what is no address."""
    await visit.peer.answer(307, Location="http://[::1/%zz\x7f")


# Refusals without an end


@way()
async def unavailable_until_tomorrow(visit: Visit) -> None:
    """Answers 503, and that one may ask again in a day."""
    await visit.peer.answer(503, "busy\n", Retry_After="86400")


@way()
async def knows_nobody(visit: Visit) -> None:
    """Answers 401 to everything."""
    await visit.peer.answer(401, WWW_Authenticate="Bearer")


# Single steps that hang or lie


@way(COPY)
async def copy_hangs(visit: Visit) -> None:
    """Does everything but COPY, which it takes and does not answer."""
    await visit.peer.hang()


@way(frozenset({"GET"}))
async def get_hangs(visit: Visit) -> None:
    """Does everything but GET, which it takes and does not answer."""
    await visit.peer.hang()


@way(frozenset({"GET"}))
async def get_drips(visit: Visit) -> None:
    """Sends a file a byte each second."""
    size = (visit.file or Content()).bytes
    await visit.peer.send(head_of(200, **{"Content-Length": str(size)}))
    await visit.peer.drip(b"x")


@way(frozenset({"GET"}))
async def get_breaks_off(visit: Visit) -> None:
    """Sends half of a file and hangs up."""
    size = (visit.file or Content()).bytes
    await visit.peer.send(head_of(200, **{"Content-Length": str(size)}))
    await visit.peer.send(noise(size // 2))


@way(frozenset({"PUT"}))
async def put_is_never_read(visit: Visit) -> None:
    """Takes an upload without reading it."""
    await visit.peer.hang()


@way(frozenset({"PUT"}))
async def put_lies(visit: Visit) -> None:
    """Reads an upload, answers 201, and the file is never there."""
    await Content().take(visit.peer.body(visit.head))
    await visit.peer.answer(201)


@way(frozenset({"MKCOL"}))
async def mkcol_hangs(visit: Visit) -> None:
    """Takes MKCOL and does not answer."""
    await visit.peer.hang()


@way(frozenset({"MOVE"}))
async def move_hangs(visit: Visit) -> None:
    """Takes MOVE and does not answer: an upload never comes to its place."""
    await visit.peer.hang()


@way(frozenset({"HEAD"}), only_incoming=True)
async def verify_hangs(visit: Visit) -> None:
    """Takes a file and says nothing when it is asked for it."""
    await visit.peer.hang()


@way(frozenset({"DELETE"}))
async def delete_hangs(visit: Visit) -> None:
    """Takes DELETE and does not answer."""
    await visit.peer.hang()


@way(frozenset({"DELETE"}))
async def delete_fails(visit: Visit) -> None:
    """Answers each DELETE with a 500."""
    await visit.peer.answer(500, "database is locked\n")
