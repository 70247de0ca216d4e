"""Companies, their prices and figures: pages and questions."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, SitePage, Table, day, either, page
from lm_eval_rag.tasks.crag_demo.world import LAST_DAY, Company, World

ENDINGS = (" Common Stock", " Class A", " Warrant", " Inc.", " Corp.", " Holdings Ltd.")
SHOWN = 12  # trading days on a page of prices


def short(name: str) -> str:
    """The name as people write it: ``Velmora Robotics``."""
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def pages(world: World) -> dict[str, SitePage]:
    """Two pages for each company (``company:SYMBOL`` and ``prices:SYMBOL``), and one of all (``companies``)."""
    site = {f"company:{company.symbol}": _profile(company) for company in world.companies}
    site |= {f"prices:{company.symbol}": _prices(company) for company in world.companies}
    rows = tuple((c.name, c.symbol, c.sector, c.city, f"{c.market_cap:,.2f}") for c in world.companies)
    table = Table("All listings", ("Company", "Symbol", "Sector", "Seat", "Market cap in $"), rows)
    about = "Every company and warrant that is traded on the exchange of Veldmark, with the city of its head office."
    return site | {"companies": page("exchange/list", "Veldmark Exchange: listed companies", [about], [table])}


def _profile(company: Company) -> SitePage:
    name = short(company.name)
    paid = tuple((day(iso), f"${amount:.2f}") for iso, amount in company.dividends.items())
    text = [
        f"{name} ({company.symbol}) belongs to the sector {company.sector} and has its head office in {company.city}. "
        f"Its chief executive is {company.chief}. It employs {company.staff:,} people.",
        f"Earnings per share of {name} stand at ${company.eps:.2f}, and its shares cost {company.pe:.2f} times that. "
        f"All its shares together are worth ${company.market_cap:,.2f}.",
        "" if paid else f"{name} pays no dividend at present.",
    ]
    tables = [Table(f"Dividends of {company.symbol} per share", ("Date", "Amount"), paid)] if paid else []
    return page(f"company/{company.symbol}", f"{company.name} - company profile", [t for t in text if t], tables)


def _prices(company: Company) -> SitePage:
    days = list(company.prices.items())
    kept = dict([days[0], *days[-SHOWN:]])
    rows = tuple((iso, *(f"{figure:.2f}" for figure in figures[:4]), figures[4]) for iso, figures in kept.items())
    table = Table(f"Prices of {company.symbol}", ("Date", "Open", "High", "Low", "Close", "Volume"), rows)
    about = (
        f"Daily prices of {short(company.name)} ({company.symbol}) in dollars: the year's first day and the last ones."
    )
    return page(f"prices/{company.symbol}", f"{company.symbol} price history", [about], [table])


def questions(world: World) -> tuple[Question, ...]:
    """One of each type."""
    by = {company.symbol: company for company in world.companies}
    payer = next(company for company in world.companies if company.dividends)
    seats = [short(c.name) for c in world.companies if c.city == "Pellworth"]
    larger = max(by["BRSL"], by["TWFL"], key=lambda company: company.market_cap)
    asked, last = list(by["QHVF"].prices)[-5], LAST_DAY.isoformat()
    close = by["QHVF"].prices[asked][3]
    first = next(iter(by["OSTL"].prices))
    begun, ended = by["OSTL"].prices[first][3], by["OSTL"].prices[last][3]
    change = 100 * (ended / begun - 1)
    total = sum(payer.dividends.values())
    return (
        Question("simple", "static", "what is the ticker symbol of velmora robotics?", ("VLMR",),
                 ("company:VLMR",), "tail"),
        Question("simple_w_condition", "static", f"what was the closing price of qhvf on {day(asked)}?",
                 (f"${close:.2f}", f"{close:.2f}"), ("prices:QHVF",), "torso"),
        Question("set", "slow-changing", "which listed companies have their head office in pellworth?", either(seats),
                 ("companies",), "tail"),
        Question("comparison", "real-time", "which company has the larger market cap, brsl or twfl?",
                 (short(larger.name), larger.symbol), ("company:BRSL", "company:TWFL"), "head"),
        Question("aggregation", "slow-changing",
                 f"how much did {short(payer.name)} pay in dividends per share over 2023 in total?",
                 (f"${total:.2f}", f"{total:.2f}"), (f"company:{payer.symbol}",), "torso"),
        Question("multi-hop", "slow-changing", "who is the chief executive of the company with the ticker cndr?",
                 (by["CNDR"].chief,), ("company:CNDR",), "torso"),
        Question("post-processing", "fast-changing",
                 f"by what percentage did the close of ostl change from {day(first)} to {day(last)}?",
                 (f"{change:.1f}%", f"{change:.2f}%"), ("prices:OSTL",), "head"),
        Question("false_premise", "static",
                 "why was selma pruitt-vane dismissed as the chief executive of velmora robotics?", INVALID,
                 ("company:VLMR", "company:TWFL"), "tail"),
    )  # fmt: skip
