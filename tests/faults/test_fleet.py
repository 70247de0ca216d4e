"""Several servers of one model: the same answers as with one, also when one of them is killed or fails for a while."""

import asyncio
import threading
from collections import Counter
from contextlib import ExitStack

import aiohttp
import pytest
from proxy import Chat, scripted
from test_server import answers_of, last_line, samples_of, scores_of

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.addresses import addresses
from lm_eval_rag.harness.generators.fleet import BLOCK, Fleet
from lm_eval_rag.harness.generators.spec import ModelSpec

N = 16


@pytest.fixture
def servers():
    with ExitStack() as stack:
        yield [stack.enter_context(Chat(scripted(last_line))) for _ in range(3)]


@pytest.fixture(scope="module")
def alone(evaluate):
    with Chat(scripted(last_line)) as server:
        return evaluate("iter_retgen", server.url, {"iterations": 2}, limit=N)


def urls(servers):
    return ",".join(server.url for server in servers)


def test_three_servers_answer_as_one(evaluate, alone, servers):
    results = evaluate("iter_retgen", f"[{urls(servers)}]", {"iterations": 2}, limit=N)
    assert answers_of(results) == answers_of(alone) and scores_of(results) == scores_of(alone)
    counts = [sum(server.tries.values()) for server in servers]
    assert sum(counts) == 2 * N and min(counts) > 0


def test_one_is_killed_and_nothing_is_paid_twice(evaluate, alone, servers, tmp_path, caplog):
    dying, given = servers[1], {"iterations": 2, "journal": str(tmp_path / "j.sqlite")}
    plain = dying.reply

    def reply(body):
        if sum(dying.answered.values()) >= 4 and not dying.dead:  # replies run at once, so none may see exactly 4
            dying.kill()
        return plain(body)

    dying.reply = reply
    results = evaluate("iter_retgen", urls(servers), given, limit=N)
    assert answers_of(results) == answers_of(alone) and scores_of(results) == scores_of(alone)
    assert f"{dying.url} is left out for now" in caplog.text and "2 of 3 servers answer" in caplog.text
    answered = sum((server.answered for server in servers), Counter())
    assert set(answered.values()) == {1} and 0 < sum(dying.answered.values()) < sum(answered.values()) / 3
    with Chat(scripted(last_line)) as other, Chat(scripted(last_line)) as another:
        again = evaluate("iter_retgen", urls([other, another]), given, limit=N)
        assert answers_of(again) == answers_of(alone) and not other.tries and not another.tries


def test_a_server_that_recovers_is_asked_again(evaluate, servers, caplog):
    ill, lock = servers[0], threading.Lock()
    left = [3]

    def fault(prompt, nth):
        with lock:
            left[0] -= 1
            return "503" if left[0] >= 0 else None

    ill.fault = fault
    results = evaluate("standard_rag", urls(servers), {"gen_num_concurrent": 1}, limit=40)
    assert all(answers_of(results).values()) and ill.faults["503"] == 3
    assert sum(ill.answered.values()) > 0 and f"{ill.url} answers again" in caplog.text
    assert results["config"]["rag"]["counts"]["unscored"] == 0


def test_if_all_refuse_the_run_ends_as_with_one(evaluate, servers):
    for server in servers:
        server.fault = lambda prompt, nth: "401"
    with pytest.raises(UserError, match="server refused the request"):
        evaluate("standard_rag", urls(servers), limit=4)


def test_a_prompt_that_is_at_fault_puts_no_server_out(evaluate, servers, monkeypatch):
    import proxy

    monkeypatch.setitem(proxy.FAULTS, "400", proxy.status(400))
    bad = []

    def fault(prompt, nth):
        bad[:] = bad or [prompt]
        return "400" if prompt in bad else None

    for server in servers:
        server.fault = fault
    results = evaluate("standard_rag", urls(servers), limit=8)
    assert results["config"]["rag"]["counts"]["unscored"] == 1
    assert sum(sum(server.faults.values()) - server.faults[None] for server in servers) == 1
    assert len(samples_of(results)) == 8


# --- where a prompt goes


def played(requests, urls=("a", "b", "c"), width=4, fails=lambda url, prompt: None):
    """The server of each request; each of a group is sent before any of them is answered."""
    fleet, sent = Fleet(urls, width, 0.01, list), []

    async def one(prompt):
        async def post(url):
            sent.append((prompt, url))
            await asyncio.sleep(0)
            error = fails(url, prompt)
            if error is not None:
                raise error
            return url

        return await fleet.send(prompt, post)

    async def main():
        return [await asyncio.gather(*(one(prompt) for prompt in group)) for group in requests]

    return asyncio.run(main()), sent


def test_the_least_busy_is_asked_first():
    (first,), _ = played([["p"] * 7])
    assert Counter(first) == {"a": 3, "b": 2, "c": 2}
    (all_of_them,), _ = played([["p"] * 30])
    assert sorted(Counter(all_of_them)) == ["a", "b", "c"]


def test_prompts_with_one_beginning_go_to_one_server_where_loads_are_equal():
    x, y, z = ("x" * BLOCK, "y" * BLOCK, "z" * BLOCK)
    first, *later = played([[x, y, z], [y + "1"], [z + "1"], [x + "1"], [y + "2"]])[0]
    of = dict(zip((x, y, z), first, strict=True))
    assert len(set(first)) == 3
    assert later == [[of[y]], [of[z]], [of[x]], [of[y]]]
    longer = played([[x], [x + y, x + z], [x + z + "1"], [x + y + "1"]])[0]
    assert longer[2] != longer[3] and {longer[2][0], longer[3][0]} == set(longer[1])


def test_a_failure_goes_to_another_and_then_up():
    def fails(url, prompt):
        return aiohttp.ClientError("no") if url == "a" or prompt == "bad" else None

    answered, sent = played([["good"]], fails=fails)
    assert answered == [["b"]] and sent == [("good", "a"), ("good", "b")]
    with pytest.raises(aiohttp.ClientError):
        played([["bad"]], fails=fails)


# --- how they are given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()), ("http://a/v1", ("http://a/v1",)), ("http://a/v1,http://b/v1", ("http://a/v1", "http://b/v1")),
        ("[http://a/v1, http://b/v1]", ("http://a/v1", "http://b/v1")), (["http://a", "http://b"], ("http://a", "http://b")),
    ],
)  # fmt: skip
def test_addresses(given, expected):
    assert addresses(given) == expected


def test_lists_are_checked_and_the_journal_does_not_know_addresses():
    def spec(urls):
        return ModelSpec("local-chat-completions", {"base_url": urls, "model": "m"})

    for urls, message in ((["http://a/v1", "b"], "gen_base_url=b is not an address"), ("http://a,http://a", "twice")):
        with pytest.raises(UserError, match=message):
            spec(urls).check()
    assert spec("http://a,http://b").identity == spec(["http://c", "http://d", "http://e"]).identity
    assert spec("http://a").identity != spec("http://b").identity
    assert spec("http://a,http://b").width == 16 and spec("http://a").width == 8


def test_a_text_of_arguments_may_hold_several(evaluate, servers):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from lm_eval_rag._register import tasks_folder

    results = simple_evaluate(
        model="standard_rag",
        model_args=f"generator=local-chat-completions,gen_base_url={urls(servers)},gen_model=any,journal=off",
        tasks=["ruleqa_demo"],
        task_manager=TaskManager(include_defaults=False, include_path=str(tasks_folder())),
        limit=9,
    )
    assert len(answers_of(results)) == 9 and all(sum(server.tries.values()) for server in servers)
