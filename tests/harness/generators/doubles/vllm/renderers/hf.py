def resolve_chat_template(tokenizer, chat_template, tools, model_config):
    return None
