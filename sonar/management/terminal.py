"""What backup and restore show while they work, on a terminal alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def byte_counter(participle: str) -> Iterator[Callable[[int], None]]:
    """Show how many bytes were moved so far; nobody knows before how many they will be."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), DownloadColumn(), TextColumn(participle), TimeElapsedColumn()
    bars = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
    with bars:
        task = bars.add_task("", total=None)
        yield lambda size: bars.update(task, completed=size)
