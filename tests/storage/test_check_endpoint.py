"""`manage.py check_endpoint` against real XRootD servers: with TLS and tokens, and without."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from sonar.models import Credential
from tests.storage.conftest import Pair
from tests.storage.xrootd import Server

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(guarded: Pair, settings: Settings, tmp_path: Path) -> Server:
    """Return a server with TLS that wants a macaroon; one that may all is called `worker`."""
    settings.SONAR_CA_BUNDLE = str(guarded.source.authority.bundle)
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    for name, activities in (("worker", ()), ("reader", ("DOWNLOAD,LIST",))):
        (tmp_path / name).write_text(guarded.source.macaroon(*activities))
        Credential.objects.create(name=name, hosts=["localhost"])
    return guarded.source


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what the command says of an endpoint, its error in the end."""
    try:
        call_command("check_endpoint", "--base-url", *arguments)
    except CommandError as error:
        return f"{capsys.readouterr().out}{error}"
    return capsys.readouterr().out


def left(server: Server) -> list[Path]:
    return [path for path in server.data.rglob("incoming/*") if path.is_file()]


def test_a_good_server_with_tls_and_a_macaroon_is_fine(server, capsys, tmp_path):
    said = check(capsys, f"{server.url.replace('https', 'davs')}/base", "--credential", "worker")
    assert said.splitlines()[-1] == "No problems found."
    assert "localhost: 127.0.0.1 (IPv4)" in said
    assert "The certificate is for localhost, 127.0.0.1, issued by trustme" in said
    assert "worker (file): a macaroon, limited to activity:" in said
    assert "COPY is among the methods" in said
    assert "The server's clock agrees with the clock of this machine." in said
    assert left(server) == []
    assert (tmp_path / "worker").read_text() not in said


@pytest.mark.parametrize(
    ("path", "credential", "words"),
    [
        ("/base", ["--credential", "reader"], "FAILED       Write             MOVE localhost:"),
        ("/base", [], "FAILED       Base directory    HEAD localhost:"),
        (
            "/none",
            ["--credential", "worker"],
            "FAILED       Base directory    The directory /none is missing.",
        ),
    ],
)
def test_a_token_for_less_none_and_a_missing_base_are_told(server, capsys, path, credential, words):
    said = check(capsys, f"{server.url}{path}", *credential)
    assert words in said
    assert left(server) == []


def test_a_server_of_root_is_checked_with_the_programs_of_its_mover(plain, capsys):
    said = check(capsys, f"{plain.source.url.replace('http', 'root')}/base")
    assert "The content is not read back." in said
    assert said.splitlines()[-1] == "No problems found."
    assert left(plain.source) == []
