"""Places are given by turn, then by arrival; a run on a busy server ends its questions one after the other."""

from __future__ import annotations

import asyncio
import random

from lm_eval_rag.harness.core.asks import Generate, generate
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.turn import Places, take_turn, turn
from lm_eval_rag.harness.core.types import Answer, Query, Step


async def visit(places, position, order, *, work=0.0):
    take_turn(position)
    async with places:
        order.append(position)
        await asyncio.sleep(work)


def test_a_free_place_goes_to_the_lowest_turn_then_to_the_first_come():
    drawn = random.Random(0)
    positions = [drawn.randrange(6) for _ in range(40)]

    async def main():
        places, order = Places(1), []
        async with places:
            tasks = [asyncio.create_task(visit(places, position, order)) for position in positions]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main()) == sorted(positions)


def test_no_more_are_inside_than_there_are_places_and_cancelled_ones_lose_none():
    drawn = random.Random(1)

    async def main():
        places, inside, most = Places(3), 0, 0

        async def stay(position):
            nonlocal inside, most
            take_turn(position)
            async with places:
                inside += 1
                most = max(most, inside)
                try:
                    await asyncio.sleep(drawn.random() / 500)
                finally:
                    inside -= 1

        tasks = [asyncio.create_task(stay(drawn.randrange(9))) for _ in range(200)]
        for task in drawn.sample(tasks, 120):  # before they came, while they wait, inside, and just given a place
            await asyncio.sleep(drawn.choice([0, 0, 0.0005]))
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        order = []
        await asyncio.wait_for(asyncio.gather(*(visit(places, i, order, work=0.001) for i in range(9))), 5)
        return inside, most, places._free, sorted(order)

    assert asyncio.run(main()) == (0, 3, 3, list(range(9)))


def test_who_was_given_a_place_and_is_cancelled_hands_it_on():
    async def main():
        places, order = Places(1), []
        async with places:
            first = asyncio.create_task(visit(places, 0, order))
            second = asyncio.create_task(visit(places, 1, order))
            await asyncio.sleep(0)
        first.cancel()  # it has the place, and has not gone on yet
        await asyncio.wait_for(second, 1)
        return order

    assert asyncio.run(main()) == [1]


class Server:
    """One request at once; notes who was served."""

    gather = 0

    def __init__(self):
        self.places, self.served = Places(1), []

    async def answer(self, query, ask):
        async with self.places:
            self.served.append((query.id, turn()))
            await asyncio.sleep(0)
            return Served((ask.prompt,), Step("Generate", ask.prompt, ask.prompt))

    async def close(self):
        pass


def three_steps(query):
    for step in range(3):
        yield from generate(f"{query.text} {step}")
    return Answer("done")


def test_a_run_serves_the_question_that_began_first():
    """While its reply is on the way to the method it cannot ask, and the next ones are served."""
    server = Server()
    Driver(three_steps, {Generate: server}).run([Query(f"q{i}", str(i)) for i in range(20)])
    assert sorted(server.served) == sorted((f"q{i}", i) for i in range(20) for _ in range(3))
    ended = [max(i for i, (id, _) in enumerate(server.served) if id == f"q{q}") for q in range(20)]
    assert ended == sorted(ended)
    assert all(end <= 3 * place + 8 for place, end in enumerate(ended)), ended  # in step the first would end at 40


def test_without_a_driver_all_have_the_same_turn():
    assert turn() == 0
