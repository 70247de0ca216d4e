"""A system built with Haystack: BM25 in memory, and a component that always says the same."""

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from small_corpus import ANSWER, rows

TEMPLATE = "{% for document in documents %}{{ document.content }}\n{% endfor %}Question: {{ question }}"


@component
class Fixed:
    """One answer."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        return {"replies": [ANSWER]}


store = InMemoryDocumentStore()
store.write_documents([Document(id=row["id"], content=row["text"]) for row in rows()])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
pipeline.add_component("prompt_builder", PromptBuilder(TEMPLATE, required_variables=["question"]))
pipeline.add_component("llm", Fixed())
pipeline.connect("retriever.documents", "prompt_builder.documents")
pipeline.connect("prompt_builder.prompt", "llm.prompt")
