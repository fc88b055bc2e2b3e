"""The steps of a check, against servers that do one thing wrong each: what is seen, what to do."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme

from sonar.movers.base import End, MoverError, Where
from sonar.movers.checks import network
from sonar.movers.checks.certificate import RENEW, certificate_step
from sonar.movers.checks.network import Host, name_step, port_step
from sonar.movers.checks.sequence import PlannedStep, run
from sonar.movers.checks.web import WebStorage, web_steps_of
from sonar.movers.http.webdav import WebDav
from sonar.movers.watch import Watch
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.data_hosts import data_hosts
from tests import dav
from tests.dav import Dav, Way, says
from tests.ports import free_port

TOKEN = "secret-token-of-the-check"
FILE = "sonar/incoming/0c4f"
REACHED = ("port", "certificate", "credential")


def storage_at(base_url: str, *declared: str, watch: Watch | None = None) -> WebStorage:
    end = End(Where.DESTINATION, f"{base_url}/{FILE}", base_url, TOKEN)
    end = replace(end, data_hosts=data_hosts(declared))
    return WebStorage(WebDav(), lambda: end, "", watch or Watch())


def steps_at(storage: WebStorage) -> dict[str, CheckStep]:
    """Take all steps over http, those before them being fine."""
    before = [PlannedStep(name, lambda name=name: fine(name)) for name in REACHED]
    taken = run([*before, *web_steps_of(storage)], storage.watch, lambda step: None)
    return {step.name: step for step in taken if step.name not in REACHED}


def fine(name: str) -> CheckStep:
    return CheckStep(name, StepState.FINE, "")


def wrong_at(**ways: Way) -> tuple[dict[str, CheckStep], Dav]:
    """Return the steps that are not fine at a server that does this wrong."""
    with dav.serving(**ways) as server:
        storage = storage_at(server.base_url)
        taken = steps_at(storage)
        storage.clean()
    return {name: step for name, step in taken.items() if step.state != StepState.FINE}, server


def test_a_server_that_does_all_is_fine_gets_little_and_keeps_nothing():
    wrong, server = wrong_at()
    assert wrong == {}
    assert server.files == {}
    assert server.bytes_moved < 1_000_000
    assert server.tokens == {f"Bearer {TOKEN}"}
    assert {path for method, path in server.requests if method in {"PUT", "DELETE"}} == {
        f"/base/{FILE}",
        f"/base/{FILE}.0c4f.part",
    }


def halved(server: Dav, path: str) -> dav.Reply:
    return 200, {}, server.files[path][:50_000]


MISBEHAVIOURS: dict[str, tuple[dict[str, Way], str, StepState, str, str]] = {
    "no base": (
        {"HEAD": says(404), "PROPFIND": says(404)},
        "base",
        StepState.FAILED,
        "The directory /base is missing.",
        "Create this",
    ),
    "base not found": (
        {"HEAD": says(404), "PROPFIND": says(405)},
        "base",
        StepState.FAILED,
        "HEAD returned 404 and PROPFIND 405, so Sonar does not know whether the base directory",
        "Enable this HTTP method",
    ),
    "wrong token": ({"HEAD": says(401)}, "base", StepState.FAILED, "401", "issuer and audience"),
    "no directories": (
        {"MKCOL": says(403)},
        "directory",
        StepState.FAILED,
        "403",
        "storage.modify",
    ),
    "full": ({"PUT": says(507)}, "write", StepState.FAILED, "507", "Free some space"),
    "rename refused": ({"MOVE": says(403)}, "write", StepState.FAILED, "MOVE", "storage.modify"),
    "half a file": (
        {"GET": halved},
        "read",
        StepState.FAILED,
        "returned 50000 bytes that differ",
        "log",
    ),
    "unreadable": ({"GET": says(403)}, "read", StepState.FAILED, "GET", "storage.modify"),
    "no COPY": (
        {"OPTIONS": says(200, Allow="GET, PUT, HEAD")},
        "copy",
        StepState.FAILED,
        "COPY is not among the methods that OPTIONS lists: GET, HEAD, PUT.",
        "http.exthandler xrdtpc",
    ),
    "no OPTIONS": ({"OPTIONS": says(405)}, "copy", StepState.NOT_CHECKED, "405", ""),
    "undeletable": ({"DELETE": says(403)}, "delete", StepState.FAILED, FILE, "storage.modify"),
    "deleted in vain": ({"DELETE": says(204)}, "delete", StepState.FAILED, "still shows", "log"),
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_one_thing_that_is_wrong_is_seen_with_what_to_do_and_the_others_go_on(name: str):
    ways, step, state, seen, advice = MISBEHAVIOURS[name]
    wrong, _ = wrong_at(**ways)
    assert wrong[step].state == state
    assert seen in wrong[step].seen
    assert advice in wrong[step].advice
    assert bool(wrong[step].advice) == (state != StepState.NOT_CHECKED)
    others = {other.state for key, other in wrong.items() if key != step}
    assert others <= {StepState.NOT_TRIED}
    assert TOKEN not in str(wrong)


@pytest.mark.parametrize(
    ("date", "seen", "advice"),
    [
        (95, "s slow.", "NTP"),
        (-95, "s fast.", "NTP"),
        (2, "agrees", ""),
        (None, "neither a Date", ""),
    ],
)
def test_a_clock_that_is_wrong_is_a_warning(date: int | None, seen: str, advice: str):
    with dav.serving() as server:
        moment = datetime.now(UTC) - timedelta(seconds=date or 0)
        server.date = "soon" if date is None else format_datetime(moment, usegmt=True)
        clock = steps_at(storage_at(server.base_url))["clock"]
    assert seen in clock.seen
    assert advice in clock.advice
    assert (clock.state == StepState.WARNING) == bool(advice)


@pytest.mark.parametrize(("behind", "seen"), [(95, "s slow."), (-95, "s fast."), (2, "agrees")])
def test_a_server_without_dates_shows_its_clock_by_the_time_of_the_file(behind: int, seen: str):
    """XRootD sends no Date."""

    def listing(server: Dav, path: str) -> dav.Reply | None:
        moment = format_datetime(datetime.now(UTC) - timedelta(seconds=behind), usegmt=True)
        found = f"<a:getlastmodified>{moment}</a:getlastmodified>".encode()
        return (207, {}, found) if path in server.files else None

    with dav.serving(PROPFIND=listing) as server:
        server.date = "soon"
        clock = steps_at(storage_at(server.base_url))["clock"]
    assert seen in clock.seen


@pytest.mark.parametrize("status", [404, 405])
def test_a_base_directory_that_only_propfind_finds_is_there(status: int):
    """HEAD of a collection need not succeed (RFC 4918)."""

    def look(server: Dav, path: str) -> dav.Reply | None:
        return (status, {}, b"") if path in server.directories else None

    assert wrong_at(HEAD=look)[0] == {}


@pytest.mark.parametrize("status", [405, 501])
def test_a_storage_without_rename_gets_the_file_under_its_own_name(status: int):
    with dav.serving(MOVE=says(status)) as server:
        taken = steps_at(storage_at(server.base_url))
        assert server.files == {}
    assert {step.state for step in taken.values()} == {StepState.FINE}
    assert "under its final name, as this storage refuses to rename files" in taken["write"].seen


def test_what_needs_a_step_that_failed_is_not_tried_and_says_what_it_needs():
    wrong, server = wrong_at(PUT=says(403))
    assert {name for name, step in wrong.items() if step.state == StepState.NOT_TRIED} == {
        "read",
        "checksum",
        "delete",
    }
    assert wrong["read"].seen == "This step needs “Write” to succeed first."
    assert "GET" not in {method for method, _ in server.requests}


@pytest.mark.parametrize("step", ["rename refused", "half a file", "undeletable"])
def test_the_file_is_deleted_whatever_failed(step: str):
    ways = MISBEHAVIOURS[step][0]
    with dav.serving(**ways) as server:
        storage = storage_at(server.base_url)
        steps_at(storage)
        is_clean = storage.clean()
    assert is_clean == (server.files == {}) == (step != "undeletable")


def test_a_checksum_that_is_not_offered_is_a_warning_and_a_wrong_one_a_failure():
    def digest(value: str) -> Way:
        def look(server: Dav, path: str) -> dav.Reply | None:
            if path not in server.files:
                return None
            return 200, {"Digest": value, "Content-Length": "100000"}, b""

        return look

    for value, seen in {
        "": "The server returned no adler32 checksum.",
        "adler32=vgB+hg==": "The server's adler32 checksum cannot be read: adler32=vgB+hg==.",
    }.items():
        step = wrong_at(HEAD=digest(value))[0]["checksum"]
        assert (step.state, step.seen) == (StepState.WARNING, seen)
    wrong = wrong_at(HEAD=digest("adler32=00000001"))[0]["checksum"]
    assert wrong.state == StepState.FAILED
    assert "00000001" in wrong.seen


def test_a_redirect_to_a_server_that_is_not_declared_names_it_and_what_to_declare():
    secret = "authz-secret-of-a-redirect"

    def away(server: Dav, path: str) -> dav.Reply:
        return 307, {"Location": f"http://st-048.example.org:8443{path}?authz={secret}"}, b""

    with dav.serving(PUT=away) as server:
        storage = storage_at(server.base_url)
        taken = steps_at(storage)
    assert storage.refused_servers == {"st-048.example.org:8443"}
    assert taken["redirects"].state == taken["write"].state == StepState.FAILED
    assert "st-048.example.org:8443" in taken["redirects"].advice
    assert "declare" in taken["write"].advice
    assert secret not in str(taken)


def test_a_redirect_to_a_declared_server_is_followed_and_named():
    with dav.serving() as disk:
        disk.directories |= {"/base/sonar", "/base/sonar/incoming"}

        def there(server: Dav, path: str) -> dav.Reply:
            return 307, {"Location": f"http://localhost:{disk.port}{path}"}, b""

        ways = dict.fromkeys(("PUT", "GET", "MOVE", "DELETE"), there)
        with dav.serving(**ways) as front:
            storage = storage_at(front.base_url, f"localhost:{disk.port}")
            taken = steps_at(storage)
            assert disk.files.keys() == set()
    assert taken["redirects"].seen == f"The server redirects to localhost:{disk.port}, as declared."
    assert disk.tokens == {""}


def host_of(url: str) -> Host:
    return Host(End(Where.DESTINATION, url, url))


def test_a_name_that_nobody_knows_and_an_address_of_nobody_fail():
    unknown = name_step(host_of("https://nowhere.invalid/base"))
    assert (unknown.state, "nowhere.invalid" in unknown.seen) == (StepState.FAILED, True)
    assert "getent ahosts" in unknown.advice
    assert name_step(host_of("https://169.254.169.254/base")).state == StepState.FAILED


def test_a_port_says_at_which_addresses_it_takes_connections(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        places = [
            (socket.AF_INET, 1, 6, "", (address, port)) for address in ("127.0.0.1", "127.0.0.9")
        ]
        both = [*places[:1], (socket.AF_INET6, 1, 6, "", ("::1", port, 0, 0))]
        monkeypatch.setattr(network, "resolve", lambda *_: places[:1])
        assert port_step(host_of(f"http://se.example:{port}/b")).state == StepState.FINE
        monkeypatch.setattr(network, "resolve", lambda *_: both)
        half = port_step(host_of(f"http://se.example:{port}/b"))
    assert half.state in (StepState.WARNING, StepState.FINE)  # where this machine has no IPv6
    assert "::1 (IPv6)" in half.seen
    dead = port_step(host_of(f"http://se.example:{free_port()}/b"))
    assert dead.state == StepState.FAILED
    assert "accepts no connections" in dead.seen


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "DNS has no address"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "cannot be looked up: temporary failure in name resolution.",
        ),
    ],
)
def test_a_name_server_that_fails_has_not_said_that_there_is_no_address(
    monkeypatch, error: socket.gaierror, seen: str
):
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    step = name_step(host_of("https://storage.example/base"))
    assert step.state == StepState.FAILED
    assert seen in step.seen


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


@pytest.fixture
def looked_at(authority: trustme.CA, bundle: str) -> Callable[..., CheckStep]:
    """Return what looks at a certificate that ends so many days from now, for these names."""

    def look(days: float, *names: str, trusted: bool = True) -> CheckStep:
        ends = datetime.now(UTC) + timedelta(days=days, minutes=1)
        begins = datetime.now(UTC) - timedelta(days=400)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = authority.issue_cert(*names, not_before=begins, not_after=ends)
        issued.configure_cert(context)
        with dav.serving(context) as server:
            return certificate_step(host_of(server.base_url), bundle if trusted else "")

    return look


def day(days: float) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days, minutes=1):%Y-%m-%d}"


def test_a_certificate_says_for_whom_it_is_and_when_it_ends(looked_at):
    good = looked_at(90, "localhost")
    assert good.state == StepState.FINE
    assert good.seen.startswith("The certificate is for localhost, issued by trustme")
    assert good.seen.endswith(f"the certificate expires on {day(90)}, in 90 days.")
    soon = looked_at(4, "localhost")
    assert (soon.state, soon.advice) == (StepState.WARNING, RENEW)
    assert soon.seen == f"The certificate expires on {day(4)}, in 4 days."


def test_a_certificate_that_is_not_accepted_says_why_and_what_to_do(looked_at):
    over = looked_at(-4, "localhost")
    assert over.seen == f"The certificate expired on {day(-4)}, 3 days ago."
    foreign = looked_at(90, "other.example")
    assert (over.state, foreign.state) == (StepState.FAILED, StepState.FAILED)
    assert "The certificate is for other.example" in foreign.seen
    assert "for the host of its base URL" in foreign.advice
    assert "SONAR_CA_BUNDLE" in looked_at(90, "localhost", trusted=False).advice


def test_a_port_without_tls_and_a_protocol_without_certificates_say_so(bundle):
    with dav.serving() as server:
        plain = certificate_step(host_of(server.base_url), bundle)
        wrong = certificate_step(
            host_of(server.base_url.replace("http://127.0.0.1", "https://localhost")), bundle
        )
    assert (plain.state, wrong.state) == (StepState.NOT_CHECKED, StepState.FAILED)
    assert wrong.seen.startswith(f"No TLS on port {server.port}")


def test_a_stop_ends_a_check_and_deletes_its_file():
    watch = Watch()

    def stopping(server: Dav, path: str) -> None:
        watch.stop()

    with dav.serving(GET=stopping) as server:
        storage = storage_at(server.base_url, watch=watch)
        taken = steps_at(storage)
        assert not storage.clean()  # the server might still write it
        assert server.files == {}
    assert taken["write"].state == StepState.FINE
    assert {taken[name].state for name in ("checksum", "copy", "delete")} == {StepState.NOT_TRIED}


def test_an_error_of_our_own_program_is_a_failed_step_that_tells_nothing():
    def broken() -> CheckStep:
        raise RuntimeError("/etc/secret")

    def refusing() -> CheckStep:
        raise MoverError(Where.DESTINATION, "no")

    planned = [PlannedStep("name", broken), PlannedStep("port", refusing)]
    ours, theirs = run(planned, Watch(), lambda step: None)
    assert "Internal error in Sonar (RuntimeError)" in ours.seen
    assert (theirs.seen, theirs.state) == ("No.", StepState.FAILED)
