"""docs/deployment.md: its commands run in their order, with stand-ins for what changes a server."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
import yaml
from django.core.management import call_command

from sonar.sandbox import embedded
from tests.clusters import Cluster
from tests.units import PROJECT, UNITS, on_this_machine

PAGE = (PROJECT / "docs" / "deployment.md").read_text()
BLOCK = re.compile(r"^```sh(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(kind, text) for kind, text in BLOCK.findall(PAGE)]
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
# That of the server is a superuser here already.
ROLE = "grid"
GRID = """
sites: [{name: RAL, cloud: UK, tier: 1}, {name: Glasgow, cloud: UK, tier: 2}]
endpoints:
  - {name: RAL_DATADISK, site: RAL, base_url: "https://ral.example/data"}
  - {name: Glasgow_DATADISK, site: Glasgow, base_url: "https://glasgow.example/data"}
"""
# What a machine would be changed by: each checks what it is told, or passes it on.
STAND_INS = {
    "apt-get": '[ "$1 $2" = "install -y" ]',
    "useradd": "for name; do :; done; [ $name = sonar ]",
    "id": "echo sonar",
    "make": 'exec {make} --dry-run "$@" >> made.log',
    "runuser": '[ "$1" = -u ] && [ "$3" = -- ] && shift 3; exec "$@"',
    # There is no such group.
    "install": """
        for word; do
            shift
            if [ "$word" = -g ]; then skip=1
            elif [ -n "${{skip:-}}" ]; then skip=
            else set -- "$@" "$word"; fi
        done
        exec {install} "$@"
    """,
    "systemctl": """
        verb=$1
        shift
        case $verb in daemon-reload|stop|start|restart|enable) ;; *) exit 9 ;; esac
        for unit; do
            case $unit in *.*) ;; *) unit=$unit.service ;; esac
            unit=$(echo $unit | sed s/@[0-9]*/@/)
            [ -f {units}/$unit ] || {{ echo "There is no unit $unit."; exit 5; }}
        done
    """,
}


class Server:
    """A machine as the page leaves it, below one directory."""

    def __init__(self, place: Path, databases: Cluster) -> None:
        self.place, self.databases = place, databases
        self.host = unquote(urlsplit(databases.url).hostname or "")
        for name in ("bin", "etc/systemd/system", "home/backups", "stand-ins"):
            (place / name).mkdir(parents=True)
        (place / "grid.yaml").write_text(GRID)
        for path in UNITS.rglob("*"):
            copy = place / "systemd" / path.relative_to(UNITS)
            if path.is_dir():
                copy.mkdir(parents=True)
            else:
                copy.parent.mkdir(exist_ok=True)
                copy.write_text(self.here(path.read_text()))
        units = place / "etc/systemd/system"
        for name, body in STAND_INS.items():
            paths = {"make": shutil.which("make"), "install": shutil.which("install")}
            script = place / "stand-ins" / name
            script.write_text(f"#!/bin/sh\n{body.format(units=units, **paths)}\n")
            script.chmod(0o755)
        postgres = Path(embedded.postgres_binary("psql")).parent
        path = os.pathsep.join(map(str, (place / "stand-ins", place / "bin", postgres)))
        self.env = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "HOME": str(place)}
        self.env |= {"PGHOST": self.host, "PGUSER": "sonar", "PGDATABASE": "postgres"}

    def here(self, text: str) -> str:
        """Return commands with the paths, the role and the address of this machine."""
        text = text.replace("/opt/sonar/docs/systemd", str(self.place / "systemd"))
        text = re.sub(r"((?:ROLE |--role=|--owner=))sonar\b", rf"\1{ROLE}", text)
        address = f"postgresql://{ROLE}:password@{quote(self.host, safe='')}/"
        text = text.replace("postgresql://sonar:password@127.0.0.1:5432/", address)
        return on_this_machine(text, self.place)

    def run(self, line: str) -> None:
        """Run a line of the page; most commands of Django in this process, which has loaded it."""
        if line.startswith("sonar-manage ") and "--deploy" not in line:
            self.call(*shlex.split(line))
            return
        done = subprocess.run(
            ["sh", "-e", "-u", "-c", line],
            cwd=self.place,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)

    def call(self, *words: str) -> None:
        """Call a command of Django's in the database of the settings."""
        _, command, *arguments = words
        if command == "load_registry":  # what it reads is redirected
            assert arguments[:2] == ["-", "<"]
            arguments = [str(self.place / arguments[2])]
        if command == "createsuperuser":  # it asks
            arguments = ["--no-input", "--username=ada", "--email=ada@example.org"]
        with self.databases.inside("sonar", USER=ROLE):
            call_command(command, *arguments)


