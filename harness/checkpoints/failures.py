"""Explains errors of the Hub's client: what happened, and what to do."""

from __future__ import annotations

from lm_eval_rag.harness.common.errors import UserError

LOG_IN = "Log in with `hf auth login`, or set HF_TOKEN to a token with access."


def failures() -> tuple[type[Exception], ...]:
    """Every error that the Hub's client raises, whichever HTTP library it uses."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    http = HfHubHTTPError.__mro__[1]  # that library's HTTPError, which covers interrupted connections
    return (HFValidationError, http, OSError)


def explained(error: BaseException, repo: str, *, kind: str, revision: str | None = None) -> UserError:
    """One line for an error about a repository: the first explanation whose type matches."""
    from huggingface_hub import constants, errors

    named = f"The {kind} repository {repo!r}" + (f" at revision {revision!r}" if revision else "")
    at, line = constants.ENDPOINT, first_line(error)
    meanings: tuple[tuple[type[BaseException], str], ...] = (
        (errors.HFValidationError, f"cannot exist: {line} Give ORG/NAME."),
        (errors.GatedRepoError, f"requires accepting its terms at {at}/{repo}. {LOG_IN}"),
        (errors.RepositoryNotFoundError, f"is not on {at} or is private, and is not a local folder. {LOG_IN}"),
        (errors.RevisionNotFoundError, f"is not on {at}: the repository has no such tag, branch or commit."),
        (errors.HfHubHTTPError, f"could not be used: {line} If access was refused: {LOG_IN}"),
        (
            errors.LocalEntryNotFoundError,
            f"is incomplete in the cache {constants.HF_HUB_CACHE}, and {_unreached(at, line)}",
        ),
        (BaseException, f"could not be used ({type(error).__name__}: {line}) Run the same command again to resume."),
    )
    return UserError(next(f"{named} {meaning}" for type_, meaning in meanings if isinstance(error, type_)))


def _unreached(at: str, line: str) -> str:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE=1 forbids downloads. Unset it, connect to the network, and run again."
    return f"it cannot be downloaded from {at}: {line} Check the network (and HF_ENDPOINT, if set), and run again."


def first_line(error: BaseException) -> str:
    """The first non-empty line of an error's message, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".:") + "."
