"""What servers of FTP say of files and directories."""

import ftplib

import pytest

from sonar.movers.base import End, MoverError, Where
from sonar.movers.programs.gridftp import make_directories, size_of

END = End(Where.SOURCE, "ftp://glasgow.example/data/incoming/file", "ftp://glasgow.example/data")


def test_the_size_of_a_file_is_read():
    assert size_of("213 20000000", END) == 20_000_000
    assert size_of("213 0 ", END) == 0


@pytest.mark.parametrize(
    "reply",
    [
        "213",
        "213 -5",
        "213 1_000",
        "213 \u0661",
        "213 1e6",
        "250 7",
        f"213 {10**18}",
        f"213 {'9' * 5000}",
    ],
)
def test_what_is_no_size_of_a_file_is_refused(reply: str):
    with pytest.raises(MoverError, match=r"SIZE glasgow\.example.*does not report the file size"):
        size_of(reply, END)


class Server(ftplib.FTP):
    """A connection to one that makes no directory, and has these."""

    def __init__(self, *directories: str) -> None:
        super().__init__()
        self._directories = directories

    def mkd(self, dirname: str) -> str:
        raise ftplib.error_perm("521 taken")

    def cwd(self, dirname: str) -> str:
        if dirname not in self._directories:
            raise ftplib.error_perm("550 no such file or directory")
        return "250 ok"


def test_a_directory_that_is_there_is_no_failure_whatever_is_said_of_it():
    make_directories(Server("/data/incoming"), END)


def test_a_directory_that_cannot_be_made_is_a_failure():
    with pytest.raises(ftplib.error_perm, match="521 taken"):
        make_directories(Server("/data"), END)
