"""The finance domain: ``finance/company_name.dict`` (CSV) and five SQLite files of pickled values by ticker symbol."""

from __future__ import annotations

import csv
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.kg.convert import find
from lm_eval_rag.harness.kg.guarded_pickles import PickledValues
from lm_eval_rag.harness.kg.names import NameIndex
from lm_eval_rag.harness.kg.sqlite import query

COMPANIES = ("finance/company_name.dict", "kg_finance_company_name.dict.csv")  # the second is its name in a mirror
VALUE = 'SELECT value FROM "unnamed" WHERE key = ?'  # the layout of the package sqlitedict


class Finance:
    """The nine functions of the finance domain.

    Args:
        folder: The graph's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pickled = PickledValues()

    @cached_property
    def _symbols(self) -> dict[str, str]:
        path = find(self.folder, *COMPANIES)
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return {row["Name"]: row["Symbol"] for row in csv.DictReader(file)}
        except (OSError, ValueError, KeyError, csv.Error) as error:
            raise UserError(f"{path} is not CSV with the columns Name and Symbol ({error}). Fetch it again.") from None

    @cached_property
    def _names(self) -> tuple[list[str], NameIndex]:
        names = list(self._symbols)
        return names, NameIndex(names)

    def _value(self, file: str, ticker: str) -> Any:
        path = find(self.folder, f"finance/{file}.sqlite")
        rows = query(path, VALUE, (ticker,)).rows
        if not rows:
            return None
        value = rows[0][0]
        if not isinstance(value, bytes):
            return json.loads(value) if isinstance(value, str) else value
        try:
            return self._pickled.read(value, f"{path}, value of {ticker!r}")
        except UserError as error:  # one bad value, not a bad file
            raise CallError(str(error)) from None

    def get_company_name(self, query: str) -> list[str]:
        """At most 10 company names, best match first."""
        names, index = self._names
        return [names[row] for row in index.search(query)]

    def get_ticker_by_name(self, company_name: str) -> str | None:
        """The ticker symbol of the company of exactly this name."""
        return self._symbols.get(company_name)

    def get_price_history(self, ticker_name: str) -> Any:
        """Daily prices by time stamp, in dollars."""
        return self._value("finance_price", ticker_name)

    def get_detailed_price_history(self, ticker_name: str) -> Any:
        """Prices of each minute by time stamp, in dollars."""
        return self._value("finance_detailed_price", ticker_name)

    def get_dividends_history(self, ticker_name: str) -> Any:
        """Dividends by time stamp, in dollars a share."""
        return self._value("finance_dividend", ticker_name)

    def get_market_capitalization(self, ticker_name: str) -> Any:
        """Market capitalisation in dollars."""
        return self._value("finance_marketcap", ticker_name)

    def get_eps(self, ticker_name: str) -> Any:
        """Expected earnings per share, in dollars: the info's ``forwardEps``, as on the server."""
        return (self.get_info(ticker_name) or {}).get("forwardEps")

    def get_pe_ratio(self, ticker_name: str) -> Any:
        """Expected price-to-earnings ratio: the info's ``forwardPE``, as on the server."""
        return (self.get_info(ticker_name) or {}).get("forwardPE")

    def get_info(self, ticker_name: str) -> Any:
        """All other data of the company."""
        return self._value("finance_info", ticker_name)
