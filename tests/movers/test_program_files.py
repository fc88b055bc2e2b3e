"""Files of root:// and ftp whose servers answer otherwise than usual; both are faked."""

import ftplib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sonar.movers.base import End, FileInfo, Limits, MoverError, NoChecksum, Order, Where
from sonar.movers.programs import gridftp, tool
from sonar.movers.programs.gridftp import Ftp
from sonar.movers.programs.xrootd import XrootdFiles
from sonar.movers.watch import Watch

SIZE_BYTES = 2_000
XRDFS = """#!/bin/sh
question=$2 path={store}$3
says() {{ echo "[ERROR] Server responded with an error: $1" >&2; exit 54; }}
case $question in
stat)
    if [ -d "$path" ]; then echo 'Size:   4096'; echo 'Flags:  19 (XBitSet|IsDir|IsReadable)'
    elif [ -f "$path" ]; then echo "Size:   $(wc -c < "$path")"; echo 'Flags:  48 (IsReadable)'
    else says '[3011] Unable to stat; no such file or directory'; fi ;;
mkdir) mkdir -p {store}$4 ;;
rm) rm "$path" ;;
query) printf '{checksum}'; exit {code} ;;
mv) says "{refusal}" ;;
esac
"""
XRDCP = """#!/bin/sh
for last; do :; done
cat > {store}/${{last#root://*//}}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that the faked xrdfs and xrdcp take for the server's disk."""
    place = tmp_path / "store"
    (place / "base/source").mkdir(parents=True)
    monkeypatch.setattr(tool, "PATH", f"{tmp_path}:{tool.PATH}")
    speak(place)
    return place


def speak(store: Path, refusal: str = "", checksum: str = "", code: int = 0) -> None:
    """Have xrdfs refuse each rename, and answer each query for a checksum, with these words."""
    words = {"refusal": refusal, "checksum": checksum, "code": code}
    for name, script in {"xrdfs": XRDFS, "xrdcp": XRDCP}.items():
        program = store.parent / name
        program.write_text(script.format(store=store, **words))
        program.chmod(0o755)


def order(scheme: str) -> Order:
    base = f"{scheme}://storage.example/base"
    source = End(Where.SOURCE, f"{base}/source/{SIZE_BYTES}", base)
    return Order(source, End(Where.DESTINATION, f"{base}/incoming/1", base), SIZE_BYTES)


@pytest.mark.parametrize(
    "refusal",
    [
        "[3013] Unable to rename /base/f; operation not supported",
        "[3005] Unable to rename /base/f; Operation not supported",
    ],
)
def test_xrootd_without_rename_gets_the_file_under_its_own_name(store: Path, refusal: str):
    speak(store, refusal)
    watch = Watch()
    XrootdFiles().put(order("root"), watch)
    files = {path.name: path.stat().st_size for path in (store / "base/source").iterdir()}
    assert files == {str(SIZE_BYTES): SIZE_BYTES}
    assert watch.uploaded_in_place


def test_another_refusal_of_a_rename_by_xrootd_is_a_failure(store: Path):
    speak(store, "[3010] Unable to rename /base/f; permission denied")
    with pytest.raises(MoverError, match=r"mv .*permission denied") as caught:
        XrootdFiles().put(order("root"), Watch())
    assert caught.value.permanent
    assert list((store / "base/source").iterdir()) == []


def test_a_base_that_is_a_file_is_not_called_missing(store: Path):
    (store / "base/source").rmdir()
    (store / "base").rmdir()
    (store / "base").write_text("")
    with pytest.raises(MoverError, match="does not report this path as a directory"):
        XrootdFiles().require_base(order("root").source, order("root"))
    (store / "base").unlink()
    words = r"storage.example:1094/base: the base directory is missing"
    with pytest.raises(MoverError, match=words):
        XrootdFiles().require_base(order("root").source, order("root"))


def test_what_a_client_lacks_itself_is_no_missing_file(store: Path):
    program = store.parent / "xrdfs"
    program.write_text(
        "#!/bin/sh\necho '[FATAL] Auth failed: no such file hostcert.pem'; exit 52\n"
    )
    with pytest.raises(MoverError, match="Auth failed"):
        XrootdFiles().stat(order("root").source, order("root"))


