"""What an error of the Hub's client means for the user, and what to do about it."""

from __future__ import annotations

from lm_eval_rag.harness.common.errors import UserError

LOG_IN = "Give a token that may: `hf auth login`, or the variable HF_TOKEN."


def failures() -> tuple[type[Exception], ...]:
    """Every error by which the Hub's client says that something did not work, whichever HTTP library it uses."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    http = HfHubHTTPError.__mro__[1]  # that library's HTTPError: a connection that was cut is one
    return (HFValidationError, http, OSError)


def explained(error: BaseException, repo: str, *, kind: str, revision: str | None = None) -> UserError:
    """The one line for an error about a repository: the first meaning whose type fits."""
    from huggingface_hub import constants, errors

    named = f"The {kind} repository {repo!r}" + (f" at revision {revision!r}" if revision else "")
    at, line = constants.ENDPOINT, first_line(error)
    meanings: tuple[tuple[type[BaseException], str], ...] = (
        (errors.HFValidationError, f"cannot exist: {line} Give ORG/NAME."),
        (errors.GatedRepoError, f"asks its users to accept terms: do so at {at}/{repo}. {LOG_IN}"),
        (errors.RepositoryNotFoundError, f"is not on {at}, or is private (nor is it a folder here). {LOG_IN}"),
        (errors.RevisionNotFoundError, f"is not on {at}: the repository has no such tag, branch or commit."),
        (errors.HfHubHTTPError, f"could not be used: {line} If access was refused: {LOG_IN}"),
        (
            errors.LocalEntryNotFoundError,
            f"is not whole in the cache {constants.HF_HUB_CACHE}, and {_unreached(at, line)}",
        ),
        (BaseException, f"could not be used ({type(error).__name__}: {line}) Run the same again: it then goes on."),
    )
    return UserError(next(f"{named} {meaning}" for type_, meaning in meanings if isinstance(error, type_)))


def _unreached(at: str, line: str) -> str:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE=1 forbids a download. Unset it once, with a network, and run again."
    return f"{at} does not give it: {line} Check the network (and HF_ENDPOINT, if it is set), and run again."


def first_line(error: BaseException) -> str:
    """The first line of an error's message that says anything, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".:") + "."
