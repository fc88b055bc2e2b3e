"""What processes of `make run` find in their environments."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sonar.sandbox import processes

PROJECT = Path(__file__).resolve().parents[2]
SETTINGS = "".join(path.read_text() for path in (PROJECT / "sonar/settings").glob("*.py"))
READ = set(re.findall(r'(?:env\w+|environ\.get)\(\s*"([A-Z0-9_]+)"', SETTINGS))
SECRETS = set(re.findall(r'envsecret\("([A-Z0-9_]+)"', SETTINGS))
RULES = "- group: /sonar\n  role: administrator\n"
LOGIN = {
    "SONAR_SECRET_KEY": "planted-key",
    "SONAR_OIDC_ISSUER": "https://iam.example",
    "SONAR_OIDC_CLIENT_ID": "sonar",
    "SONAR_OIDC_CLIENT_SECRET": "planted-secret",
}


def test_each_process_finds_its_own_settings_and_no_secret_of_others(
    monkeypatch: pytest.MonkeyPatch,
):
    assert {"DATABASE_URL", "REDIS_URL", "SONAR_KEEP_DAYS"} < READ
    assert {"SONAR_SECRET_KEY", "SONAR_OIDC_CLIENT_SECRET"} <= SECRETS
    for name in READ | {f"{secret}_FILE" for secret in SECRETS} | {"PGPASSWORD"}:
        monkeypatch.setenv(name, "planted")
    assert "planted" not in processes.plain().values()
    assert processes.plain()["PATH"] == os.environ["PATH"]
    sender = processes.of_sender()
    assert {"DATABASE_URL", "REDIS_URL", "SONAR_KEEP_DAYS", "SONAR_CREDENTIALS_DIR"} < set(sender)
    # Uploaded secrets are encrypted with the first: workers read them. And they send e-mail.
    of_web = tuple(SECRETS - {"SONAR_CREDENTIALS_KEY", "SONAR_SMTP_PASSWORD"})
    assert not [name for name in sender if name.startswith(of_web)]
    assert "SONAR_CREDENTIALS_KEY_FILE" in sender
    assert set(processes.of_web()) >= READ


def test_workers_start_without_the_settings_of_a_log_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Those check each other: without some of them there must be none."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    others = {"SONAR_LOGIN_ROLES": str(rules), "SONAR_PASSWORDS": "false"}
    for name, value in (LOGIN | others | {"SONAR_X509_PROXIES": "127.0.0.1"}).items():
        monkeypatch.setenv(name, value)
    for found in (processes.of_web(), processes.of_sender()):
        subprocess.run([sys.executable, "-c", "import sonar.settings"], env=found, check=True)
