"""Texts in other languages, read in English by a small word list of our own.

Tools are mostly described in English; a request in German, Spanish, French, Italian,
Portuguese, Russian, Korean, Chinese or Japanese shares no word with them. `lexicon.tsv`
says for some seven hundred ideas of asking for tools what they are called there, and a
request is read word by word: no grammar, no model. Words it does not know, names and
numbers, stay as they are. Tools described in one of these languages are read in the same
way, so that an English request finds them.

An English request is never changed: a text is read only where more in it speaks for one
of these languages than for English, and false friends ("chef", "resume") speak for neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from toolfold.search._han import simplified
from toolfold.search._hangul import HAS_HANGUL, Korean
from toolfold.search._text import STOPWORDS, raw_words, stem, terms
from toolfold.search._unspaced import HAS_CJK, HAS_KANA, TOKEN, Unspaced

__all__ = ["LEXICON", "in_english", "readings", "translated"]

LEXICON = Path(__file__).with_name("lexicon.tsv")
"""An idea a line: in English (`-`: says nothing, left out), then its words by language.

Words are lower-case and without accents; `_` joins the words of a phrase. Chinese is
written in simplified characters, the words of Taiwan and Hong Kong too.
"""

_SNOWBALL = {
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "ru": "russian",
}
_LATIN = ("de", "es", "fr", "it", "pt")
_ENGLISH_TOO = frozenset(
    """
    aba absence absent actual agenda ai al alba alt alter analyse analyser art assistance
    assurance attends attractions auto automobile avant bad benefice boutique bureau canal
    cargo casa catalogue cent champ champs changer charger chef cheque chi china circa
    circulation clef client clients clique cobra coda cola come commence competence compile
    compiler con conception concerto cores cuisine curriculum da dame dar datum dell depot
    devise di dice difference differences dire disco discussion distant dos double dove due ed
    era essen eta etat etiquette evaluation execute expedition fall fan fare favor fern film
    films fin final football four gamma genera grad ha han handy hat heller ho hole identifier
    indices inscription io joins journal junta kino laden lance land lava lea lee lent libre
    licence lien lies lieu llama local location logo logout lose lot lots lotto ma man mars
    meme mesa meta mets mi midi mira miss modifier monte mot muster no non nota notification
    notifications nova novo num opinion ore organisation pace panel par pare parole participant
    participants paso pasta patron payer per persona personas phase phrase phrases piano piece
    placement plane plata plus portable porte pour premier prende presence prima prix pro
    programme programmer proposition propositions quite rama ramos rate recent reclamation
    reduce reduction refuse registrar relate repertoire reproduce responder retard retire
    reunion revise revision revue rode salle salon salute salve sans scala sea sera serve si
    siege signature sin site six smartphone smiley solo son song songs spur stand stanza state
    stopper such sue surface surveillance suspends tag tan tele telephone tempo tester theater
    theatre tier tire todo tome ton tv uber uno va van verifier vi via vol voyage voyager
    voyages war ware warmer
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

_HAS_CYRILLIC = re.compile("[\u0400-\u04ff]")
_FOREIGN_LETTER = re.compile(r"[^\W\d_a-zA-Z]")
_BLANKS = re.compile(r"[^\S\n]+")
_CLAUSE_END = re.compile(r"[.,;:!?\n]")
_WIDE = str.maketrans({"。": ". ", "、": ", ", "，": ", ", "；": "; ", "？": "? ", "！": "! "})
_CLITICS = {
    "es": re.compile(r"(?<=...)(?:me|te|se|nos|l[aeo]s?)$"),
    "it": re.compile(r"(?<=...)(?:[mtcv]i|ne|gli|(?:me|te|ce|ve|glie)?l[aeio])$"),
}
_GERMAN_VERB = re.compile(r"^(?:ge)?(....+?)e?t$")
_GERMAN_JOINT = ("", "s", "n", "en", "es")
_TEXT_LIMIT = 4_000
_TOOL_TEXT_LIMIT = 2_000
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


