"""CRAG's records in every spelling, and the time at which a question was asked."""

import json
import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.tasks.crag.clock import iso_time
from lm_eval_rag.tasks.crag.schema import CUT, MAX_PAGE, parse

ROW = {"query": "who?", "answer": "ada", "interaction_id": "i1", "query_time": "03/17/2024, 23:55:01 PT", "split": 0}


def record(**changes):
    return parse(json.dumps({**ROW, **changes}), "file, line 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("03/17/2024, 23:55:01 PT", "2024-03-17T23:55:01-07:00"),
        ("02/28/2024, 10:04:54 PT", "2024-02-28T10:04:54-08:00"),
        ("03/10/2024, 01:59:59 PT", "2024-03-10T01:59:59-08:00"),
        ("03/10/2024, 03:00:00 PT", "2024-03-10T03:00:00-07:00"),
        ("11/03/2024, 01:30:00 PT", "2024-11-03T01:30:00-07:00"),
        ("11/03/2024, 02:00:00 PT", "2024-11-03T02:00:00-08:00"),
        ("7/4/2024 9:05:00 pst", "2024-07-04T09:05:00-08:00"),
        ("01/02/2024, 00:00:00 UTC", "2024-01-02T00:00:00+00:00"),
    ],
)
def test_the_zone_is_part_of_the_time(text, expected):
    assert iso_time(text) == expected


def test_pacific_time_is_that_of_the_zone_data_base():
    zone, rng = ZoneInfo("America/Los_Angeles"), random.Random(0)
    for _ in range(3000):
        local = datetime(2008, 1, 1) + timedelta(minutes=rng.randrange(40 * 365 * 24 * 60))
        asked = datetime.fromisoformat(iso_time(f"{local:%m/%d/%Y, %H:%M:%S} PT"))
        assert asked.utcoffset() == local.replace(tzinfo=zone).utcoffset(), local
        assert asked.replace(tzinfo=None) == local


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-03-17",
        "03/17/2024, 23:55:01",
        "13/40/2024, 01:00:00 PT",
        "03/17/2024, 25:00:00 PT",
        "03/17/2024, 10:00:00 ET",
    ],
)
def test_a_time_that_is_none_is_refused_there_and_noted_in_a_record(text):
    with pytest.raises(UserError, match="PT, PST, PDT"):
        iso_time(text)
    found = record(query_time=text)
    assert found.time is None
    assert found.notes == (() if text == "" else ("query time not understood",))


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        ({}, ("ada",)),
        ({"alt_ans": ["lady ada", "ada"]}, ("ada", "lady ada")),
        ({"alternative_answers": ["lady ada"]}, ("ada", "lady ada")),
        ({"alternative_answers": '["lady ada", 7]'}, ("ada", "lady ada", "7")),
        ({"alternative_answers": "[]"}, ("ada",)),
        ({"alternative_answers": ""}, ("ada",)),
        ({"alternative_answers": "lady ada"}, ("ada", "lady ada")),
        ({"alternative_answers": "[broken"}, ("ada", "[broken")),
        ({"alt_ans": None}, ("ada",)),
        ({"alt_ans": 3}, ("ada", "3")),
        ({"alt_ans": ["a"], "alternative_answers": '["b"]'}, ("ada", "a", "b")),
        ({"answer": 4}, ("4",)),
        ({"answer": 4.5, "alt_ans": [4, " "]}, ("4.5", "4")),
        ({"answer": float("nan")}, ("nan",)),
        ({"answer": True}, ("true",)),
        ({"answer": 0}, ("0",)),
    ],
)
def test_answers_in_every_spelling(changes, answers):
    assert record(**changes).answers == answers


def test_what_may_be_missing():
    found = parse('{"query": "q", "answer": "a"}', "w")
    assert (found.id, found.time, found.split, found.pages) == ("", None, None, ())
    assert set(found.labels.values()) == {None}
    assert record(popularity="").labels["popularity"] is None
    assert record(popularity="Head").labels["popularity"] == "head"


def test_a_label_that_is_not_listed_is_kept_and_noted():
    found = record(domain="chess")
    assert found.labels["domain"] == "chess"
    assert found.notes == ("domain 'chess' not in the published list",)


def test_pages_may_be_empty_repeated_or_huge():
    page = {
        "page_url": "u",
        "page_name": "n",
        "page_snippet": "s",
        "page_result": "<p>x</p>",
        "page_last_modified": "m",
    }
    found = record(search_results=[page, {**page, "page_result": ""}, {**page, "page_result": None}, {}]).pages
    assert [one.html for one in found] == ["<p>x</p>", "", "", ""]
    assert (found[0].name, found[0].url, found[0].snippet, found[0].modified, found[0].note) == ("n", "u", "s", "m", "")
    (huge,) = record(search_results=[{**page, "page_result": "x" * (MAX_PAGE + 1)}]).pages
    assert (len(huge.html), huge.note) == (MAX_PAGE, CUT)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "file, line 1: not JSON"),
        (b"\xff\xfe{}", "file, line 1: not JSON"),
        (b"[" * 100_000, "file, line 1: not JSON"),
        (b"[1]", "not a record of CRAG.*Found: list"),
        (b"{}", "Found: an empty object"),
        (b'{"question": "q", "gold": "a"}', "Found: gold, question"),
        (b'{"query": "q"}', "'query' and 'answer'"),
        (b'{"query": "q", "answer": []}', "not a record of CRAG"),
        (b'{"query": "q", "answer": "a", "alt_ans": {}}', "'alt_ans' is dict"),
        (b'{"query": "q", "answer": "a", "split": 2}', "'split' is '2'"),
        (b'{"query": "q", "answer": "a", "search_results": ["html"]}', "'search_results' is not a list of objects"),
    ],
)
def test_what_is_no_record_is_named_with_its_line(line, message):
    with pytest.raises(UserError, match=message):
        parse(line, "file, line 1")