class Server(ftplib.FTP):
    """A connection to a server that has files and refuses to rename them."""

    refusal = "502 RNFR is not implemented"

    def __init__(self, files: dict[str, int]) -> None:
        super().__init__()
        self.files = files

    def cwd(self, dirname: str) -> str:
        return "250 ok"

    def mkd(self, dirname: str) -> str:
        return "257 made"

    def rename(self, fromname: str, toname: str) -> str:
        raise ftplib.error_perm(self.refusal)

    def delete(self, filename: str) -> str:
        del self.files[filename]
        return "250 ok"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return what a faked FTP server has, with the length of each."""
    files: dict[str, int] = {}

    @contextmanager
    def connected(*_: Any) -> Iterator[Server]:
        yield Server(files)

    def send(ftp: Server, end: End, order: Order, watch: Watch) -> None:
        ftp.files[gridftp.path_of(end, end.url)] = order.bytes

    def stat(_: Ftp, end: End, order: Order) -> FileInfo | None:
        size = files.get(gridftp.path_of(end, end.url))
        return None if size is None else FileInfo(size)

    monkeypatch.setattr(gridftp, "connected", connected)
    monkeypatch.setattr(gridftp, "send", send)
    monkeypatch.setattr(Ftp, "stat", stat)
    return files


@pytest.mark.parametrize("refusal", ["502 RNFR is not implemented", "550 RNTO: not supported"])
def test_ftp_without_rename_gets_the_file_under_its_own_name(monkeypatch, files, refusal: str):
    monkeypatch.setattr(Server, "refusal", refusal)
    Ftp().put(order("ftp"), watch := Watch())
    assert files == {f"/base/source/{SIZE_BYTES}": SIZE_BYTES}
    assert watch.uploaded_in_place


def test_another_refusal_of_a_rename_by_ftp_is_a_failure(monkeypatch, files):
    monkeypatch.setattr(Server, "refusal", "550 permission denied")
    with pytest.raises(ftplib.error_perm, match="permission denied"):
        Ftp().put(order("ftp"), Watch())
    assert files == {}


@pytest.mark.parametrize(
    ("answer", "code", "checksum"),
    [
        ("adler32 be007e86\\n", 0, "be007e86"),
        ("[Warning] no TLS\\r\\n\\033[1madler32 3da0195\\033[0m\\r\\n", 0, "03da0195"),
        (
            "md5 0cc175b9c0f1b6a831c399e269772661\\n",
            0,
            "the server returned no adler32 checksum but answered: md5 0cc1",
        ),
        ("adler32 ?\\n", 0, "the server's adler32 checksum cannot be read: adler32 ?"),
        ("", 0, "the server returned no adler32 checksum"),
        (
            "[3013] not supported",
            54,
            "the server refused the request for an adler32 checksum ([3013] not supported)",
        ),
    ],
)
def test_a_checksum_over_root_is_read_or_told_as_it_was_seen(
    store: Path, answer: str, code: int, checksum: str
):
    speak(store, checksum=answer, code=code)
    try:
        told = XrootdFiles().checksum(order("root").source, order("root"), 5)
    except NoChecksum as error:
        told = str(error)
    assert told.startswith(checksum)


@pytest.mark.parametrize(
    ("reply", "checksum"),
    [
        ("213 dd7469ac", "dd7469ac"),
        ("213 3da0195", "03da0195"),
        ("213 DD7469AC /base/f", "dd7469ac"),
        ("213 ADLER32 dd7469ac", "dd7469ac"),
        (
            "213 sha2:dd7469acdd",
            "the server returned no adler32 checksum but answered: sha2:dd7469acdd",
        ),
        ("213", "the server returned no adler32 checksum"),
        (
            ftplib.error_perm("504 not supported"),
            "the server refused the request for an adler32 checksum (504",
        ),
    ],
)
def test_a_checksum_over_ftp_is_read_or_told_as_it_was_seen(monkeypatch, files, reply, checksum):
    def sendcmd(ftp: Server, command: str) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(Server, "sendcmd", sendcmd)
    try:
        told = Ftp().checksum(order("ftp").source, order("ftp"), 5)
    except NoChecksum as error:
        told = str(error)
    assert told.startswith(checksum)


@pytest.mark.parametrize("checksum", [20.0, 0.5])
def test_an_ftp_server_that_has_a_whole_upload_may_verify_it_before_it_answers(checksum: float):
    control, server_of_control = socket.socketpair()
    data, server_of_data = socket.socketpair()
    over = threading.Event()

    class Connected(ftplib.FTP):
        def transfercmd(self, cmd: str, rest: int | str | None = None) -> socket.socket:
            return data

    def serve() -> None:
        while server_of_data.recv(65_536):
            pass
        over.wait(1.5 if checksum > 1 else 60)
        server_of_control.sendall(b"226 done\r\n")

    ftp = Connected()
    ftp.sock, ftp.file = control, control.makefile("r", encoding="utf-8")
    control.settimeout(0.5)
    limits = Limits(answer=0.5, checksum=checksum)
    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(TimeoutError) if checksum < 1 else nullcontext():
        gridftp.send(ftp, order("ftp").source, replace(order("ftp"), limits=limits), Watch())
    over.set()
    thread.join()
    for each in (ftp, server_of_control, server_of_data):
        each.close()
