"""What commands show while they work, on a terminal alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TimeElapsedColumn


@contextmanager
def counter(*columns: ProgressColumn) -> Iterator[Callable[[int], None]]:
    """Show how much is done so far; nobody knows before how much it will be."""
    console = Console(stderr=True)
    shown = SpinnerColumn(), *columns, TimeElapsedColumn()
    bars = Progress(*shown, console=console, disable=not console.is_terminal, transient=True)
    with bars:
        task = bars.add_task("", total=None)
        yield lambda count: bars.update(task, completed=count)
