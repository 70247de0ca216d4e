"""Tables of pages in Markdown."""

from __future__ import annotations

import random

import pytest

from lm_eval_rag.harness.web.markdown_tables import MAX_COLUMNS, MAX_ROWS, Cell, markdown, named, shorten

pytest.importorskip("resiliparse")

from lm_eval_rag.harness.web.markup import ARTICLE, take_tables

FARES = "<table><tr><th>Port<th>Fare</tr><tr><td>Brenn<td>4</tr><tr><td>Sund<td>6</table>"
FARES_TEXT = "| Port | Fare |\n| --- | --- |\n| Brenn | 4 |\n| Sund | 6 |"


def tables(html: str, layout: bool = True) -> list[str]:
    return take_tables(html, layout=layout)[1]


def body(table: str) -> list[list[str]]:
    """The rows of a Markdown table, read back, without the head's rule."""
    rows = [line[2:-2].split(" | ") for line in table.splitlines() if line.startswith("|")]
    return [rows[0], *rows[2:]]


def test_a_table_is_as_in_the_paper() -> None:
    rest, found, notes = take_tables(f"<p>before</p>{FARES}<p>after</p>", layout=True)
    assert found == [FARES_TEXT]
    assert "before" in rest and "after" in rest and "Brenn" not in rest and "<table" not in rest
    assert notes == ()


@pytest.mark.parametrize(
    "html",
    [
        "<table></table>",
        "<table><tr><td> <td>&nbsp;</table>",
        "<table><tr><td>-<td>|</table>",
        "<table><tr><tr></table>",
    ],
)
def test_empty_tables_are_dropped(html: str) -> None:
    assert tables(html, layout=False) == []


def test_the_name_is_one_short_line() -> None:
    assert named(FARES_TEXT, " Ferries\nof  Aldmouth ") == f"Page name: Ferries of Aldmouth\n{FARES_TEXT}"
    assert len(named("", "x" * 5000)) < 400


def test_spanned_places_are_filled_once() -> None:
    html = (
        "<table><tr><td colspan=3>Fares</tr><tr><td rowspan=2>Brenn<td colspan=2>4</tr><tr><td>5<td>6</tr>"
        "<tr><td rowspan=0>Sund<td>7<td>8<tr><td>9</table>"
    )
    assert body(tables(html)[0]) == [
        ["Fares", "", ""],
        ["Brenn", "4", "4"],
        ["Brenn", "5", "6"],
        ["Sund", "7", "8"],
        ["Sund", "9", ""],
    ]


def test_spans_agree_with_a_grid_filled_cell_by_cell() -> None:
    """Against HTML's algorithm for forming a table, restated over a set of places."""
    rng = random.Random(0)
    for _ in range(200):
        rows = [
            [Cell(f"c{i}{j}", rng.randint(1, 3), rng.randint(1, 3)) for j in range(rng.randint(1, 4))] for i in range(4)
        ]
        places: dict[tuple[int, int], str] = {}
        for y, row in enumerate(rows):
            x = 0
            for cell in row:
                while (y, x) in places:
                    x += 1
                free = next((dx for dx in range(cell.columns) if (y, x + dx) in places), cell.columns)
                places |= {(y + dy, x + dx): cell.text for dy in range(min(cell.rows, 4 - y)) for dx in range(free)}
                x += cell.columns
        width = max(x for _, x in places) + 1
        wanted = [[places.get((y, x), "") for x in range(width)] for y in range(4)]
        wanted = [[row[0], *[""] * (width - 1)] if len(set(row)) == 1 else row for row in wanted]
        kept = [x for x in range(width) if any(places.get((y, x)) for y in range(4))]
        assert body(markdown(rows)) == [[row[x] for x in kept] for row in wanted]


@pytest.mark.parametrize("span", ["0", "-3", "x", "", "999999999999", "1e9"])
def test_absurd_spans_cost_nothing(span: str) -> None:
    found = tables(f"<table><tr><td colspan='{span}' rowspan='{span}'>a<td>b</tr><tr><td>c<td>d</table>")
    assert len(found) == 1 and "a" in found[0]
    assert max(len(row) for row in body(found[0])) <= MAX_COLUMNS


def test_size_is_bounded() -> None:
    row = "<tr>" + "<td>1<td>2" * 2 * MAX_COLUMNS
    found = tables(f"<table>{row * (MAX_ROWS // 100)}</table>")
    assert {len(cells) for cells in body(found[0])} == {MAX_COLUMNS}
    found = tables("<table>" + "<tr><td>1<td>2" * (MAX_ROWS + 50) + "</table>")
    assert len(body(found[0])) == MAX_ROWS


def test_too_many_tags_are_noted() -> None:
    rest, found, notes = take_tables(FARES + "<table>" + "<tr><td>1<td>2" * 60_000 + "</table>", layout=True)
    assert notes == ("tables cut",)
    assert found == [FARES_TEXT]
    assert rest.count("<td>") == 120_000  # it stays on the page


def test_nested_tables_are_tables_of_their_own() -> None:
    found = tables(f"<table><tr><td>a<td>b {FARES} c</tr><tr><td>d<td>e</table>")
    assert found == ["| a | b c |\n| --- | --- |\n| d | e |", FARES_TEXT]


def test_layout_stays_text_unless_it_is_published_that_way() -> None:
    long = "The sea was calm. " * (ARTICLE // 10)
    for html in (
        f"<table><tr><td>one cell {FARES} more</table>",
        f"<table role=presentation><tr><td>a<td>one cell{FARES} more</table>",
        f"<table><tr><td>menu<td>one cell {long}{FARES} more</table>",
    ):
        rest, found, _ = take_tables(html, layout=True)
        assert found == [FARES_TEXT] and "one cell" in rest and "more" in rest and "Brenn" not in rest
        rest, found, _ = take_tables(html, layout=False)
        assert len(found) == 2 and "one cell" in found[0] and "one cell" not in rest


def test_layout_within_a_cell_is_the_cells_text() -> None:
    html = "<table><tr><td>a<td><table><tr><td>b &amp;amp; c</table> d</tr><tr><td>e<td>f</table>"
    assert tables(html) == ["| a | b &amp; c d |\n| --- | --- |\n| e | f |"]


def test_text_of_a_cell() -> None:
    html = (
        "<table><caption>Fares <b>2031</b></caption><tr><td>a<br>b<p>c</p>d<td>x<b>y</b>&eacute;&#x1F6A2; p|q"
        "<script>no</script><style>no</style><!-- no --><tr><td title='1 > 0'>l\n m<td></td></table>"
    )
    assert tables(html) == ["Fares 2031\n| a b c d | xyé🚢 p\\|q |\n| --- | --- |\n| l m |  |"]


def test_tables_in_scripts_and_comments_are_none() -> None:
    assert tables(f"<script>var t = '{FARES}'</script><!-- {FARES} --><template>{FARES}</template><p>x") == []


def test_shorten_keeps_whole_rows() -> None:
    text = shorten([FARES_TEXT, FARES_TEXT], len(FARES_TEXT) + 20)
    assert text == f"{FARES_TEXT}\n\n| Port | Fare |"
    assert shorten([FARES_TEXT]) == FARES_TEXT
    assert shorten(["x" * 50], 10) == "x" * 10
    assert all(len(shorten([FARES_TEXT] * 3, limit)) <= limit for limit in range(1, 150))
