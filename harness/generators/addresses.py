"""The addresses of servers, as ``gen_base_url=`` gives them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from lm_eval_rag.harness.common.errors import UserError


def addresses(given: Any) -> tuple[str, ...]:
    """The addresses of ``gen_base_url=``: one, or several as a list or joined by commas, with brackets or without.

    Raises:
        UserError: An address is named twice.
    """
    if given is None:
        return ()
    parts = str(given).strip().removeprefix("[").removesuffix("]").split(",") if isinstance(given, str) else given
    urls = tuple(str(part).strip().strip("'\"") for part in parts)
    for url in urls:
        if urls.count(url) > 1:
            raise UserError(f"gen_base_url names {url} twice. Give each server once.")
    return urls


def check_address(name: str, url: Any) -> None:
    """Raise a UserError for a ``gen_base_url`` that is no address, or is missing for a server of the user's own."""
    advice = "give one such as http://localhost:8000/v1/chat/completions."
    if url is None and name.startswith("local-"):
        raise UserError(f"generator={name} needs the address of its server, gen_base_url=: {advice}")
    if url is not None and not _is_address(str(url)):
        raise UserError(f"gen_base_url={url} is not an address: {advice}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port above 65535, a bracket that is not closed
        return False