def in_english(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of a tool in English, each as far as it is read; "" where it is not.

    A tool whose texts are ASCII is taken for an English one and costs nothing.

    Args:
        texts: The texts, which speak one language.
    """
    if all(map(str.isascii, texts)) or not any(map(_FOREIGN_LETTER.search, texts)):
        return ("",) * len(texts)
    return _lexicon().in_english(texts)


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
        self.is_russian = name == "ru"
        self.weights = {
            word: _FUNCTION_WORD if STOPWORDS.issuperset(meaning.split()) else _OTHER_WORD
            for word, meaning in meanings.items()
            if len(word) > 1
            and not ("_" in word or word in STOPWORDS or word in _ENGLISH_TOO)
            and stem(word) not in english
        }
        self._snowball = _SNOWBALL[name]
        self._clitics = _CLITICS.get(name)
        self._listed = lru_cache(maxsize=4_096)(self._find)

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
        if len(other) > len(words) * _UNKNOWN_AT_MOST:
            return 0
        if _OTHER_WORD not in own:
            # Small words may stand in names; they count beside one that is known inflected.
            is_said = own.count(_FUNCTION_WORD) > 1 and any(map(self._meaning, other))
            if not is_said:
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
        tokens = list(TOKEN.finditer(text))
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

    def known(self, text: str) -> str | None:
        """Return a text with what is known in English; None where nothing is."""
        found = self.translated(text)
        return None if found == text else found

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
        if found is None and self._clitics:
            found = self._listed(self._clitics.sub("", word))
        if found is None and self.is_russian:
            # An imperative that its stemmer takes for the past: "удали", of "удалить".
            found = self.meanings.get(word.removesuffix("те") + "ть")
        if found is None and self.is_german:
            word = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
            verb = _GERMAN_VERB.sub(r"\1", word)
            found = self._listed(word) or self._listed(verb) or self._compound(word)
        return found

    def _find(self, word: str) -> str | None:
        """Return what a word is in English, as it stands or by its stem."""
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
        columns = list(zip(*ideas, strict=True))
        self._ideas = [" ".join(dict.fromkeys(idea.strip("-").split())) for idea in columns[0]]
        self._cells = dict(zip(names, columns[1:], strict=True))
        english = {word for idea in columns[0] for word in raw_words(idea)}
        self._english = frozenset(map(stem, english))
        self._languages = [_Language(name, self._meanings(name), self._english) for name in _LATIN]
        self._foreign = frozenset(word for own in self._languages for word in own.weights)

    def _meanings(self, name: str) -> dict[str, str]:
        """Return the words of a language in English."""
        found: dict[str, str] = {}
        for idea, cell in zip(self._ideas, self._cells[name], strict=True):
            for word in cell.split():
                # A word may stand for several ideas.
                both = f"{found[word]} {idea}".split() if word in found else ()
                found[word] = " ".join(dict.fromkeys(both)) or idea
        return found

    # What has letters of its own is made when they are first met.

    @cached_property
    def fillers(self) -> frozenset[str]:
        """The stems of all words that say nothing."""
        said = (self._meanings(name).items() for name in self._cells)
        return frozenset(stem(word) for words in said for word, idea in words if not idea)

    @cached_property
    def _russian(self) -> _Language:
        return _Language("ru", self._meanings("ru"), self._english)

    @cached_property
    def _korean(self) -> Korean:
        return Korean(self._meanings("ko"))

    @cached_property
    def _chinese(self) -> Unspaced:
        others = {simplified(word): idea for word, idea in _longer(self._meanings("ja"))}
        return Unspaced({**others, **self._meanings("zh")}, simplified)

    @cached_property
    def _japanese(self) -> Unspaced:
        return Unspaced({**dict(_longer(self._meanings("zh"))), **self._meanings("ja")})

    def translated(self, query: str) -> str:
        """Return a request in English words; an English one as it is."""
        text = query[:_TEXT_LIMIT]
        if text.isascii():
            words = TOKEN.findall(text.lower())[:_WORDS_AT_MOST]
        else:
            text = _normal(text)
            words = [_plain(word) for word in TOKEN.findall(text)[:_WORDS_AT_MOST]]
            script = self._script(text)
            if script is not None:
                # A quotation in an English request.
                is_english = any(len(word) > 1 and word in STOPWORDS for word in words)
                found = None if is_english else script(text)
                return query if found is None else _tidy(found)
        language = self._language(words)
        return query if language is None else _tidy(language.translated(text))

    def in_english(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the texts of a tool in English; "" for those that are not read."""
        own: list[str] = []
        left = _TOOL_TEXT_LIMIT
        for text in texts:
            own.append(_normal(text[:left])[:left])
            left -= min(left, len(text))
        whole = "\n".join(own)
        read: Callable[[str], str | None] | None = self._script(whole)
        if read is None:
            words = [_plain(word) for word in TOKEN.findall(whole)[:_WORDS_AT_MOST]]
            language = self._language(words)
            if language is None:
                return ("",) * len(texts)
            read = language.translated
        return tuple(_tidy(read(text) or "") if text else "" for text in own)

    def _language(self, words: Sequence[str]) -> _Language | None:
        """Return the language of Latin letters that some words speak for, if any."""
        if self._foreign.isdisjoint(words):
            return None
        scores = [language.score(words) for language in self._languages]
        best = max(scores)
        return self._languages[scores.index(best)] if best > 0 else None

    def _script(self, text: str) -> Callable[[str], str | None] | None:
        """Return what reads a text in letters that one language writes; None for Latin ones."""
        if HAS_HANGUL.search(text):
            return self._korean.translated
        if HAS_CJK.search(text):
            own = self._japanese if HAS_KANA.search(text) else self._chinese
            return own.translated
        return self._russian.known if _HAS_CYRILLIC.search(text) else None


def _plain(word: str) -> str:
    """Return a word as the list writes it."""
    if word.isascii():
        return word.lower()
    if _HAS_CYRILLIC.match(word):
        return word.lower().replace("ё", "е")
    return "".join(raw_words(word)).replace("ß", "ss")


def _longer(meanings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what another language of the same letters lends: no word of one letter.

    One letter says too little, and often something else.
    """
    return ((word, idea) for word, idea in meanings.items() if len(word) > 1)


def _normal(text: str) -> str:
    # One letter may stand for many: the limit holds afterwards too.
    return unicodedata.normalize("NFKC", text.translate(_WIDE))[:_TEXT_LIMIT]


def _tidy(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    lines = LEXICON.read_text(encoding="utf-8").splitlines()
    return _Lexicon([line.split("\t") for line in lines])
