"""Requests in other languages, read in English by a small word list of our own.

Tools are mostly described in English; a request in German, Spanish, French, Portuguese,
Chinese or Japanese shares no word with them. `lexicon.tsv` says for some four hundred
ideas of asking for tools what they are called there, and a request is read word by word:
no grammar, no model. Words it does not know, names and numbers, stay as they are.

An English request is never changed: a text is read only where more in it speaks for one
of these languages than for English, and false friends ("chef", "resume") speak for neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from toolfold.search._text import STOPWORDS, raw_words, stem, terms

__all__ = ["LEXICON", "readings", "translated"]

LEXICON = Path(__file__).with_name("lexicon.tsv")
"""An idea a line: in English (`-`: says nothing, left out), then its words by language.

Words are lower-case and without accents; `_` joins the words of a phrase.
"""

_SNOWBALL = {"de": "german", "es": "spanish", "fr": "french", "pt": "portuguese"}
_ENGLISH_TOO = frozenset(
    """
    absence absent agenda ai alt alter analyse analyser assistance assurance attends
    attractions auto avant bad boutique bureau canal cargo casa cent changer charger chef
    cheque china circulation clef client clients clique cobra commence compile compiler cores
    cuisine curriculum dame dar datum depot devise di dice difference differences dire
    discussion dos double era essen etat etiquette evaluation execute expedition fall favor
    film films fin final football four genera grad han handy hat heller hole identifier indices
    inscription joins journal junta kino lance land lava lea lee lent libre lien lies lieu
    llama local location logo lose man mars meme mesa mets midi mira miss modifier monte mot
    nota notification notifications nova novo num opinion panel par pare participant
    participants pasta patron payer persona personas phase piece placement plane plata plus
    portable porte pour premier prende prix pro programme programmer proposition propositions
    quite rama ramos reclamation reduce reduction refuse registrar relate repertoire reproduce
    responder retard retire reunion revise revision revue rode salle salon salve sans sea
    signature sin site six smartphone smiley solo son song songs spur stand stopper such
    surface surveillance suspends tag tan tele telephone tester theater theatre tier tire todo
    tome ton tv uber uno van verifier vol voyage voyager voyages war ware warmer
    """.split()
)
"""Words of the list that an English request may hold: they speak for no language."""

_PARTICLES = frozenset(
    """
    ab an auf aus bei ein fest frei her herunter hin hinzu hoch los mit nach neu runter um vor weg
    weiter wieder zu zuruck zusammen
    """.split()
)
"""What German takes off a verb and puts last: "leite die Mail weiter"."""

_CJK = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_HAS_CJK = re.compile(f"[{_CJK}]")
_HAS_KANA = re.compile("[\u3040-\u30ff]")
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_TOKEN = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")
_BLANKS = re.compile(r"[^\S\n]+")
_CLAUSE_END = re.compile(r"[.,;:!?\n]")
_WIDE = str.maketrans({"。": ". ", "、": ", ", "，": ", ", "；": "; ", "？": "? ", "！": "! "})
_SPANISH_CLITIC = re.compile(r"(?<=...)(?:me|te|se|nos|l[aeo]s?)$")
_GERMAN_VERB = re.compile(r"^(?:ge)?(....+?)e?t$")
_GERMAN_JOINT = ("", "s", "n", "en", "es")
_TEXT_LIMIT = 4_000
_WORDS_AT_MOST = 128
_PHRASE_AT_MOST = 5
_PART_AT_LEAST = 4
_COMPOUND_AT_MOST = 40
_PARTICLES_AT_MOST = 2
_UNKNOWN_AT_MOST = 0.75
_FUNCTION_WORD, _OTHER_WORD = 2, 1


def translated(query: str) -> str:
    """Return a request in English words; an English one as it is."""
    return _lexicon().translated(query)


def readings(query: str, is_known: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the texts to search for: the request in English, perhaps also as it stands.

    A foreign request is searched as it stands too where the tools speak its language.

    Args:
        query: The request.
        is_known: Whether any tool holds a term.
    """
    english = translated(query)
    if english is query:
        return (query,)
    foreign = set(terms(query)).difference(terms(english), _lexicon().fillers)
    known = [term for term in foreign if is_known(term)]
    # English tools hold a false friend now and then, but nothing in another script.
    is_spoken = len(known) * 3 >= len(foreign) or not all(map(str.isascii, known))
    return (english, query) if known and is_spoken else (english,)


