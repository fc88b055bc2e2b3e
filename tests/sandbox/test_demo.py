"""The sandbox in a container: how its nodes are reached, and how it ends."""

import asyncio
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from sonar.sandbox import demo, nodes
from sonar.sandbox.processes import StartError

UNTIL_BEATEN = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
raise SystemExit(3)
"""


def test_nodes_that_are_reached_by_another_name_listen_for_others_and_know_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(nodes, "ANY", "127.0.0.2")  # of loopback too, and not where they are else

    async def look() -> dict[str, str]:
        async with nodes.listening(tmp_path, {}, ["A", "B"], host="storage") as urls:
            port = urlsplit(urls["A"]).port
            address = f"http://127.0.0.2:{port}/{nodes.BASE_PATH}/"
            answer = await asyncio.to_thread(requests.get, address, timeout=60)
            assert answer.status_code == 200
            return urls

    urls = asyncio.run(look())
    assert {urlsplit(url).hostname for url in urls.values()} == {"storage"}


def test_it_beats_as_long_as_its_nodes_run_and_ends_with_them(
    tmp_path: Path, settings, monkeypatch
):
    settings.SONAR_HEARTBEAT_FILE = file = tmp_path / "beaten"
    monkeypatch.setattr(demo, "BEAT_SECONDS", 0.05)
    ends = subprocess.Popen([sys.executable, "-Sc", UNTIL_BEATEN, str(file)])
    with pytest.raises(StartError, match=r"The storage nodes have ended \(exit code 3\)"):
        demo.serve(ends)
    assert file.read_text() == "30\n"
