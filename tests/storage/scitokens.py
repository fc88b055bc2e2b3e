"""Real XRootD servers that let nobody in but who shows a token of an issuer."""

import os
import shlex
from pathlib import Path

from tests.storage.cluster import Cluster, Member
from tests.storage.issuer import Issuer
from tests.storage.xrootd import Server, give_to_server, make_room

CONFIG = """
ofs.authorize 1
ofs.authlib libXrdAccSciTokens.so config={room}/scitokens.cfg
http.header2cgi Authorization authz
scitokens.trace all
"""
ISSUERS = """
[Global]
audience = {audience}
[Issuer test]
issuer = {issuer}
base_path = {base_path}
default_user = xrootd
"""
# Its library asks the issuer over TLS and trusts the system's authorities alone: this server has
# a file of them of its own.
SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class Believer(Server):
    """A server that believes an issuer."""

    def believe(self, issuer: Issuer, audience: str, base_path: str = "/") -> None:
        """Let in who shows a token for this audience; paths in it begin at ``base_path``."""
        room = self.room
        with (room / "server.cfg").open("a") as config:
            config.write(CONFIG.format(room=room))
        text = ISSUERS.format(audience=audience, issuer=issuer.url, base_path=base_path)
        (room / "scitokens.cfg").write_text(text)
        for path in (room / "cache", room / "scitokens.cfg"):
            if not path.exists():
                path.mkdir()
            give_to_server(path)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def _command(self) -> list[str]:
        command = shlex.join(super()._command())
        bundle = shlex.quote(str(self.authority.bundle))
        script = (
            f"mount --bind {bundle} {SYSTEM_BUNDLE} && "
            f"exec env XDG_CACHE_HOME={shlex.quote(str(self.room / 'cache'))} {command}"
        )
        apart = ["--mount"] if os.getuid() == 0 else ["--map-root-user", "--mount"]
        return ["unshare", *apart, "sh", "-c", script]


class TokenServer(Believer):
    """A storage server of its own; its issuer's paths begin at ``base_path`` of it."""

    def __init__(self, room: Path, issuer: Issuer, base_path: str = "/") -> None:
        super().__init__(room, issuer.authority)
        self.believe(issuer, self.url, base_path)


class TokenMember(Believer, Member):
    """One machine of a cluster, each of which takes tokens for the manager."""


class TokenCluster(Cluster):
    """A cluster whose manager hands the token that it is shown on, in the URL of its redirect."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer.authority)
        self.issuer = issuer

    def member(self, role: str, meeting: int) -> Member:
        made = TokenMember(make_room(), self.authority, role, meeting)
        manager = self.members[0] if self.members else made
        made.believe(self.issuer, manager.url)
        return made
