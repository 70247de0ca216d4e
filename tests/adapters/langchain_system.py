"""A system built with LangChain: a keyword retriever and a model that always says the same."""

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from small_corpus import ANSWER, best, rows

DOCUMENTS = [Document(row["text"], id=row["id"]) for row in rows()]


class Keywords(BaseRetriever):
    """The two documents that share most words with the question."""

    def _get_relevant_documents(self, query, *, run_manager):
        return best(query, DOCUMENTS, lambda document: document.page_content)


prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {input}")
model = prompt | FakeListChatModel(responses=[ANSWER]) | StrOutputParser()
chain = RunnablePassthrough.assign(context=lambda asked: Keywords().invoke(asked["input"])).assign(answer=model)
