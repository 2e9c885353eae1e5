"""By which words of a request the tools of a large catalog are looked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolfold.shared._chosen_words import PAIR_ROWS, RARE_ROWS, STRONG_ROWS, chosen_words

SIZE = 1_000_000

requests = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.tuples(st.integers(1, SIZE), st.floats(0.1, 14)),
    min_size=1,
    max_size=12,
)


def test_rare_words_are_looked_for_wherever_they_stand() -> None:
    found = chosen_words({"stripe": 9.0, "refund": 8.0}, {"stripe": 40, "refund": 900}, SIZE)

    assert found.rare == ["stripe", "refund"]
    assert found.strong == []
    assert found.pairs == []


def test_common_words_are_looked_for_together_and_where_they_say_much() -> None:
    holders = {"weather": 20_000, "city": 60_000, "iban": 12}
    found = chosen_words({"weather": 4.0, "city": 3.0, "iban": 11.0}, holders, SIZE)

    assert found.rare == ["iban"]
    assert found.strong == ["weather"]
    assert found.pairs == [("weather", "city")]


def test_a_word_alone_is_looked_for_however_common_it_is() -> None:
    found = chosen_words({"data": 1.0}, {"data": 400_000}, SIZE)

    assert found.strong == ["data"]


@given(requests)
def test_there_is_always_a_way_and_never_too_many_rows(
    request: dict[str, tuple[int, float]],
) -> None:
    holders = {term: count for term, (count, _) in request.items()}
    worth = {term: value for term, (_, value) in request.items()}

    found = chosen_words(worth, holders, SIZE)

    assert found.rare or found.strong or found.pairs
    assert sum(holders[term] for term in found.rare) <= RARE_ROWS
    assert sum(holders[t] / 4 for t in found.strong) <= 2 * STRONG_ROWS or len(worth) == 1
    pairs = [sorted((holders[a], holders[b])) for a, b in found.pairs]
    both = [fewer * min(2 * more / SIZE, 1) for fewer, more in pairs]
    assert sum(both) <= PAIR_ROWS or len(both) == 1
    assert not {*found.rare} & {*found.strong, *(term for pair in found.pairs for term in pair)}
