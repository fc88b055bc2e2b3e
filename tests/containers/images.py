"""Images under the names that docker-compose.yml uses, made of Debian's packages by debootstrap.

For a machine that reaches no registry of images, but a mirror of Debian.
"""

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.containers.engine import Engine

SUITE = "bookworm"
# What images of Debian leave out, and the rule by which its packages do so from then on.
LEFT_OUT = ("usr/share/man", "usr/share/locale", "usr/share/info", "var/lib/apt/lists", "var/log")
DPKG = "".join(f"path-exclude /usr/share/{name}/*\n" for name in ("doc", "man", "locale", "info"))
# Certificates that this machine trusts: its way to packages may need them.
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")

POSTGRES = """#!/bin/bash
# What the official image does, in short: as root it gives the files away and becomes postgres.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
export PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" && chmod 700 "$PGDATA" && chown -R postgres: "$PGDATA" /run/postgresql
    export POSTGRES_PASSWORD=${POSTGRES_PASSWORD:-$(cat "${POSTGRES_PASSWORD_FILE:-/dev/null}")}
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --locale=C.UTF-8 --auth-host=scram-sha-256 \\
        --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    pg_ctl -o "-c listen_addresses=''" -w start
    psql -U "$POSTGRES_USER" -d postgres -c "CREATE DATABASE $POSTGRES_DB"
    pg_ctl -m fast -w stop
fi
exec "$@"
"""
REDIS = """#!/bin/bash
set -eu
[ "$(id -u)" != 0 ] || exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
exec "$@"
"""
XROOTD = """#!/bin/bash
set -eu
exec setpriv --reuid=xrootd --regid=xrootd --clear-groups "$@"
"""


@dataclass(frozen=True)
class Image:
    """One image: its name, its packages, and what its Dockerfile says besides."""

    name: str
    packages: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    entrypoint: str = ""


IMAGES = (
    Image(
        "postgres:16",
        ("postgresql", "util-linux"),
        (
            "RUN rm -rf /var/lib/postgresql/* && install -d -m 1777 -o postgres -g postgres "
            "/var/lib/postgresql/data",
            "RUN ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/",
            "VOLUME /var/lib/postgresql/data",
            "STOPSIGNAL SIGINT",
            'CMD ["postgres", "-c", "listen_addresses=*"]',
        ),
        POSTGRES,
    ),
    Image(
        "redis:7",
        ("redis-server", "util-linux"),
        (
            "RUN install -d -o redis -g redis /data",
            "VOLUME /data",
            "WORKDIR /data",
            'CMD ["redis-server", "--protected-mode", "no"]',
        ),
        REDIS,
    ),
    # What versions before 0.5 were built from.
    Image(
        "python:3.11-slim-bookworm",
        ("python3", "python3-pip"),
        ("RUN ln -s python3 /usr/bin/python && rm /usr/lib/python3*/EXTERNALLY-MANAGED",),
    ),
    Image("caddy:2", ("caddy", "busybox"), ("RUN ln -s /bin/busybox /usr/local/bin/wget",)),
    Image(
        "sonar-test-xrootd",
        ("xrootd-server", "xrootd-client", "xrootd-plugins", "openssl", "util-linux"),
        ("RUN install -d -o xrootd -g xrootd /data /admin",),
        XROOTD,
    ),
)


def make_all(engine: Engine, place: Path) -> None:
    """Make those that the engine does not have."""
    if not engine.has("debian:bookworm-slim"):
        make_debian(engine, place)
    for image in IMAGES:
        if not engine.has(image.name):
            make(engine, image, place)


def make_debian(engine: Engine, place: Path) -> None:
    root = place / "debian"
    shutil.rmtree(root, ignore_errors=True)
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in LEFT_OUT:
        for path in (root / name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (root / "var/cache/apt").rglob("*"):
        if path.is_file():
            path.unlink()
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(DPKG)
    if TRUSTED.is_file():
        shutil.copy(TRUSTED, root / TRUSTED.relative_to("/"))
    archive = place / "debian.tar"
    with tarfile.open(archive, "w") as file:
        file.add(root, ".")
    engine.run("import", str(archive), "debian:bookworm-slim")
    archive.unlink()


def make(engine: Engine, image: Image, place: Path) -> None:
    context = place / "image"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    (context / "entrypoint").write_text(image.entrypoint)
    (context / "entrypoint").chmod(0o755)
    lines = [
        "FROM debian:bookworm-slim",
        "RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "
        f"--no-install-recommends {' '.join(image.packages)} && rm -rf /var/lib/apt/lists/*",
        *image.lines,
    ]
    if image.entrypoint:
        lines += ["COPY entrypoint /usr/local/bin/", 'ENTRYPOINT ["/usr/local/bin/entrypoint"]']
    (context / "Dockerfile").write_text("\n".join(lines) + "\n")
    engine.run("build", "--quiet", "--tag", image.name, str(context))
