"""The arguments that every model of ours has beside its method's own, as ``lm-eval-rag describe`` shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shared:
    """An argument of every model.

    Args:
        type: What it takes, in words.
        default: As it would be written on the command line; "" if it has none.
        meaning: What it does, in one sentence.
    """

    type: str
    default: str
    meaning: str


OWN = {  # read by arguments.py
    "generator": Shared("a text", "tiny", "tiny, tiny_rgft, tiny_ssft, tiny_steps, tiny_crag, or a model of lm_eval."),
    "chat": Shared("True or False", "", "Whether prompts go through the chat template; by default if there is one."),
    "retriever": Shared("a text", "bm25", "The retriever; `lm-eval-rag describe` lists them."),
    "corpus": Shared("a file or a folder", "", "Documents of your own, in place of the task's corpus."),
    "journal": Shared("off or a file", "", "Where replies are stored; by default a file in the cache."),
    "max_prompt_tokens": Shared("a whole number of 1 or more", "", "Most tokens of a prompt; by default what fits."),
    "seed": Shared("a whole number of 0 or more", "0", "Of the generator's samples, and of what the method draws."),
    "kg": Shared("a folder or an address", "", "Replaces the knowledge graph of tasks that have one."),
    "extractor": Shared("fast or faithful", "fast", "What turns web pages into text."),
    "window": Shared("a whole number of 1 or more", "256", "The most questions in flight."),
    "trace": Shared("a file", "", "Writes every step of every question, with prompts and replies."),
    "perplexity": Shared("True or False", "False", "Asks for the log-probability of each answer: one more call each."),
    "prepare_max_calls": Shared("a whole number of 0 or more", "10000", "The most calls of the method's preparation."),
}  # fmt: skip
GENERATOR = {  # of a generator; read by harness/generators
    "gen_*": Shared("any", "", "An argument of the generator's own, such as gen_pretrained= or gen_model=."),
    "gen_base_url": Shared("an address, or [URL,URL]", "", "The generator's server, or several of the same model."),
    "gen_num_concurrent": Shared("a whole number of 1 or more", "8", "Requests to each server at once."),
    "gen_ray": Shared("local, auto or HOST:PORT", "", "A Ray cluster, in whose workers a local model runs."),
    "gen_ray_cpus": Shared("a whole number of 1 or more", "1", "Cores of each of these workers."),
    "gen_max_retries": Shared("a whole number of 1 or more", "6", "Tries per request."),
    "gen_retry_wait": Shared("a number", "0.5", "Seconds before the second try; doubled before each further one."),
    "gen_timeout": Shared("a number", "300", "Seconds until a request counts as failed."),
    "gen_extra_body": Shared("JSON", "", "Fields of your own in every request to a server."),
    "gen_thinking_tokens": Shared("a whole number of 1 or more", "", "Room for a model that thinks before it answers."),
    "gen_logprobs": Shared("True or False", "False", "Asks a chat API for the log-probabilities of its replies."),
    "gen_rpm": Shared("a whole number of 1 or more", "", "The most requests per minute."),
    "gen_tpm": Shared("a whole number of 1 or more", "", "The most tokens per minute."),
    "gen_price_in": Shared("a number", "", "US dollars per million prompt tokens."),
    "gen_price_out": Shared("a number", "", "US dollars per million completion tokens."),
    "gen_prices": Shared("a file", "", "Prices by model, as TOML or JSON."),
    "retriever_*": Shared("any", "", "An option of the retriever; `lm-eval-rag describe RETRIEVER` lists them."),
}
SHARED = {**OWN, **GENERATOR}
