"""More questions about companies: four of each type."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.finance import SHOWN, short
from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, day, either, money
from lm_eval_rag.tasks.crag_demo.world import LAST_DAY, World

FIGURES = ("opening", "highest", "lowest", "closing")


def more_finance(world: World) -> tuple[Question, ...]:
    """The questions in the order of CRAG's types."""
    parts = (_facts, _sets, _compared, _totals, _linked, _worked, _false)
    return tuple(question for part in parts for question in part(world))


def _facts(world: World) -> list[Question]:
    by = {company.symbol: company for company in world.companies}
    days = list(by["TWFL"].prices)[-SHOWN:]
    facts = (
        ("what is the ticker symbol of quillhaven foods?", "QHVF", "QHVF"),
        ("to which sector does nethergrove bancorp belong?", by["NGBC"].sector, "NGBC"),
        ("in which city does cindral semiconductor have its head office?", by["CNDR"].city, "CNDR"),
        ("who is the chief executive of brannick solar?", by["BRSL"].chief, "BRSL"),
    )
    asked = (("TWFL", 3, 2), ("CNDR", 0, 4), ("NGBC", 1, 6), ("BRSL", 2, 8))  # symbol, figure, day
    return [
        *(Question("simple", "slow-changing", text, (answer,), (f"company:{symbol}",), "torso")
          for text, answer, symbol in facts),
        *(Question("simple_w_condition", "static",
                   f"what was the {FIGURES[figure]} price of {symbol} on {day(days[at])}?",
                   money(by[symbol].prices[days[at]][figure]), (f"prices:{symbol}",), "tail")
          for symbol, figure, at in asked),
    ]  # fmt: skip


def _sets(world: World) -> list[Question]:
    ostrand = [company for company in world.companies if company.city == "Ostrand"]
    payer = next(company for company in world.companies if company.dividends)
    served = [short(c.name) for c in world.companies if c.sector in ("Technology", "Financial Services")]
    rows = (
        ("which listed companies have their head office in ostrand?", [short(c.name) for c in ostrand], "companies"),
        ("who leads each of the two listed companies with a head office in ostrand?", [c.chief for c in ostrand],
         f"company:{ostrand[0].symbol}"),
        (f"on which days of 2023 did {short(payer.name)} pay a dividend?", [day(iso) for iso in payer.dividends],
         f"company:{payer.symbol}"),
        ("which listed companies belong to technology or to financial services?", served, "companies"),
    )  # fmt: skip
    return [
        Question("set", "slow-changing", text, either(names), (page, f"company:{ostrand[1].symbol}"), "tail")
        for text, names, page in rows
    ]


def _compared(world: World) -> list[Question]:
    by = {company.symbol: company for company in world.companies}
    larger = max(by["CNDR"], by["NGBC"], key=lambda company: company.market_cap)
    staffed = max(by["VLMR"], by["NGBC"], key=lambda company: company.staff)
    earning = max(by["QHVF"], by["TWFL"], key=lambda company: company.eps)
    cheaper = min(by["BRSL"], by["CNDR"], key=lambda company: company.pe)
    rows = (
        ("which company has the larger market cap, cndr or ngbc?", larger, "CNDR", "NGBC"),
        ("who employs more people, velmora robotics or nethergrove bancorp?", staffed, "VLMR", "NGBC"),
        ("whose earnings per share are higher, those of qhvf or twfl?", earning, "QHVF", "TWFL"),
        ("which share costs less in relation to its earnings, brsl or cndr?", cheaper, "BRSL", "CNDR"),
    )
    return [
        Question("comparison", "real-time", text, (short(company.name), company.symbol),
                 (f"company:{one}", f"company:{other}"), "head")
        for text, company, one, other in rows
    ]  # fmt: skip


def _totals(world: World) -> list[Question]:
    by = {company.symbol: company for company in world.companies}
    payer = next(company for company in world.companies if company.dividends)
    staff = by["VLMR"].staff + by["TWFL"].staff
    worth = by["BRSL"].market_cap + by["TWFL"].market_cap
    seats = sum(company.city == "Pellworth" for company in world.companies)
    rows = (
        ("how many people do velmora robotics and tarrowmere freight lines employ together?",
         (f"{staff:,}", str(staff)), ("company:VLMR", "company:TWFL")),
        ("how many listed companies have their head office in pellworth?", (str(seats),), ("companies",)),
        (f"how many dividends did {short(payer.name)} pay in 2023?", (str(len(payer.dividends)),),
         (f"company:{payer.symbol}",)),
        ("what is the market cap of brsl and twfl together?", money(worth), ("companies",)),
    )  # fmt: skip
    return [Question("aggregation", "slow-changing", text, answers, pages, "torso") for text, answers, pages in rows]


def _linked(world: World) -> list[Question]:
    by = {company.chief: company for company in world.companies if not company.symbol.endswith("W")}
    rows = (
        ("in which city is the company that selma pruitt-vane leads?", by["Selma Pruitt-Vane"].city, "TWFL"),
        ("to which sector does the company led by joris ambeck belong?", by["Joris Ambeck"].sector, "OSTL"),
        ("what is the ticker of the company that marek oduya leads?", by["Marek Oduya"].symbol, "QHVF"),
        ("in which city is the company that hollis arkwright-moe leads?", by["Hollis Arkwright-Moe"].city, "NGBC"),
    )
    return [
        Question("multi-hop", "slow-changing", text, (answer,), (f"company:{symbol}",), "tail")
        for text, answer, symbol in rows
    ]


def _worked(world: World) -> list[Question]:
    by = {company.symbol: company for company in world.companies}
    first, last = next(iter(by["TWFL"].prices)), LAST_DAY.isoformat()
    begun = {symbol: company.prices[first][3] for symbol, company in by.items()}
    ended = {symbol: company.prices[last][3] for symbol, company in by.items()}
    rows = [
        (f"by what percentage did the close of {symbol} change from {day(first)} to {day(last)}?", symbol,
         tuple(f"{100 * (ended[symbol] / begun[symbol] - 1):.{digits}f}%" for digits in (1, 2)))
        for symbol in ("TWFL", "CNDR")
    ]  # fmt: skip
    moved = abs(ended["NGBC"] - begun["NGBC"])
    rows += [
        (f"by how many dollars did the close of ngbc move between {day(first)} and {day(last)}?", "NGBC", money(moved)),
        (f"what did 100 shares of qhvf cost at the close of {day(last)}?", "QHVF", money(100 * ended["QHVF"])),
    ]
    return [
        Question("post-processing", "fast-changing", text, answers, (f"prices:{symbol}",), "head")
        for text, symbol, answers in rows
    ]


def _false(world: World) -> list[Question]:
    rows = (
        ("how much did nethergrove bancorp pay for the dunmere lighthouse?", "NGBC"),
        ("when did osterlyn biologics move its head office from kelbridge to marlow bay?", "OSTL"),
        ("which airline belongs to cindral semiconductor?", "CNDR"),
        ("why did ines tarvold leave velmora robotics for quillhaven foods?", "VLMR"),
    )
    return [
        Question("false_premise", "static", text, INVALID, (f"company:{symbol}", "company:QHVF"), "tail")
        for text, symbol in rows
    ]
