"""A line that shows how far a fit is: steps of a public plan, never rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_line"]


@contextmanager
def progress_line(what: str, steps: int, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show a line on stderr while a fit goes on; call what is yielded after every step, with a word about the next."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=steps, told="")

        def tell(word: str) -> None:
            progress.update(task, advance=1, told=word)

        yield tell
