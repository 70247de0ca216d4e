"""The page in a browser, where Chromium is installed: filters, search and links, with hostile texts in the data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.view.view_page import page_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
Made = tuple[Path, list[dict[str, Any]], list[dict[str, Any]]]
HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\"> & {{ 1 }}"
TOPICS = ("history = old", '<img src=x onerror=alert(1)> & "art"', "sport")
OPTIONS = ("--headless=new", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: none of chromium, google-chrome is installed")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    (file,) = folder.rglob("samples_*.jsonl")
    samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for sample in samples:
        change(sample)
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return samples


def make_hostile(sample: dict[str, Any]) -> None:
    sample["doc"]["query"] = f"{HOSTILE} {sample['doc_id']}"
    sample["doc"]["topic"] = TOPICS[sample["doc_id"] % 3]  # a column of the user's own
    if (record := sample["doc"].get("_rag")) is not None:
        record["passages"][0].update(text=f"{HOSTILE} needle{sample['doc_id']}", id=HOSTILE)
        record["prompt"] = HOSTILE
    else:
        sample.update(filtered_resps=[HOSTILE], resps=[[HOSTILE]])


@pytest.fixture(scope="module")
def page_and_samples(
    make_run: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Any], list[Any]]:
    """The page, and the samples of its two runs."""
    folder = tmp_path_factory.mktemp("browser")
    make_run(folder / "a", model="standard_rag", n=60, right=0.3, seed=1)
    make_run(folder / "b", model="hf", n=60, right=0.1, seed=3, stock=True)
    samples = rewrite(folder / "a", make_hostile), rewrite(folder / "b", make_hostile)
    page = folder / "page.html"
    page.write_text(page_of(read_runs([folder / "a", folder / "b"])), encoding="utf-8")
    return page, *samples


def shown(page: Path, state: str, profile: Path) -> str:
    """The elements of the page after its script has run."""
    options = [*OPTIONS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    done = subprocess.run([str(CHROMIUM), *options, f"{page.as_uri()}#{state}"], capture_output=True, timeout=120)
    return done.stdout.decode("utf-8", "replace").partition('<script type="text/plain"')[0]


def test_filters_search_and_links(page_and_samples: Made, tmp_path: Path) -> None:
    page, ours, theirs = page_and_samples
    wanted = [a["doc"]["id"] for a, b in zip(ours, theirs, strict=True) if a["em"] == 1.0 and b["em"] == 0.0]
    dom = shown(page, f"outcome=only-right-0&id={wanted[2]}", tmp_path)
    listed = re.search(r'id="count"[^>]*>(\d+) of 60 questions<', dom)
    assert listed is not None and int(listed[1]) == len(wanted) > 2
    assert [unescape(text) for text in re.findall(r"<small>(q\d+)</small>", dom)] == wanted
    place = int(wanted[2][1:])
    assert f'data-id="{wanted[2]}"' in dom and f"needle{place}" in dom

    assert "<title>ruleqa_i: standard_rag, hf</title>" in dom, "a hostile text ran as a script"
    assert (
        "<img" not in dom
        and dom.count("<script") == 0
        and unescape(dom.split("<h2>")[1].split("</h2>")[0]) == f"{HOSTILE} {place}"
    )

    dom = shown(page, urlencode({"slice": f"topic={TOPICS[0]}"}), tmp_path)
    assert re.search(r'id="count"[^>]*>20 of 60 questions<', dom)
    assert re.findall(r"<small>(q\d+)</small>", dom)[:3] == ["q0000", "q0003", "q0006"]
    group = dom.partition('<optgroup label="topic">')[2].partition("</optgroup>")[0]
    assert [unescape(text) for text in re.findall(r">([^<]+)</option>", group)] == [f"{one} (20)" for one in TOPICS]

    found = shown(page, 'q="/script>" needle7', tmp_path)
    assert re.search(r'id="count"[^>]*>1 of 60 questions<', found) and 'data-id="q0007"' in found
    assert "<img" not in found and ">needle7</mark>" in found