class _Language:
    """A language with blanks between its words.

    Args:
        name: Its code.
        meanings: Its words and phrases in English.
        english: Stems that speak for English.
    """

    def __init__(self, name: str, meanings: dict[str, str], english: frozenset[str]) -> None:
        self.meanings = meanings
        self._english = english
        self.is_german = name == "de"
        self.is_spanish = name == "es"
        self.weights = {
            word: _FUNCTION_WORD if STOPWORDS.issuperset(meaning.split()) else _OTHER_WORD
            for word, meaning in meanings.items()
            if len(word) > 1
            and not ("_" in word or word in STOPWORDS or word in _ENGLISH_TOO)
            and stem(word) not in english
        }
        self._snowball = _SNOWBALL[name]

    @cached_property
    def _stems(self) -> dict[str, str]:
        single = [word for word in reversed(self.meanings) if "_" not in word]
        return {s: self.meanings[w] for s, w in zip(self._stemmed(single), single, strict=True)}

    def _stemmed(self, words: list[str]) -> list[str]:
        import Stemmer

        # A stemmer may not be shared between threads, and is cheap to make.
        stemmer: Any = getattr(Stemmer, "Stemmer")(self._snowball, 0)  # noqa: B009 - no type stubs
        stems: list[str] = stemmer.stemWords(words)
        return stems

    def score(self, words: Sequence[str]) -> int:
        """Return how much more in a text speaks for this language than for English."""
        own = [self.weights.get(word, 0) for word in words]
        other = [word for word in words if word not in self.meanings]
        if _OTHER_WORD not in own or len(other) > len(words) * _UNKNOWN_AT_MOST:
            return 0
        return (
            sum(own)
            - sum(_FUNCTION_WORD for word in other if word in STOPWORDS)
            - sum(
                _OTHER_WORD
                for word in other
                if word not in STOPWORDS and stem(word) in self._english
            )
        )

    def translated(self, text: str) -> str:
        """Return a text with the words and phrases that are known in English."""
        tokens = list(_TOKEN.finditer(text))
        keys = [_plain(token[0]) for token in tokens]
        verbs = self._parted_verbs(text, tokens, keys) if self.is_german else {}
        out: list[str] = []
        i = end = 0
        while i < len(tokens):
            between = text[end : tokens[i].start()]
            word = tokens[i][0]
            size, meaning = (1, verbs[i]) if i in verbs else self._longest(keys, i)
            if meaning is None and not (between.isspace() and self._is_name(word)):
                meaning = self._meaning(keys[i])
            out += (between, word if meaning is None else meaning)
            end = tokens[i + size - 1].end()
            i += size
        return "".join([*out, text[end:]])

    def _longest(self, keys: Sequence[str], start: int) -> tuple[int, str | None]:
        """Return how many words the phrase at a place has, and what it is in English."""
        for size in range(min(_PHRASE_AT_MOST, len(keys) - start), 1, -1):
            meaning = self.meanings.get("_".join(keys[start : start + size]))
            if meaning is not None:
                return size, meaning
        return 1, self.meanings.get(keys[start])

    def _is_name(self, word: str) -> bool:
        """Whether a word inside a sentence is a name: German writes all nouns large."""
        return not self.is_german and word[0].isupper()

    def _meaning(self, word: str) -> str | None:
        """Return what a word is in English that is not listed so: inflected or in parts."""
        found = self._listed(word)
        if found is None and self.is_spanish:
            found = self._listed(_SPANISH_CLITIC.sub("", word))
        if found is None and self.is_german:
            word = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
            verb = _GERMAN_VERB.sub(r"\1", word)
            found = self._listed(word) or self._listed(verb) or self._compound(word)
        return found

    def _listed(self, word: str) -> str | None:
        found = self.meanings.get(word)
        if found is not None or len(word) < _PART_AT_LEAST or not word.isalpha():
            return found
        return self._stems.get(self._stemmed([word])[0])

    def _compound(self, word: str) -> str | None:
        """Return what a German compound is in English, part by part: `Kunden|liste`."""
        if len(word) > _COMPOUND_AT_MOST:
            return None
        for end in range(len(word) - _PART_AT_LEAST, _PART_AT_LEAST - 1, -1):
            head = self.meanings.get(word[:end])
            for joint in _GERMAN_JOINT if head else ():
                if word.startswith(joint, end):
                    rest = word[end + len(joint) :]
                    tail = self._listed(rest) or self._compound(rest)
                    if tail:
                        return f"{head} {tail}"
        return None

    def _parted_verbs(
        self, text: str, tokens: Sequence[re.Match[str]], keys: Sequence[str]
    ) -> dict[int, str]:
        """Return the verbs whose particle stands last in their clause, and the particles."""
        found: dict[int, str] = {}
        first = 0
        for i, token in enumerate(tokens):
            after = tokens[i + 1].start() if i + 1 < len(tokens) else len(text)
            if i + 1 < len(tokens) and not _CLAUSE_END.search(text, token.end(), after):
                continue
            start = i
            while start > max(first, i - _PARTICLES_AT_MOST) and keys[start] in _PARTICLES:
                particle = "".join(keys[start : i + 1])
                verbs = ((j, self._listed(particle + keys[j])) for j in range(first, start))
                at, meaning = next(((j, m) for j, m in verbs if m), (None, None))
                if at is not None and meaning:
                    found |= dict.fromkeys(range(start, i + 1), "") | {at: meaning}
                start -= 1
            first = i + 1
        return found


