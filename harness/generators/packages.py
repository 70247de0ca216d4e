"""Which packages a generator needs beyond those of lm_eval, and what to install where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line

LITELLM = ("litellm", "litellm-chat", "litellm-chat-completions")
PACKAGES = {  # what needs a package beyond the extra `hf`, the package, and what to do
    "vllm": (
        "vllm",
        "It pins torch and transformers, so make an environment of its own: `{install}`; or start "
        "`vllm serve` there and give generator=local-chat-completions,gen_base_url=... here.",
    ),
    **dict.fromkeys(LITELLM, ("litellm", 'Install it with `pip install "lm_eval[litellm]"`.')),
}


def check_packages(name: str, *, is_hf: bool) -> None:
    """Raise a UserError that says what to install where a package is missing that the model needs."""
    package, how = PACKAGES.get(name, (None, ""))
    if package is not None and find_spec(package) is None:
        how = how.replace("{install}", install_line("vllm"))
        raise UserError(f"generator={name} needs the package {package}, which is not installed. {how}")
    if is_hf and None in map(find_spec, ("torch", "transformers")):
        raise UserError(
            f"generator={name} needs torch and transformers, which are not installed. Install them with "
            f"`{install_line('hf')}`, or use a generator behind an API (generator=local-chat-completions), "
            "or a method without generator (--model rule_vote)."
        )
