"""``tcl docs``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import click

from tcl.common.closest import did_you_mean
from tcl.common.errors import ArgumentError


@click.command("docs")
@click.argument("topic", nargs=-1)
def command(topic: tuple[str, ...]) -> None:
    """Print a page of the documentation, or the sections with that name: `tcl docs ranges`.

    If no section has that name, list the sections that contain the word. Without TOPIC, list the
    pages and their sections. The pages are those of docs/.
    """
    wanted = " ".join(topic).lower().removeprefix("docs/").removesuffix(".md").rstrip("/")
    texts = pages()
    inside = [name for name in texts if wanted and name.startswith(f"{wanted}/")]
    if not wanted:
        for name, text in texts.items():
            click.echo(
                "\n  ".join([name, *(section_names(heading)[0] for heading in sections(text))])
            )
    elif wanted in texts:
        click.echo(texts[wanted])
    elif inside:
        click.echo("\n  ".join(["tcl docs NAME prints one of these pages:", *inside]))
    else:
        click.echo("\n".join(_found(wanted, texts)))


def pages() -> dict[str, str]:
    """Name → text of the pages that are installed; those of folders, ``guides/ci``, come last."""
    return dict(_pages(resources.files("tcl").joinpath("docs"), ""))


def _pages(folder: Traversable, within: str) -> Iterator[tuple[str, str]]:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".md"):
            text = _COMMENT.sub("", entry.read_text("utf-8"))
            yield within + entry.name.removesuffix(".md"), text
    for entry in entries:
        if entry.is_dir():
            yield from _pages(entry, f"{within}{entry.name}/")


def sections(text: str) -> dict[str, str]:
    """Heading → text of a page's sections, their headings included, down to the third level.

    A section holds those below it.
    """
    # Fenced blocks are blanked: a comment in one is no heading.
    unfenced = _FENCED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    starts = [(m.start(), len(m[1]), m[2].strip()) for m in _HEADING.finditer(unfenced)]
    found = {}
    for position, (start, level, heading) in enumerate(starts):
        later = (s for s, other, _ in starts[position + 1 :] if other <= level)
        found[heading] = text[start : next(later, len(text))].rstrip()
    return found


def section_names(heading: str) -> list[str]:
    """What a section can be asked for by: its heading up to a colon, what is code in it, all, and
    its anchor in links."""
    plain = heading.lower().replace("`", "")
    anchor = re.sub(r"[^\w -]", "", plain).replace(" ", "-")
    return [plain.partition(":")[0], *re.findall(r"`([^`]+)`", heading.lower()), plain, anchor]


_HEADING = re.compile(r"^(#{2,3}) (.*)$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
"""What marks what a program has written."""
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _found(wanted: str, texts: dict[str, str]) -> list[str]:
    all_sections = {name: sections(text) for name, text in texts.items()}
    found = [
        t for each in all_sections.values() for h, t in each.items() if wanted in section_names(h)
    ]
    if not found and (within := _within(wanted, all_sections)):
        return [f"'{wanted}' appears in these sections; tcl docs NAME prints one:", *within]
    if not found:
        known = [name for each in all_sections.values() for h in each for name in section_names(h)]
        hint = did_you_mean(wanted, [*texts, *known], "`tcl docs` lists all")
        raise ArgumentError(f"there is no page or section '{wanted}'; {hint}")
    return found


def _within(word: str, all_sections: dict[str, dict[str, str]]) -> list[str]:
    """The sections in which a word stands, or begins one: none that only holds such a section, nor
    one of mistakes."""
    pattern = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    return [
        f"  {page}: {section_names(heading)[0]}"
        for page, found in all_sections.items()
        for heading, text in found.items()
        if page != "errors"
        and pattern.search(re.split(r"^### ", text[3:], maxsplit=1, flags=re.MULTILINE)[0])
    ]