class _Lexicon:
    """The word list, by language.

    Args:
        rows: Its cells: English, then the words of each language of the first row.
    """

    def __init__(self, rows: Iterable[Sequence[str]]) -> None:
        (_, *names), *ideas = rows
        found: dict[str, dict[str, list[str]]] = {name: {} for name in names}
        for english, *cells in ideas:
            for name, cell in zip(names, cells, strict=True):
                for word in cell.split():
                    found[name].setdefault(word, []).extend(english.strip("-").split())
        meanings = {
            name: {word: " ".join(dict.fromkeys(english)) for word, english in words.items()}
            for name, words in found.items()
        }
        english = frozenset(stem(word) for idea in ideas for word in raw_words(idea[0]))
        self._languages = [_Language(name, meanings[name], english) for name in _SNOWBALL]
        self._foreign = frozenset(word for own in self._languages for word in own.weights)
        self.fillers = frozenset(
            stem(word)
            for words in meanings.values()
            for word, meaning in words.items()
            if not meaning
        )
        # One letter of the other script's words says too little, and often something else.
        chinese, japanese = (
            {word: english for word, english in meanings[name].items() if len(word) > 1}
            for name in ("zh", "ja")
        )
        self._chinese = {**japanese, **meanings["zh"]}
        self._japanese = {**chinese, **meanings["ja"]}
        self._longest = max(map(len, self._chinese.keys() | self._japanese.keys()))

    def translated(self, query: str) -> str:
        """Return a request in English words; an English one as it is."""
        text = query[:_TEXT_LIMIT]
        if text.isascii():
            words = _TOKEN.findall(text.lower())[:_WORDS_AT_MOST]
        else:
            text = unicodedata.normalize("NFKC", text.translate(_WIDE))
            words = [_plain(word) for word in _TOKEN.findall(text)[:_WORDS_AT_MOST]]
            if _HAS_CJK.search(text):
                found = self._unspaced(text, words)
                return query if found is None else _tidy(found)
        if self._foreign.isdisjoint(words):
            return query
        scores = [language.score(words) for language in self._languages]
        best = max(scores)
        if best <= 0:
            return query
        return _tidy(self._languages[scores.index(best)].translated(text))

    def _unspaced(self, text: str, words: Sequence[str]) -> str | None:
        """Return a Chinese or Japanese text in English; None where English stands around it."""
        if any(len(word) > 1 and word in STOPWORDS for word in words):
            return None
        meanings = self._japanese if _HAS_KANA.search(text) else self._chinese
        out: list[str] = []
        end = 0
        is_read = False
        for run in _TOKEN.finditer(text):
            out.append(text[end : run.start()])
            end = run.end()
            if not _HAS_CJK.match(run[0]):
                out.append(run[0])
                continue
            start = 0
            while start < len(run[0]):
                word = self._word_at(run[0], start, meanings)
                meaning = meanings.get(word)
                is_read = is_read or bool(meaning)
                out.append(f" {meaning} " if meaning is not None else _HIRAGANA.sub(" ", word))
                start += len(word)
        return "".join([*out, text[end:]]) if is_read else None

    def _word_at(self, run: str, start: int, meanings: Mapping[str, str]) -> str:
        """Return the longest known word at a place, or the letter there."""
        for size in range(min(self._longest, len(run) - start), 1, -1):
            if run[start : start + size] in meanings:
                return run[start : start + size]
        return run[start]


def _plain(word: str) -> str:
    """Return a word as the list writes it."""
    return word.lower() if word.isascii() else "".join(raw_words(word)).replace("ß", "ss")


def _tidy(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    lines = LEXICON.read_text(encoding="utf-8").splitlines()
    return _Lexicon([line.split("\t") for line in lines])
