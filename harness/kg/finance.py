"""The finance domain: ``finance/company_name.dict`` (CSV) and five SQLite files of pickled values by ticker symbol."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.kg.convert import find, open_records
from lm_eval_rag.harness.kg.guarded_files import StoredValues
from lm_eval_rag.harness.kg.names import NameIndex, ranking_of
from lm_eval_rag.harness.kg.records import Records
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
        self._stored = StoredValues()

    @cached_property
    def _symbols(self) -> Records:
        return open_records(self.folder, *COMPANIES)

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex(self._symbols.keys, ranking_of("finance", self._symbols))

    def _value(self, file: str, ticker: str) -> Any:
        path = find(self.folder, f"finance/{file}.sqlite")
        rows = query(path, VALUE, (ticker,)).rows
        value = rows[0][0] if rows else None
        if not isinstance(value, bytes | str):
            return value
        try:
            return self._stored.read(value, f"{path}, value of {ticker!r}")
        except UserError as error:  # one bad value, not a bad file
            raise CallError(str(error)) from None

    def get_company_name(self, query: str) -> list[str]:
        """At most 10 company names, best match first."""
        return [self._symbols.keys[row] for row in self._names.search(query)]

    def get_ticker_by_name(self, company_name: str) -> str | None:
        """The ticker symbol of the company of exactly this name."""
        symbol: str | None = self._symbols.get(company_name)
        return symbol

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
