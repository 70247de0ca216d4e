"""Sends a submission to a dataset on the Hugging Face Hub, as a pull request."""

from __future__ import annotations

from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.form import slug_of


def open_pull_request(folder: Path, repo: str, name: str) -> str:
    """Upload the folder in a pull request; its address.

    Raises:
        UserError: The Hub refuses it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        commit = HfApi().upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            path_in_repo=f"submissions/{slug_of(name)}",
            commit_message=f"Submission: {name}",
            create_pr=True,
        )
    except (HfHubHTTPError, ValueError, OSError) as error:
        raise UserError(
            f"The Hub did not take the submission for {repo} ({error}). It is complete in {folder}: log in with "
            "`hf auth login` and run the command again, or open a pull request with the folder yourself."
        ) from None
    return str(commit.pr_url or commit.commit_url)
