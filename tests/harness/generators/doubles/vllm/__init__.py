"""A double of vLLM: what lm_eval and we import and call of it, over transformers.

It does what vLLM's documentation says of the parameters that it is given. Every model is in ``made`` and every request
in ``model.calls``. Each step of its engine writes one token of every request in flight. What it cannot show: that the
real engine takes the arguments.
"""

from types import SimpleNamespace

made = []
MAX_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


class SamplingParams:
    def __init__(
        self, max_tokens=16, stop=None, temperature=1.0, seed=None, prompt_logprobs=None, detokenize=True,
        skip_special_tokens=True, spaces_between_special_tokens=True, stop_token_ids=None,
    ):  # fmt: skip
        self.max_tokens, self.stop, self.temperature, self.seed = max_tokens, stop, temperature, seed
        self.prompt_logprobs = prompt_logprobs
        self.skip_special_tokens, self.stop_token_ids = skip_special_tokens, stop_token_ids or []


def TokensPrompt(prompt_token_ids):  # noqa: N802 - a type of vLLM
    return {"prompt_token_ids": prompt_token_ids}


class Engine:
    def __init__(self, llm, max_model_len):
        self.llm, self.model_config = llm, SimpleNamespace(max_model_len=max_model_len)
        self.flying, self.aborted = {}, []  # by id: [output, steps to go]

    def add_request(self, request_id, prompt, params, lora_request=None):
        if not isinstance(request_id, str):
            raise TypeError("request_id must be a string")
        self.llm.calls.append((prompt, params, lora_request))
        output = self.llm._answer(*self.llm._load(lora_request), prompt["prompt_token_ids"], params)
        output.request_id, output.finished = request_id, True
        self.flying[request_id] = [output, max(1, len(output.outputs[0].token_ids))]
        return request_id

    def step(self):
        if not self.flying:
            raise AssertionError("vLLM's step waits for ever where nothing is in flight")
        for request in self.flying.values():
            request[1] -= 1
        done = [request_id for request_id, (_, left) in self.flying.items() if left == 0]
        return [self.flying.pop(request_id)[0] for request_id in done]

    def abort_request(self, request_ids):
        self.aborted += [self.flying.pop(request_id)[0] for request_id in request_ids]


class LLM:
    def __init__(self, model, max_model_len=None, enable_lora=False, max_lora_rank=16, dtype="auto", **arguments):
        if enable_lora and max_lora_rank not in MAX_RANKS:
            raise ValueError(f"1 validation error for LoRAConfig\nmax_lora_rank\n  Input should be one of {MAX_RANKS}")
        if "load_in_4bit" in arguments:
            raise TypeError("EngineArgs.__init__() got an unexpected keyword argument 'load_in_4bit'")
        given = {"model": model, "max_model_len": max_model_len, "dtype": dtype}
        self.arguments = {**arguments, **given, "enable_lora": enable_lora, "max_lora_rank": max_lora_rank}
        self.calls, self.parts = [], None
        self.llm_engine = Engine(self, max_model_len or 2048)
        made.append(self)

    def _load(self, lora):
        import transformers

        if self.parts is None:
            model = transformers.AutoModelForCausalLM.from_pretrained(self.arguments["model"], dtype="float32")
            if lora is not None:
                import peft

                model = peft.PeftModel.from_pretrained(model, lora.path)
                rank = max(config.r for config in model.peft_config.values())
                if not self.arguments["enable_lora"] or rank > self.arguments["max_lora_rank"]:
                    raise ValueError(f"LoRA rank {rank} is greater than max_lora_rank")
            self.parts = model.eval(), transformers.AutoTokenizer.from_pretrained(self.arguments["model"])
        return self.parts

    def _answer(self, model, tokenizer, prompt, params):
        import torch

        if len(prompt) >= self.llm_engine.model_config.max_model_len:
            raise ValueError(f"The decoder prompt (length {len(prompt)}) is longer than\nthe maximum model length")
        ends = model.generation_config.eos_token_id
        ends = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id, *params.stop_token_ids}
        stream = None if params.seed is None else torch.Generator().manual_seed(params.seed)
        ids, text, finish = torch.tensor([prompt]), "", "length"
        with torch.no_grad():
            logits = model(ids).logits[0]
            for _ in range(params.max_tokens):
                last = logits[-1]
                if params.temperature:
                    shares = torch.softmax(last / params.temperature, -1)
                    token = int(torch.multinomial(shares, 1, generator=stream))
                else:
                    token = int(last.argmax())
                if token in ends:
                    finish = "stop"
                    break
                ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
                text = tokenizer.decode(ids[0, len(prompt) :], skip_special_tokens=params.skip_special_tokens)
                stops = [text.find(stop) for stop in params.stop or () if stop in text]
                if stops:
                    text, finish = text[: min(stops)], "stop"
                    break
                logits = model(ids).logits[0]
            known = None if params.prompt_logprobs is None else self._logprobs(model, prompt)
        written = SimpleNamespace(text=text, token_ids=ids[0, len(prompt) :].tolist(), finish_reason=finish)
        return SimpleNamespace(outputs=[written], prompt_logprobs=known)

    def _logprobs(self, model, prompt):
        import torch

        table = torch.log_softmax(model(torch.tensor([prompt])).logits[0].double(), -1)
        rows = [(int(table[i].argmax()), prompt[i + 1], table[i]) for i in range(len(prompt) - 1)]
        return [None, *({id_: SimpleNamespace(logprob=float(row[id_])) for id_ in {top, it}} for top, it, row in rows)]
