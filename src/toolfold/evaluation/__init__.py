"""Measuring search: labelled requests in, recall and milliseconds out."""

from toolfold.evaluation.answers import AnswerResult, measure_answers
from toolfold.evaluation.corpus import Corpus, LabelledRequest, load_corpus
from toolfold.evaluation.measure import Result, measure

__all__ = [
    "AnswerResult",
    "Corpus",
    "LabelledRequest",
    "Result",
    "load_corpus",
    "measure",
    "measure_answers",
]
