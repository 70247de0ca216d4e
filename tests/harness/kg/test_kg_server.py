"""Our server and our client against each other, and the client against servers that misbehave."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg import client as client_module
from lm_eval_rag.harness.kg.client import HttpGraph
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.functions import FUNCTIONS
from lm_eval_rag.harness.kg.server import MAX_BODY, make_app

requests = pytest.importorskip("requests")
SAMPLES: dict[str, tuple[Any, ...]] = {  # function -> arguments with which the demo graph finds something
    "movie_get_year_info": ("2013",),
    "movie_get_movie_info": ("glass",),
    "finance_get_company_name": ("foods",),
    "music_grammy_get_best_album_by_year": (2019,),
    "movie_get_movie_info_by_id": (103,),
    "movie_get_person_info_by_id": (903,),
    "finance_get_ticker_by_name": ("Brannick Solar Holdings Ltd.",),
    "music_get_billboard_rank_date": (1, "2024-02-28"),
    "music_get_billboard_attributes": ("2024-02-28", "rank", "Kerosene Sunday"),
    "music_grammy_get_award_count_by_song": ("Sixteen Winters",),
    "music_get_members": ("Old Ferry Choir",),
    "sports_soccer_get_games_on_date": ("2024-02", "Dunmere Athletic"),
    "sports_nba_get_games_on_date": ("2024-02-01", None),
    "sports_nba_get_play_by_play_data_by_game_ids": (["0022400000"],),
    "music_grammy_get_all_awarded_artists": (),
}
KINDS = {"integer": 2015, "finance": "VLMR", "open": "Pellworth", "movie": "Mina Solvay", "music": "Thessaly Crane"}


def sample(name: str) -> Lookup:
    function = FUNCTIONS[name]
    if name in SAMPLES:
        values = SAMPLES[name]
    else:
        values = tuple(KINDS["integer" if p.type == "integer" else function.domain] for p in function.parameters)
        values = ("Sixteen Winters",) if "song" in name and function.parameters[0].type == "text" else values
    return Lookup(name, tuple(zip((p.name for p in function.parameters), values, strict=True)))


@pytest.fixture(scope="module")
def url(graph: EmbeddedGraph) -> Iterator[str]:
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("fastapi")
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(graph), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def test_all_38_functions_give_the_same_over_http(url: str, graph: EmbeddedGraph) -> None:
    calls = [sample(name) for name in FUNCTIONS]
    local, remote = graph.call(calls), HttpGraph(url, timeout=60).call(calls)
    assert len(local) == 38 and not [reply for reply in local if reply in (None, []) or isinstance(reply, CallError)]
    assert json.dumps(remote, sort_keys=True) == json.dumps(local, sort_keys=True)


def test_the_surface_is_that_of_the_published_server(url: str) -> None:
    """Bodies as the published client sends them, with all its keys."""
    assert requests.get(url, timeout=30).status_code == 200

    def post(path: str, **body: Any) -> Any:
        return requests.post(f"{url}/{path}", json=body, timeout=30)

    assert post("finance/get_eps", query="VLMR").json()["result"] > 0
    assert post("music/get_billboard_rank_date", rank=1, date=None).json()["result"][0]
    assert post("sports/nba/get_games_on_date", team_name=None, date="2024-02-01").json()["result"]["game_id"]
    assert requests.post(f"{url}/music/grammy_get_all_awarded_artists", timeout=30).json()["result"]
    assert post("finance/get_eps", query="NONE").json() == {"result": None}
    for path, wrong in {
        "finance/get_eps": {},
        "movie/get_movie_info_by_id": {"query": "x"},
        "sports/nba/get_play_by_play_data_by_game_ids": {"game_ids": "x"},
        "music/get_billboard_attributes": {"date": "2024-02-28", "attribute": "__class__", "song_name": "x"},
        "open/get_entity": {"query": "x", "admin": True},
        "open/search_entity_by_name": {"query": "x" * 5_000},
    }.items():
        assert post(path, **wrong).status_code == 422, path
    assert requests.get(f"{url}/finance/get_eps", timeout=30).status_code == 405
    for path in ("finance/../../etc/passwd", "finance/get_eps/..%2f..%2fetc", "admin"):
        assert post(path, query="x").status_code == 404


def test_hostile_bodies_do_no_harm(url: str) -> None:
    def send(body: Any) -> int:
        headers = {"content-type": "application/json"}
        status: int = requests.post(f"{url}/open/get_entity", data=body, headers=headers, timeout=30).status_code
        return status

    assert send(b"{") == 422
    assert send(b'{"query": ' + b"[" * 50_000) in (400, 422)
    assert send(b'{"query": ' + b'{"a":' * 2_000 + b"1" + b"}" * 2_001) in (400, 422)
    assert send(b"x" * (MAX_BODY + 1)) == 413
    assert send(iter([b"x" * (1 << 19)] * 4)) == 413  # chunked: the length is not told
    assert send(json.dumps({"query": "\ud800"})) == 422
    for text in ("'; DROP TABLE game; --", "../../etc/passwd", "\x00", "{{7*7}}", "%s%s%n"):
        assert send(json.dumps({"query": text})) == 200
    assert requests.get(url, timeout=30).status_code == 200


def test_a_missing_file_is_said_by_the_server_and_passed_on(tmp_path: Any) -> None:
    fastapi = pytest.importorskip("fastapi.testclient", exc_type=ImportError)
    with fastapi.TestClient(make_app(EmbeddedGraph(tmp_path))) as local:
        reply = local.post("/finance/get_eps", json={"query": "A"})
    assert reply.status_code == 501 and "finance_info.sqlite" in reply.json()["detail"]


Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def misbehaving() -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """``misbehaving(answer, ...)``: the address of a server that gives these answers in turn (the last again and
    again), and the paths that it was asked for."""
    servers = []

    def start(*answers: Answer) -> tuple[str, list[str]]:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                asked.append(self.path)
                answers[min(len(asked), len(answers)) - 1](self)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}", asked

    yield start
    for server in servers:
        server.shutdown()


def says(content: bytes, status: int = 200, length: int | None = None, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def hangs(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(30)


def drips(handler: BaseHTTPRequestHandler) -> None:
    """One byte of a header at a time: no single read ever times out."""
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 600:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.05)
    except OSError:
        pass


GOOD = says(b'{"result": 7}')
MENDABLE = {
    "500": says(b"oops", 500),
    "503": says(b"", 503, retry_after="0"),
    "429": says(b"", 429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
    "garbage": says(b"<html>"),
    "cut": says(b'{"result": ', length=500),
    "no result": says(b'{"detail": 1}'),
    "a list": says(b"[1]"),
    "nested": says(b"[" * 100_000),
    "empty": says(b""),
}
EPS = [Lookup("finance_get_eps", (("ticker_name", "A"),))]


@pytest.mark.parametrize("fault", MENDABLE)
def test_what_may_mend_is_tried_again(fault: str, misbehaving: Callable[..., Any]) -> None:
    url, asked = misbehaving(MENDABLE[fault], MENDABLE[fault], GOOD)
    assert HttpGraph(url, pause=0.01).call(EPS) == [7]
    assert asked == ["/finance/get_eps"] * 3
    url, asked = misbehaving(MENDABLE[fault])
    failed = HttpGraph(url, pause=0.01, tries=2).call(EPS)[0]
    assert isinstance(failed, CallError) and "failed 2 times" in str(failed) and len(asked) == 2


@pytest.mark.parametrize("status", [302, 400, 404, 422, 501])
def test_what_cannot_mend_fails(status: int, misbehaving: Callable[..., Any]) -> None:
    answer = says(b"no", status, location="http://127.0.0.1:1/") if status != 501 else says(b'{"detail": "none"}', 501)
    url, asked = misbehaving(answer)
    failed = HttpGraph(url, pause=0.01).call(EPS)[0]
    assert isinstance(failed, CallError) and str(status) in str(failed)
    assert len(asked) == 1


@pytest.mark.parametrize("fault", [hangs, drips])
def test_slow_servers_hold_nobody_up(fault: Answer, misbehaving: Callable[..., Any]) -> None:
    url, _ = misbehaving(fault)
    began = time.monotonic()
    failed = HttpGraph(url, timeout=0.4, tries=2, pause=0.01).call(EPS * 4)
    assert all("no whole reply within 0.4 seconds" in str(error) for error in failed)
    assert time.monotonic() - began < 20  # the servers take 30


def test_an_endless_reply_is_cut_off(misbehaving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_REPLY", 1_000)
    url, asked = misbehaving(says(b'{"result": "' + b"x" * 5_000 + b'"}'))
    assert "longer than" in str(HttpGraph(url).call(EPS)[0]) and len(asked) == 1


def test_a_server_that_is_down_and_calls_that_are_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    graph = HttpGraph(f"http://127.0.0.1:{port}/", tries=2, pause=0.01)
    with pytest.raises(UserError, match=rf"kg=http://127.0.0.1:{port}/ does not answer: .*refused"):
        graph.call(EPS)
    graph.__dict__["_answers"] = True  # it did before
    down, unknown, wrong = graph.call([*EPS, Lookup("os_system"), Lookup("finance_get_eps")])
    assert "failed 2 times" in str(down) and "Unknown function" in str(unknown) and "is missing" in str(wrong)
    assert graph.call([]) == []


def test_a_server_that_takes_connections_and_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        graph = HttpGraph(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        with pytest.raises(UserError, match="does not answer: timed out"):
            graph.call(EPS)


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--port", "99999999"], 2, "--port 99999999 is not a port: give a whole number from 0"),
        (["--port", "-1"], 2, "--port -1 is not a port"),
        ([], 2, "holds no knowledge graph: give the folder of finance, movie"),
        (["--port", "taken"], 1, "cannot be used: Address already in use"),
    ],
)
def test_what_cannot_be_served(
    options: list[str], status: int, says: str, tmp_path: Path, demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("fastapi")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = [option.replace("taken", str(taken.getsockname()[1])) for option in options]
        assert cli.main(["serve-kg", str(demo_folder if options else tmp_path), *options]) == status
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_many_calls_go_at_once_and_come_back_in_order(misbehaving: Callable[..., Any]) -> None:
    lock, here, most = threading.Lock(), 0, 0

    def slow(handler: BaseHTTPRequestHandler) -> None:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
        time.sleep(0.05)
        with lock:
            here -= 1
        says(json.dumps({"result": handler.path}).encode())(handler)

    url, _ = misbehaving(slow)
    calls = [sample(name) for name in FUNCTIONS]
    assert HttpGraph(url, concurrency=4).call(calls) == [FUNCTIONS[call.function].path for call in calls]
    assert 1 < most <= 4


def test_it_works_inside_a_running_event_loop(misbehaving: Callable[..., Any]) -> None:
    import asyncio

    url, _ = misbehaving(GOOD)

    async def notebook() -> Any:
        return HttpGraph(url).call(EPS)

    assert asyncio.run(notebook()) == [7]
