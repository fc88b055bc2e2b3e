"""What servers of FTP say of files."""

from __future__ import annotations

import pytest

from sonar.movers.base import End, MoverError, Where
from sonar.movers.ftp_files import size_of

END = End(Where.SOURCE, "ftp://glasgow.example/data/file", "ftp://glasgow.example/data")


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
    with pytest.raises(MoverError, match=r"SIZE glasgow\.example.*does not give the size"):
        size_of(reply, END)
