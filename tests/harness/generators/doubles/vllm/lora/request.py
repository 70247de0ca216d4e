from typing import NamedTuple


class LoRARequest(NamedTuple):
    name: str
    id: int
    path: str
