"""The page in a browser: sort, filter, compare, deep links, texts that stay texts, widths, accessibility, weight."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lm_eval_rag.leaderboards.board.entries import read_entries
from lm_eval_rag.leaderboards.board.overall import board_of
from lm_eval_rag.leaderboards.board.site import write_site
from tests.leaderboards.conftest import TASK, writer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
EVIL = '<img src=x onerror="document.title=1">'
LONG = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaf"


def near(low, high, word):
    """Right from one question to another, and wrong in its own way elsewhere."""
    return lambda id, doc: doc["answers"][0] if low <= int(id[1:]) < high else f"{word} {id}"


def cost(tokens):
    return lambda id, doc: {"calls": 1, "prompt_tokens": tokens, "completion_tokens": 5, "seconds": tokens / 1000}


@pytest.fixture(scope="module")
def site(key, tmp_path_factory):
    """A site of six entries: two that tie, one of hostile texts, one of a long name, one that abstains, a look-up."""
    folder = tmp_path_factory.mktemp("entries")
    write = writer(key, folder)
    write("Best", near(0, 120, "wrong"), fields=cost(100), generator="g", parameters=10**9, method="ircot")
    write("Near", near(30, 140, "false"), fields=cost(90), generator="g", parameters=10**9, method="standard_rag")
    write(EVIL[:60], lambda id, doc: f"{EVIL} {id}", place="evil", team="<b>bold</b>", retriever="<script>1</script>")
    write(LONG, near(0, 20, "no"), fields=cost(5000), place="long", generator="big", parameters=7 * 10**10)
    abstains = lambda id, doc: {"abstained": int(id[1:]) >= 150}  # noqa: E731
    write("Shy", near(0, 60, "nie"), fields=abstains)
    write("Look-up", near(100, 130, "non"), method="last_object")
    write_site(board_of(*read_entries(folder)), folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture
def visit(browser, site):
    """Opens a page; fails at the end if its console has an error."""
    problems, contexts = [], []

    def visit(address="", file="index.html", **options):
        context = browser.new_context(**({"viewport": {"width": 1300, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda one: problems.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((site / file).as_uri() + address)
        if file == "index.html":  # its table is drawn after the page is there
            page.wait_for_function("document.getElementById('about').textContent !== ''")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not problems


def names(page):
    return page.locator("#table tbody th .name > span").all_inner_texts()


def test_sort_and_filter_and_links_that_keep_them(visit):
    page = visit()
    assert names(page)[:2] == ["Look-up trivial baseline", "Best"] and page.title() == "RAG leaderboard"
    page.get_by_role("button", name="tokens").click()
    assert [name for name in names(page) if name in ("Best", "Near", LONG)] == ["Near", "Best", LONG]
    page.get_by_role("button", name="tokens").click()
    assert names(page)[0] == LONG
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("tokens")
    page.get_by_label("Generator").select_option("1e9-1e10")
    assert set(names(page)) == {"Best", "Near"}
    page.get_by_label("Method family").select_option("several steps")
    assert names(page) == ["Best"]
    link = page.url
    assert "size=1e9-1e10" in link and "family=several" in link and "sort=tokens" in link
    again = visit(f"#{link.partition('#')[2]}")
    assert names(again) == ["Best"] and again.get_by_label("Generator").input_value() == "1e9-1e10"
    again.get_by_label("Search").fill("nothing of this name")
    assert names(again) == [] and again.locator("#none").is_visible()
    again.goto(page.url.partition("#")[0] + "#grey=0")
    again.wait_for_function("document.querySelectorAll('#table tbody tr').length > 1")
    assert not {"Look-up", "abstains always"} & set(names(again))


def test_two_entries_question_by_question(visit):
    page = visit()
    page.get_by_label("Compare Best").check()
    assert "tick one more" in page.locator("#tray").inner_text()
    page.get_by_label("Compare Near").check()
    panel = page.locator("#comparison")
    panel.get_by_text("em, Best minus Near: +5.0").wait_for()
    assert "not significant" in panel.inner_text()
    assert panel.locator(".questions li").count() == 50
    panel.get_by_label("Questions").select_option("first")
    assert "only the first is right (30)" in panel.get_by_label("Questions").inner_text()
    assert panel.locator(".questions li").count() == 30
    assert panel.locator(".answer.yes").count() == panel.locator(".answer.no").count() == 30
    again = visit(f"#{page.url.partition('#')[2]}")
    again.locator("#comparison .questions li").first.wait_for()
    assert again.locator("#comparison .questions li").count() == 30
    nowhere = visit("#compare=best,no-such-entry")
    nowhere.get_by_text(f"No entry on {TASK}: no-such-entry.").wait_for()


def test_texts_of_entries_are_shown_as_texts(visit, site):
    page = visit("#search=img")
    assert names(page) == [f"{EVIL[:60]} "] or names(page) == [EVIL[:60]]
    assert page.locator("img").count() == 0 and page.locator("#table script").count() == 0
    assert "<b>bold</b>" in page.locator("#table").inner_text() and page.title() == "RAG leaderboard"
    (slug,) = [
        path.name.removesuffix(".html") for path in (site / "entries").glob("img*.html") if "answers" not in path.name
    ]
    for file in (f"entries/{slug}.html", f"entries/{slug}.answers.html"):
        other = visit(file=file)
        other.get_by_text(EVIL[:60]).first.wait_for()
        assert other.locator("img").count() == 0 and other.title() != "1"
    compared = visit(f"#compare=best,{slug}")
    compared.locator("#comparison .questions li").first.wait_for()
    assert compared.locator("img").count() == 0


def test_answers_open_in_the_viewer(visit):
    page = visit(file="entries/best.html")
    assert page.locator(".questions li").count() == 50 and page.locator(".answer.yes").count() == 25
    link = page.locator(".questions a").first
    question = link.inner_text()
    link.click()
    page.locator(".question h2").wait_for()
    assert page.locator(".question h2").inner_text() == question and "50 of 50" in page.locator("#count").inner_text()


@pytest.mark.parametrize(
    ("file", "scheme"), [("index.html", "light"), ("index.html", "dark"), ("entries/best.html", "light")]
)
def test_nothing_is_wrong_for_readers_of_the_screen(visit, file, scheme):
    axe = pytest.importorskip("axe_core_python").__path__[0]
    page = visit("#compare=best,near" if file == "index.html" else "", file, color_scheme=scheme)
    if file == "index.html":
        page.locator("#comparison .questions li").first.wait_for()
    page.evaluate((Path(axe) / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then(result => result.violations)")
    assert not [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found]


def test_a_phone_shows_everything_without_scrolling_sideways(visit):
    for file in ("index.html", "entries/best.html"):
        page = visit("#compare=best,near" if file == "index.html" else "", file, viewport={"width": 390, "height": 844})
        page.locator(".questions li").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    narrow = visit(viewport={"width": 800, "height": 844})  # the table scrolls in its frame, the page does not
    assert narrow.locator("#table").bounding_box()["width"] > 800
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 800
    page = visit(viewport={"width": 390, "height": 844})
    card = page.locator("#table tbody tr").first
    assert card.bounding_box()["width"] <= 390 and "token_f1" in card.locator("td").nth(2).get_attribute("data-label")


def test_labels_of_the_figures_hide_neither_points_nor_each_other(visit):
    page = visit()
    page.locator("#front circle").first.wait_for()
    boxes = page.eval_on_selector_all(
        "#front text.label:not(:first-of-type), #front circle",
        "all => all.map(one => one.getBBox()).map(one => [one.x, one.y, one.x + one.width, one.y + one.height])",
    )
    assert len(boxes) >= 5
    for i, (x, y, right, bottom) in enumerate(boxes):
        for left, top, end, low in boxes[i + 1 :]:
            assert end <= x + 1 or right <= left + 1 or low <= y + 2 or bottom <= top + 2
    assert page.locator("#coverage circle").count() >= 5, "an entry abstains, so risk and coverage are drawn"
    assert page.locator("#heat-table tbody tr").count() >= 6


def test_the_table_is_reached_by_keyboard(visit):
    page = visit()
    page.get_by_role("button", name="token_f1").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("token_f1")
    assert page.evaluate("document.activeElement.dataset.key") == "token_f1"


def test_the_page_is_light_and_painted_soon(visit, site):
    assert (site / "index.html").stat().st_size < 100_000
    page = visit()
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < 5_000, (
        "on a busy machine"
    )