@pytest.mark.long
def test_the_commands_of_the_page_run_in_their_order(
    databases: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a password of the test")
    server = Server(tmp_path, databases)
    lines = [line for kind, text in BLOCKS if not kind for line in server.here(text).splitlines()]
    assert len(lines) > 30
    for line in lines:
        server.run(line)
        if "start sonar.target sonar-backup" in line:
            make_tables(server)
    assert databases.ask("sonar", "SELECT count(*) FROM sonar_endpoint") == 2
    assert databases.ask("sonar", "SELECT count(*) FROM auth_user") == 1
    owners = (
        "SELECT string_agg(DISTINCT tableowner, ',') FROM pg_tables WHERE schemaname = 'public'"
    )
    assert databases.ask("sonar", owners) == ROLE
    backups = {path.name for path in (tmp_path / "home" / "backups").iterdir()}
    assert backups == {"now.backup", "before-upgrade.backup", "plain.dump"}
    assert len((tmp_path / "etc/sonar/secret-key").read_text().strip()) >= 50


def make_tables(server: Server) -> None:
    """Do what sonar-migrate does, by copying what a test's database has already."""
    options = "--no-owner --no-privileges --exit-on-error"
    copy = f"pg_restore {options} --role={ROLE} --dbname=sonar"
    server.run(f"pg_dump --format=custom test_postgres | {copy}")


def test_the_blocks_for_containers_are_commands_for_services_that_there_are() -> None:
    """No engine runs here: `make containers` runs them."""
    lines = [line for kind, text in BLOCKS if kind == "containers" for line in text.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        subprocess.run(["sh", "-n", "-c", line], check=True)
        words = shlex.split(line)
        assert words[:2] == ["docker", "compose"], line
        verb, *rest = words[2:]
        assert verb in {"run", "stop", "up"}, line
        if verb == "stop":
            assert set(rest) <= set(COMPOSE["services"]), line


def test_every_block_of_the_page_is_of_a_kind_that_is_run_or_is_said_not_to_be() -> None:
    kinds = set(re.findall(r"^```(.+)$", PAGE, re.MULTILINE))
    assert kinds == {"sh", "sh containers", "nginx", "caddy"}
    indented = re.findall(
        r"^    (\S.*)$", re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S), re.M
    )
    assert indented == [
        ".venv/bin/python -m sonar.sandbox.database manage.py restore --replace sonar.backup"
    ]


def test_a_command_runs_on_the_database_of_make_run_alone(tmp_path: Path) -> None:
    """It is started for that command, and two cannot have it."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"SONAR_HOME": str(tmp_path)}
    ask = "import os, psycopg; print(psycopg.connect(os.environ['DATABASE_URL']).info.dbname)"
    command = [sys.executable, "-m", "sonar.sandbox.database"]
    answer = subprocess.run(
        [*command, "-c", ask], cwd=PROJECT, env=env, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (0, "postgres\n"), answer.stderr
    taken = subprocess.run(
        [*command, "-c", ""],
        cwd=PROJECT,
        env=env | {"DATABASE_URL": "postgresql:///elsewhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert taken.returncode == 1
    assert "DATABASE_URL is set." in taken.stderr
