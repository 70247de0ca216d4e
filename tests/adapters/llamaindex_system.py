"""A system built with LlamaIndex: a keyword retriever over its nodes, and a model that always says the same."""

from llama_index.core import Document
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore
from small_corpus import ANSWER, best, rows

NODES = SentenceSplitter().get_nodes_from_documents([Document(text=row["text"], doc_id=row["id"]) for row in rows()])


class Fixed(CustomLLM):
    """One answer."""

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=ANSWER)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text=ANSWER, delta=ANSWER)


class Keywords(BaseRetriever):
    """The two nodes that share most words with the question."""

    def _retrieve(self, query_bundle):
        nodes = best(query_bundle.query_str, NODES, lambda node: node.get_content())
        return [NodeWithScore(node=node, score=1.0 / place) for place, node in enumerate(nodes, 1)]


query_engine = RetrieverQueryEngine.from_args(Keywords(), llm=Fixed())
