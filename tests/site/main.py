"""Collects the pages of the documentation for mdBook, and checks the links of the built site.

    main.py collect SITE      copies the pages into SITE/src, with the table of contents and the settings
    main.py check SITE        checks SITE/book

Rule: the order is that of the overview, server/docs/README.md; a page that it does not lead to is an error.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
OVERVIEW = Path("server/docs/README.md")
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")


def repository() -> str:
    """The address of the repository."""
    manifest = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^repository = "([^"]+)"', manifest, re.MULTILINE)[1]


def pages() -> list[Path]:
    """All pages of the site, from the root of the repository."""
    found = [Path("README.md"), Path("CHANGELOG.md"), Path("protocol/README.md")]
    found += sorted(path.relative_to(ROOT) for path in ROOT.glob("editors/*/README.md"))
    found += sorted(path.relative_to(ROOT) for path in ROOT.glob("server/docs/**/*.md"))
    return found


def resolved(page: Path, target: str) -> tuple[Path, str]:
    """The file of a link from the root, and the heading."""
    file, _, heading = target.partition("#")
    path = (ROOT / page.parent / file).resolve() if file else ROOT / page
    return path.relative_to(ROOT), heading


def linked(text: str) -> list[Path]:
    """The pages that a text of the overview links, in order."""
    links = [resolved(OVERVIEW, target)[0] for _, target in LINK.findall(text) if "://" not in target]
    return [link for link in links if link.suffix == ".md"]


def title(page: Path, source: Path) -> str:
    """The first heading of a page."""
    heading = re.search(r"^# (.+)$", (source / page).read_text(), re.MULTILINE)
    if not heading:
        sys.exit(f"{page} has no heading of the first level")
    return heading[1].replace("[", "").replace("]", "")


def collect(site: Path) -> None:
    source = site / "src"
    all_pages = pages()
    for page in all_pages:
        (source / page).parent.mkdir(parents=True, exist_ok=True)

        def led(match: re.Match, page: Path = page) -> str:
            label, target = match.groups()
            if "://" in target or target.startswith("mailto:"):
                return match[0]
            file, heading = resolved(page, target)
            if file in all_pages:
                # mdBook calls the page of a folder its index, and leaves the links to it as they are.
                return f"{label}({target.replace('README.md', 'index.md')})"
            if label.startswith("!"):
                return match[0]
            kind = "tree" if (ROOT / file).is_dir() else "blob"
            return f"{label}({repository()}/{kind}/main/{file}{'#' + heading if heading else ''})"

        (source / page).write_text(LINK.sub(led, (ROOT / page).read_text()))
    shutil.copytree(ROOT / "server/docs/pictures", source / "server/docs/pictures")
    for picture in ROOT.glob("editors/**/*.png"):
        if "node_modules" not in picture.parts:
            (source / picture.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, source / picture.relative_to(ROOT))
    (source / "SUMMARY.md").write_text(summary(all_pages, source))
    (site / "book.toml").write_text(
        '[book]\ntitle = "kode-ls"\nlanguage = "en"\n\n[output.html]\n'
        f'git-repository-url = "{repository()}"\nno-section-label = true\n'
    )


def summary(all_pages: list[Path], source: Path) -> str:
    """The table of contents."""
    lines = ["# Summary", "", "[kode-ls](README.md)", f"[All pages]({OVERVIEW})"]
    known = {Path("README.md"), OVERVIEW, Path("CHANGELOG.md")}

    def part(name: str, members: list[Path]) -> None:
        lines.extend(["", f"# {name}", ""])
        for page in members:
            if page not in known:
                lines.append(f"- [{title(page, source)}]({page})")
                known.add(page)

    overview = (ROOT / OVERVIEW).read_text()
    for row in re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", overview, re.MULTILINE):
        if "](" in row[1]:
            part(row[0][0].upper() + row[0][1:], linked(row[1]) + linked(row[2]))
    part("Editors", [page for page in all_pages if page.parts[0] == "editors"])
    part("Decisions", [page for page in all_pages if "decisions" in page.parts])
    part("Reference", [*linked(overview.split("Generated from")[1]), Path("server/docs/reference/strings.md")])
    lines.extend(["", "[Changes](CHANGELOG.md)", ""])
    missing = [str(page) for page in all_pages if page not in known]
    if missing:
        sys.exit(f"{OVERVIEW} leads to no {', '.join(missing)}")
    return "\n".join(lines)


class Page(HTMLParser):
    """The ids and links of a built page."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def check(site: Path) -> None:
    book = (site / "book").resolve()
    built = {path: Page(path.read_text()) for path in book.rglob("*.html")}
    broken = []
    for path, page in built.items():
        # Its links are those of the page that is not found.
        if path.name in ("404.html", "toc.html", "print.html"):
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            is_there = target.exists() and (not parts.fragment or target not in built or unquote(parts.fragment) in built[target].ids)
            if not is_there:
                broken.append(f"{path.relative_to(book)}: {link}")
    if broken:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))


if __name__ == "__main__":
    {"collect": collect, "check": check}[sys.argv[1]](Path(sys.argv[2]))
