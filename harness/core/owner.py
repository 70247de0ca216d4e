"""Who makes a call: a process and what it runs, told from every other, and whether it still lives."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid

FORGOTTEN = 900.0  # seconds after which a claim made on another machine counts for nothing


def new_owner() -> str:
    """Machine, process, when that began, and a name of its own."""
    return json.dumps([socket.gethostname(), os.getpid(), _born(os.getpid()), uuid.uuid4().hex])


def lives(owner: str, at: float) -> bool:
    """Whether an owner may still be at work: its process lives, or it ran on another machine not long ago.

    Args:
        owner: As :func:`new_owner` wrote it.
        at: When it was last seen, in seconds since the epoch.
    """
    try:
        host, pid, born, _ = json.loads(owner)
    except (ValueError, TypeError):
        return False
    if host != socket.gethostname():
        return time.time() - at < FORGOTTEN
    return born is not None and _born(pid) == born


def _born(pid: int) -> float | None:
    """When a process began, which tells it from a later one with its number; None for none."""
    import psutil

    try:
        return round(float(psutil.Process(pid).create_time()), 2)
    except (psutil.Error, TypeError, ValueError):
        return None
