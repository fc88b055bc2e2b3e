"""Bearer tokens: a program finds one in its environment, for both ends and for nobody else."""

from dataclasses import replace

import pytest

from sonar import scheduler
from sonar.models import Credential, Endpoint, Probe, Schedule
from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.programs import tool
from sonar.movers.programs.tool import Command
from sonar.movers.watch import Watch
from sonar.obstacles import catalogue as obstacles
from sonar.ordering import request_probes
from sonar.ordering.request_probes import RefusedError
from sonar.work import transfer_request
from tests.sonar.world import NOW, endpoint, mesh, queued, request

TOKEN, OTHER = "t0ken-of-both-ends", "t0ken-of-another"
ENVIRONMENT = Command(("env",))


def order(source: str, destination: str, *, along: bool = True) -> Order:
    """Return an order whose ends have these tokens, and let them go along if so said."""
    ends = [
        End(where, f"root://{host}/f", f"root://{host}", token=token, token_goes_along=along)
        for where, host, token in (
            (Where.SOURCE, "a.example", source),
            (Where.DESTINATION, "b.example", destination),
        )
    ]
    return Order(*ends, bytes=1)


def environment(wanted: Order) -> set[str]:
    """Return what a program that moves a file finds, as it is told here."""
    told: list[str] = []
    tool.move(ENVIRONMENT, wanted, Watch(), told.append)
    return set(told)


def test_a_program_finds_the_token_that_both_ends_have_and_says_it_to_nobody():
    told = environment(order(TOKEN, TOKEN))
    assert {"BEARER_TOKEN=***", "XrdSecPROTOCOL=ztn"} <= told
    assert "XRD_REDIRECTLIMIT=0" not in told
    assert TOKEN not in str(told)


def test_a_token_that_is_for_its_own_host_is_led_to_no_other():
    assert {"BEARER_TOKEN=***", "XRD_REDIRECTLIMIT=0"} <= environment(
        order(TOKEN, TOKEN, along=False)
    )
    half = order(TOKEN, TOKEN)
    half = replace(half, destination=replace(half.destination, token_goes_along=False))
    assert "XRD_REDIRECTLIMIT=0" in environment(half)


def test_a_program_that_asks_one_end_finds_its_token_and_not_that_of_the_other():
    wanted = order(TOKEN, "")
    assert "BEARER_TOKEN" in tool.ask(ENVIRONMENT, wanted.source, wanted).text
    assert "BEARER_TOKEN" not in tool.ask(ENVIRONMENT, wanted.destination, wanted).text


def test_no_token_is_in_what_a_program_wrote():
    wanted = order(TOKEN, TOKEN)
    text = "x" * (tool.KEPT_CHARACTERS - 5)
    script = f'printf "%s$BEARER_TOKEN" {text}; echo; echo "$BEARER_TOKEN"; exit 1'
    ended = tool.ask(Command(("sh", "-c", script)), wanted.source, wanted)
    assert ended.text.endswith("***\n***\n")
    assert TOKEN[-5:] not in ended.text


def test_half_a_token_is_in_no_line_that_is_too_long():
    lines = tool.Lines(TOKEN)
    assert lines.feed(TOKEN.encode() + b"x" * (tool.MAX_LINE_CHARACTERS - 5)) == []
    (line,) = lines.feed(b"\n")
    assert TOKEN[-5:] not in line


def test_a_proxy_at_the_usual_place_is_hidden_and_else_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "USUAL_PROXY", str(tmp_path / "x509up"))
    assert "X509_USER_PROXY=/nonexistent" not in environment(order(TOKEN, TOKEN))
    (tmp_path / "x509up").touch()
    assert "X509_USER_PROXY=/nonexistent" in environment(order(TOKEN, TOKEN))


@pytest.mark.parametrize(
    ("source", "destination", "why"),
    [
        (
            TOKEN,
            "",
            "the destination has no token and would be sent the token of the other endpoint",
        ),
        ("", TOKEN, "the source has no token and would be sent the token of the other endpoint"),
        (TOKEN, OTHER, "the endpoints have different tokens"),
    ],
)
def test_ends_with_different_tokens_are_refused(source: str, destination: str, why: str):
    with pytest.raises(MoverError, match=why) as caught:
        environment(order(source, destination))
    assert (caught.value.where, caught.value.permanent) == (Where.CONTROL, True)


@pytest.fixture
def ends(settings, tmp_path) -> tuple[Endpoint, Endpoint]:
    """Return two endpoints that have one token in a file, and lend it."""
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "grid").write_text(TOKEN)
    (tmp_path / "grid").chmod(0o600)
    made = Credential.objects.create(name="grid", hosts=["a.example", "b.example"])
    source, destination = (
        endpoint(
            name.upper(),
            base_url=f"root://{name}.example/data",
            credential=made,
            lend_credential=True,
        )
        for name in "ab"
    )
    return source, destination


def refusals(source: Endpoint, destination: Endpoint, mover: str) -> list[str]:
    try:
        request_probes.order([request(source, destination, mover)], NOW)
    except RefusedError as error:
        return error.errors["mover"]
    return []


@pytest.mark.django_db
@pytest.mark.parametrize("mover", ["xrootd", "gfal2"])
def test_endpoints_that_lend_one_token_are_tested_with_it(mover: str, ends):
    wanted = transfer_request.order_for(queued(*ends, mover=mover))
    assert (wanted.source.token, wanted.destination.token) == (TOKEN, TOKEN)


@pytest.mark.django_db
def test_an_order_that_would_show_a_token_to_another_end_is_refused(ends):
    source, destination = ends
    made = mesh("by-xrdcp", mover="xrootd")
    assert obstacles.notice(NOW) == ""
    cases = {
        "B_DATADISK delegates no credential, but xrootd would send the token of "
        "B_DATADISK to the other endpoint. Set “lend_credential”, or use another transfer tool.": {
            "lend_credential": False
        },
        "B_DATADISK has no token, and xrootd would send it the token of A_DATADISK. Give "
        "both endpoints the same credential, or use another transfer tool.": {"credential": None},
        "A_DATADISK and B_DATADISK have different tokens, but xrootd uses one for both. Give both "
        "endpoints the same credential, or use another transfer tool.": {
            "credential": Credential.objects.create(name="other", hosts=["b.example"])
        },
    }
    for sentence, change in cases.items():
        usual = {"credential": source.credential, "lend_credential": True}
        Endpoint.objects.filter(pk=destination.pk).update(**usual | change)
        destination.refresh_from_db()
        assert refusals(source, destination, "xrootd") == [sentence]
        assert obstacles.notice(NOW).startswith(f"The mesh {made.name}: 2 links are not tested.")
    Endpoint.objects.update(credential=source.credential, lend_credential=True)
    facts = {"kind": "client_credentials", "issuer": "https://iam.example", "client_id": "sonar"}
    Credential.objects.update(**facts)
    source.refresh_from_db()
    destination.refresh_from_db()
    assert refusals(source, destination, "xrootd") == [
        "A_DATADISK and B_DATADISK have a token each, but xrootd uses one for both. Use a token "
        "file or another transfer tool."
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("lends", [True, False])
def test_scheduled_tests_wait_unless_both_ends_lend_their_token(ends, lends: bool):
    mesh("by-xrdcp", mover="xrootd")
    Endpoint.objects.filter(pk=ends[1].pk).update(lend_credential=lends)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="credential").count()
    # Both links, each with three classes of size, of which one begins.
    assert (held, Probe.objects.count()) == ((0, 2) if lends else (6, 0))
