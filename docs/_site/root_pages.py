"""Makes pages of the documents in the repository's root, whose links are relative to it."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK = re.compile(rf"\]\((?:\.\./)?({'|'.join(map(re.escape, DOCUMENTS))})")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents, under their names in lower case."""
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name.lower(), content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Points links to the documents to their pages."""
    return _LINK.sub(lambda link: f"]({link[1].lower()}", markdown)
