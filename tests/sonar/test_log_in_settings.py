"""A wrong setting of the log-in stops the start, and the sentence names it."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import WARNING
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from sonar import settings as project
from sonar.apps import notifications_leave
from sonar.models import Site
from sonar.people import accounts, issuer
from sonar.people.role_rules import Role, RoleRule, RoleRules
from tests.provider import Provider
from tests.test_security import run

OIDC = {
    "SONAR_OIDC_ISSUER": "https://iam.example.org",
    "SONAR_OIDC_CLIENT_ID": "sonar",
    "SONAR_OIDC_CLIENT_SECRET": "secret",
}
BOSS = RoleRule("group", "boss", Role.ADMINISTRATOR)
BY_CERTIFICATE = RoleRule("certificate", "CN=boss", Role.ADMINISTRATOR)
READER = RoleRule("group", "grid", Role.READER)


def problem(*rules: RoleRule, **more: Any) -> str | None:
    fields = {"scopes": ["openid"], "audience": "", "certificates": False, "passwords": True}
    oidc = {name: more.pop(name, "") for name in OIDC}
    return project.login_problem(oidc=oidc, rules=RoleRules(rules), **(fields | more))


def test_what_fits_starts() -> None:
    assert problem() is None
    assert problem(READER, **OIDC) is None
    assert problem(audience="x", SONAR_OIDC_ISSUER="https://iam.example.org") is None
    assert problem(BY_CERTIFICATE, certificates=True, passwords=False) is None
    assert problem(BOSS, passwords=False, **OIDC) is None


def test_what_does_not_fit_is_named() -> None:
    without_secret = OIDC | {"SONAR_OIDC_CLIENT_SECRET": ""}
    without_issuer = OIDC | {"SONAR_OIDC_ISSUER": ""}
    for found, sentence in (
        (problem(READER, **without_secret), "also requires SONAR_OIDC_CLIENT_SECRET"),
        (problem(READER, **without_issuer), "also requires SONAR_OIDC_ISSUER"),
        (problem(READER, audience="x", **without_secret), "also requires SONAR_OIDC_CLIENT_SECRET"),
        (problem(audience="x"), "SONAR_OIDC_AUDIENCE requires SONAR_OIDC_ISSUER."),
        (problem(READER, audience="sonar", **OIDC), "SONAR_OIDC_AUDIENCE must differ from"),
        (problem(READER, scopes=["profile"], **OIDC), "SONAR_OIDC_SCOPES must include openid"),
        (problem(**OIDC), "SONAR_LOGIN_ROLES must name a file with a rule for a group"),
        (problem(BY_CERTIFICATE, **OIDC), "SONAR_LOGIN_ROLES must name a file"),
        (problem(READER, certificates=True), "with a rule for a certificate"),
    ):
        assert found is not None
        assert sentence in found


@pytest.mark.parametrize("rules", [(), (READER,), (BOSS,), (BY_CERTIFICATE,)])
def test_passwords_are_switched_off_only_where_administrators_get_in(
    rules: tuple[RoleRule, ...],
) -> None:
    found = problem(*rules, passwords=False)
    assert found is not None
    assert "With SONAR_PASSWORDS=false, no administrator can log in." in found
    assert problem(READER, passwords=False, **OIDC) == found
    # By a certificate, where none is taken.
    assert problem(READER, BY_CERTIFICATE, passwords=False, **OIDC) == found


def test_an_issuer_is_an_address_with_https(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (
        "iam.example.org",
        "http://iam.example.org",
        "https://",
        "https://user:secret@iam.example.org",
        "https://iam.example.org?x=1",
        "http://localhost.example.org",
        f"https://{'x' * 300}.org",
    ):
        monkeypatch.setenv("SONAR_OIDC_ISSUER", text)
        with pytest.raises(ImproperlyConfigured, match="SONAR_OIDC_ISSUER"):
            project.envissuer("SONAR_OIDC_ISSUER")
    realm = "https://sso.example.org:8443/realms/grid"
    for text in ("https://iam.example.org/", realm, "http://localhost:8080", ""):
        monkeypatch.setenv("SONAR_OIDC_ISSUER", text)
        assert project.envissuer("SONAR_OIDC_ISSUER") == text.rstrip("/")


def test_front_servers_are_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONAR_X509_PROXIES", "127.0.0.1, 2001:db8::/64")
    found = project.envnetworks("SONAR_X509_PROXIES")
    assert found == [ip_network("127.0.0.1/32"), ip_network("2001:db8::/64")]
    for text in ("front.example.org", "192.0.2.1/24", "*"):
        monkeypatch.setenv("SONAR_X509_PROXIES", text)
        with pytest.raises(ImproperlyConfigured, match=r"SONAR_X509_PROXIES: .* is not an IP addr"):
            project.envnetworks("SONAR_X509_PROXIES")


def test_a_file_of_rules_that_is_wrong_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text("- {group: x, role: root}")
    stopped = run("check", SONAR_LOGIN_ROLES=str(path), SONAR_HOME=str(tmp_path))
    assert stopped.returncode != 0
    sentence = f"SONAR_LOGIN_ROLES='{path}': rule 1 needs a role, one of reader, site-admin, "
    assert sentence in stopped.stderr


def test_sites_that_are_named_in_vain_are_a_warning(
    db: None, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    Site.objects.create(name="RAL")
    rule = RoleRule("group", "x", Role.SITE_ADMIN, frozenset({"RAL", "RALL"}))
    settings.SONAR_LOGIN_ROLES = RoleRules((rule,))
    assert [warning.msg for warning in accounts.check(["default"])] == [
        "SONAR_LOGIN_ROLES names the site RALL, which is not registered."
    ]
    assert accounts.check() == []
    call_command("check", "--database", "default")
    assert "names the site RALL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "smtp", "said"),
    [
        ("", "", "SONAR_URL is not set: neither notifications nor reports are sent."),
        ("https://sonar.example.org", "", "SONAR_SMTP_HOST is not set: no e-mail is sent."),
        ("https://sonar.example.org", "smtp.example.org", ""),
    ],
)
def test_the_check_of_a_deployment_says_what_notifications_lack(
    settings: Settings, capsys: pytest.CaptureFixture[str], url: str, smtp: str, said: str
) -> None:
    settings.SONAR_URL, settings.EMAIL_HOST = url, smtp
    messages = notifications_leave()
    assert [message.msg for message in messages] == [said] * bool(said)
    # A missing address fails the command of docs/deployment.md; other channels than mail may do.
    assert [message.is_serious(WARNING) for message in messages] == [not url] * bool(said)
    call_command("check", "--deploy", "--fail-level", "CRITICAL")
    assert said in capsys.readouterr().err


def test_the_check_of_a_deployment_asks_the_issuer(provider: Provider, settings: Settings) -> None:
    assert issuer.check() == []
    settings.SONAR_OIDC_ISSUER = "http://localhost:9"
    said = r"SONAR_OIDC_ISSUER: http://localhost:9/.well-known"
    with pytest.raises(SystemCheckError, match=said):
        call_command("check", "--deploy")
    settings.SONAR_OIDC_ISSUER = ""
    assert issuer.check() == []
