"""Measuring search: labelled requests in, recall and milliseconds out."""

from toolfold.evaluation.ahead import PREFETCHES, PrefetchResult, measure_prefetch
from toolfold.evaluation.answers import AnswerResult, measure_answers
from toolfold.evaluation.corpus import Corpus, LabelledRequest, load_corpus
from toolfold.evaluation.history import (
    HistoryResult,
    measure_history,
    remember_history,
    split_history,
)
from toolfold.evaluation.measure import Result, measure

__all__ = [
    "PREFETCHES",
    "AnswerResult",
    "Corpus",
    "HistoryResult",
    "LabelledRequest",
    "PrefetchResult",
    "Result",
    "load_corpus",
    "measure",
    "measure_answers",
    "measure_history",
    "measure_prefetch",
    "remember_history",
    "split_history",
]
