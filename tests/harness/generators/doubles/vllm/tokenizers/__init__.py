def get_tokenizer(name, tokenizer_mode, trust_remote_code, revision):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name)
