"""Measuring search: labelled requests in, recall and milliseconds out."""

from toolfold.evaluation.answers import AnswerResult, measure_answers
from toolfold.evaluation.corpus import Corpus, LabelledRequest, load_corpus
from toolfold.evaluation.history import HistoryResult, measure_history, split_history
from toolfold.evaluation.measure import Result, measure

__all__ = [
    "AnswerResult",
    "Corpus",
    "HistoryResult",
    "LabelledRequest",
    "Result",
    "load_corpus",
    "measure",
    "measure_answers",
    "measure_history",
    "split_history",
]
