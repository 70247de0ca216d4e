"""``--engine ray``: one function over many jobs, run by the workers of a Ray cluster or of this machine.

A job is a piece of work whose result is a file, such as one shard of vectors. The caller leaves finished jobs out, so
that an interrupted command goes on where it ended. The workers are other machines or processes with this package, and
read and write the same folders: ``$LM_EVAL_RAG_CACHE`` must be on a disk that all of them share. Ray retries a job
whose worker was killed; an error of the function itself ends the command.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import MachineError, UserError, at_least, unknown
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.common.paths import CACHE, cache_dir
from lm_eval_rag.harness.common.progress import Meter

ENGINES = ("here", "ray")
LOCAL = "local"  # Ray's word for a cluster of this machine alone, started for this command
RETRIES = 3  # of a job whose worker was killed
AHEAD = 2  # jobs in flight for each that can run at once: a worker that is ready does not wait for this process
OURS = "LM_EVAL_RAG_"  # environment variables that the workers take over
Job = TypeVar("Job")


@dataclass(frozen=True, slots=True)
class RayEngine:
    """A cluster, and what one job takes of it.

    Args:
        address: As ``ray.init`` takes it: ``auto``, ``HOST:PORT``, ``ray://HOST:PORT``, or ``local``.
        cpus: Cores of a job; Ray sets its ``OMP_NUM_THREADS`` to them.
        retries: How often a job is run again after its worker was killed.
    """

    address: str = LOCAL
    cpus: int = 1
    retries: int = RETRIES

    def run(
        self, name: str, function: Callable[[Job], int], jobs: Sequence[Job], sizes: Sequence[int], unit: str
    ) -> None:
        """Run all jobs, in any order; returns when the last has ended.

        Args:
            name: What is done, for the progress.
            function: Does one job in a worker, and returns how many units it did. Ray may run a job again.
            jobs: Objects that can be pickled.
            sizes: Units of each job; what the function returns must be equal.
            unit: What is counted, in the plural.

        Raises:
            UserError: Ray is missing or does not answer, the function raised one, or a count is wrong.
            MachineError: A worker was killed ``retries`` + 1 times, such as for memory.
        """
        with connected(self.address) as ray, Meter(name, sum(sizes), unit) as meter:
            remote, limit = self._remote(ray)
            shared = ray.put((function, variables()))
            waiting, running = list(enumerate(jobs))[::-1], dict[Any, int]()
            try:
                while waiting or running:
                    while waiting and len(running) < limit:
                        number, job = waiting.pop()
                        running[remote.remote(shared, job)] = number
                    (ready, *_), _ = ray.wait(list(running))
                    number = running.pop(ready)
                    _check(name, number, sizes[number], _result(ray, name, ready, self.retries), unit)
                    meter.update(sizes[number])
            finally:
                for reference in running:
                    ray.cancel(reference)

    def _remote(self, ray: Any) -> tuple[Any, int]:
        """What runs a job in a worker; and how many may be in flight."""
        places, options = room(ray, self.cpus)
        return ray.remote(_in_worker).options(**options, max_retries=self.retries), AHEAD * places


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine``, ``--address`` and ``--job-cpus``."""
    parser.add_argument("--engine", default=ENGINES[0], metavar="NAME", help="here (default), or ray: by Ray's workers")
    parser.add_argument(
        "--address", metavar="ADDRESS", help="of a Ray cluster: auto or HOST:PORT (default: one of this machine alone)"
    )
    parser.add_argument("--job-cpus", type=int, metavar="N", help="cores of one of Ray's jobs (default: 1)")


def engine_of(chosen: argparse.Namespace) -> RayEngine | None:
    """The engine of a command line; None for this process.

    Raises:
        UserError: An unknown engine, options of Ray without it, or Ray is not installed.
    """
    if chosen.engine not in ENGINES:
        raise unknown("engine", chosen.engine, ENGINES)
    if chosen.engine == "ray":
        need("--engine ray", "ray", "ray")
        return RayEngine(chosen.address or LOCAL, at_least("--job-cpus", chosen.job_cpus or 1))
    if chosen.address is not None or chosen.job_cpus is not None:
        raise UserError("--address and --job-cpus are of Ray: give --engine ray too, or leave them out.")
    return None


def _in_worker(shared: tuple[Callable[[Any], int], dict[str, str]], job: Any) -> int:
    function, variables = shared
    os.environ.update(variables)
    return function(job)


def variables() -> dict[str, str]:
    """The environment variables that the workers take over, with the folder of the cache."""
    ours = {key: value for key, value in os.environ.items() if key.startswith(OURS)}
    return {**ours, CACHE: str(cache_dir().absolute())}


def room(ray: Any, cpus: int) -> tuple[int, dict[str, int]]:
    """How many workers of so many cores fit, each with a GPU of its own if there are any; and what each takes."""
    held = ray.cluster_resources()
    gpus = 1 if held.get("GPU") else 0
    places = held["GPU"] if gpus else held.get("CPU", 1) // cpus
    return max(1, int(places)), {"num_cpus": cpus, "num_gpus": gpus}


@contextmanager
def connected(address: str, what: str = "--engine ray") -> Iterator[Any]:
    """Ray's module, connected; a connection that the caller has is used and stays.

    Args:
        address: As for :class:`RayEngine`.
        what: What needs Ray, for errors.
    """
    need(what, "ray", "ray")
    import ray

    if ray.is_initialized():
        yield ray
        return
    own: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, logging_level="WARNING", **own)
    except Exception as error:  # Ray has no class for a start that failed
        ray.shutdown()
        why = (str(error).splitlines() or [type(error).__name__])[0]
        advice = "Run the command again" if own else "Start one with `ray start --head`, or leave the address out"
        raise MachineError(f"Ray does not run at the address {address} ({why}). {advice}.") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def in_our_words(ray: Any, error: Exception, name: str, retries: int) -> Exception:
    """The error of the function that a worker ran; of Ray itself, what to do."""
    if isinstance(error, ray.exceptions.RayTaskError):
        cause: Exception = error.cause
        return cause
    why = (str(error).splitlines() or [""])[0] or type(error).__name__
    return MachineError(
        f"{name}: a worker was killed, also after {retries} more tries ({why}). What is finished is kept: see to the "
        "memory of the workers, and run the same command again."
    )


def _result(ray: Any, name: str, reference: Any, retries: int) -> int:
    try:
        return int(ray.get(reference))
    except ray.exceptions.RayError as error:
        raise in_our_words(ray, error, name, retries) from None


def _check(name: str, number: int, expected: int, done: int, unit: str) -> None:
    if done != expected:
        raise UserError(f"{name}: job {number} has {expected} {unit}, and its worker did {done}. Run it again.")
