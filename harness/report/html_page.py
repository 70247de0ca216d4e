"""Self-contained HTML pages from jinja2 templates: no script, nothing fetched, every text escaped.

A page extends ``base.html.jinja`` (style for desktop, phone, light and dark) and takes macros of ``pieces.html.jinja``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from lm_eval_rag.harness.report.table import printable

HERE = "lm_eval_rag.harness.report"
SHARED = ("base.html.jinja", "pieces.html.jinja")


def render_page(package: str, template: str, **values: Any) -> str:
    """The page of a template in ``package`` with these values."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    def finalize(value: Any) -> Any:
        """Removes control characters from what the template prints, before it is escaped."""
        return printable(value) if type(value) is str else value

    sources = {name: _read(HERE, name) for name in SHARED} | {template: _read(package, template)}
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=DictLoader(sources),
    )
    environment.globals.update(values)  # macros see globals, not what a template is rendered with
    return environment.get_template(template).render()


def _read(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
