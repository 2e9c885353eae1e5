"""Measuring search: labelled requests in, recall and milliseconds out."""

from toolfold.evaluation.corpus import Corpus, LabelledRequest, load_corpus
from toolfold.evaluation.measure import Result, measure

__all__ = ["Corpus", "LabelledRequest", "Result", "load_corpus", "measure"]
