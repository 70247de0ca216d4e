"""mkdocs' hook: adds the generated pages, the documents of the project's root, and the navigation.

``make docs`` builds the site into ``site/``. Nothing that is generated is written into ``docs/``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from ask_figures import CSS  # noqa: E402
from generated_pages import generated_pages  # noqa: E402
from page_links import ROOT_PAGES, relinked  # noqa: E402
from site_nav import nav  # noqa: E402

STYLES = "assets/asks.css"


def on_config(config: Any) -> Any:
    """Set the navigation, which lists the registries, and the styles of the figures."""
    config.nav = nav(ROOT)
    config.extra_css.append(STYLES)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that do not lie in docs/."""
    from mkdocs.structure.files import File

    pages = {
        page: (ROOT / file).read_text(encoding="utf-8") for file, page in ROOT_PAGES.items() if (ROOT / file).is_file()
    }
    for path, text in {**pages, **generated_pages(ROOT), STYLES: CSS}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Docstrings name things as ``:func:`name```; the site shows the name."""
    return re.sub(r":(?:func|class|mod|data|meth):(?=<code>)", "", html)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files of the project become links to pages, or names of files."""
    return relinked(markdown, page.file.src_uri, ROOT)
