"""Other languages: requests and tools read in English by the word list, English ones untouched."""

import json
import re
import time
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Catalog, Settings, Tool, fold
from toolfold.demo import CATALOG_FILE, QUERIES_FILE, demo_catalog
from toolfold.evaluation import Corpus, LabelledRequest, measure
from toolfold.search._document import document, english_fields, fields
from toolfold.search._han import simplified
from toolfold.search._lexicon import LEXICON, in_english, readings, translated

LANGUAGES_FILE = CATALOG_FILE.with_name("languages.jsonl")
FAIR_FILE = CATALOG_FILE.with_name("languages_fair.jsonl")
ELSEWHERE_FILE = Path(__file__).parent.parent / "data" / "described_elsewhere.jsonl"

GERMAN = [
    {"name": "rechnung_erstellen", "description": "Erstellt eine Rechnung für einen Kunden."},
    {"name": "mail_senden", "description": "Sendet eine E-Mail an einen Empfänger."},
    {"name": "flug_suchen", "description": "Sucht Flüge zwischen zwei Flughäfen."},
]


def rows(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def english() -> list[str]:
    return [str(row["query"]) for row in rows(QUERIES_FILE)]


def found(tools: object, query: str, **more: object) -> list[str]:
    settings = Settings(enabled="on", **more)  # type: ignore[arg-type]
    bridge = fold(tools, settings=settings).bridge  # type: ignore[arg-type]
    return [hit.name for hit in bridge.search(query, 5)]


def languages(file: Path = LANGUAGES_FILE) -> Corpus:
    requests = [
        LabelledRequest(row["query"], frozenset(row["gold"]), row["split"], row["category"])  # type: ignore[arg-type]
        for row in rows(file)
    ]
    return Corpus("languages", demo_catalog(), tuple(requests))


# What the ranker finds without the word list, for comparison:
# de 0.13, es 0.27, fr 0.20, ja 0.07, pt 0.27, zh 0.03.
AT_LEAST = {"de": 0.9, "es": 0.86, "fr": 0.8, "ja": 0.9, "pt": 0.86, "zh": 0.9}


@pytest.mark.parametrize("ranker", ["hybrid", "bm25"])
def test_requests_in_other_languages_find_english_tools(ranker: Literal["hybrid", "bm25"]) -> None:
    result = measure(languages(), Settings(enabled="on", ranker=ranker))

    by_language = {name: metrics["recall@5"] or 0 for name, metrics in result.categories.items()}
    assert by_language.keys() == AT_LEAST.keys()
    assert {name: share for name, share in by_language.items() if share < AT_LEAST[name]} == {}


# With six languages in the lexicon: de 0.65, es 1, fr 0.9, it 0.3, ja 1, ko 0.1, pt 0.8,
# ru 0.05, zh 0.95, zh-hant 0.55. The set stays as it is, whatever it lacks.
FAIR_AT_LEAST = {
    "de": 0.65,
    "es": 0.9,
    "fr": 0.8,
    "it": 0.75,
    "ja": 0.9,
    "ko": 0.75,
    "pt": 0.7,
    "ru": 0.85,
    "zh": 0.9,
    "zh-hant": 0.9,
}


def test_requests_for_tools_drawn_at_random_find_them_in_ten_languages() -> None:
    floored = measure(languages(FAIR_FILE), Settings(enabled="on"))
    result = measure(languages(FAIR_FILE), Settings(enabled="on", relevance_floor=0))

    assert (floored.metrics["recall@5"] or 0) >= 0.85
    by_language = {name: metrics["recall@5"] or 0 for name, metrics in result.categories.items()}
    assert by_language.keys() == FAIR_AT_LEAST.keys()
    low = {name: share for name, share in by_language.items() if share < FAIR_AT_LEAST[name]}
    assert low == {}


@pytest.mark.parametrize("ranker", ["hybrid", "bm25"])
def test_tools_described_in_other_languages_are_found_in_english(ranker: str) -> None:
    elsewhere = rows(ELSEWHERE_FILE)
    own = [{"name": row["name"], "description": row["description"]} for row in elsewhere]
    tools = [*demo_catalog(), *own]

    missed = [
        row["language"]
        for row in elsewhere
        if row["name"] not in found(tools, str(row["request"]), ranker=ranker)
    ]
    assert len(elsewhere) == 50
    assert len(missed) <= 11
    assert all(missed.count(language) <= 5 for language in missed)


def test_english_requests_stay_as_they_are() -> None:
    assert [query for query in english() if translated(query) is not query] == []


@given(first=st.sampled_from(english()), second=st.sampled_from(english()), cut=st.integers(0, 60))
def test_parts_of_english_requests_stay_as_they_are(first: str, second: str, cut: int) -> None:
    text = f"{first} {second[:cut]}"

    assert translated(text) is text


@pytest.mark.parametrize(
    "query",
    [
        "find a gift for a friend who may die",
        "also cancel the order once it is in transit",
        "MIT research report",
        "weather in Los Angeles",
        "flights from Rio de Janeiro to La Paz",
        "book a table at Das Lokal",
        "client notifications",
        "Github repository",
        "version information",
        'translate "你好，世界" to English',
        "create_calendar_event",
        "",
        "???",
    ],
)
def test_false_friends_names_and_quotes_do_not_make_a_request_foreign(query: str) -> None:
    assert translated(query) is query


@pytest.mark.parametrize(
    ("query", "reading"),
    [
        ("Rechnung für Müller erstellen", "invoice Müller create"),
        ("Übersetze den Vertrag 4711", "translate contract 4711"),
        ("Uebersetze den Vertrag 4711", "translate contract 4711"),
        ("Leite die Nachricht weiter", "forward message"),
        ("Stell die Datei wieder her", "restore file"),
        ("Zeig mir die Kundenliste", "show customer list"),
        ("Muéstrame los pedidos de Marta", "show order Marta"),
        ("Haz una copia de seguridad de la base de datos", "make create back up backup database"),
        ("Supprime la pièce jointe", "delete attach attachment"),
        ("Procure um voo para Porto", "search find flight Porto"),
        ("重启服务器", "restart server"),
        ("删除 report.pdf 文件", "delete report.pdf file"),
        ("ファイルを削除してください", "file delete"),
        ("田中さんの請求書", "田中 invoice"),
        ("重新啟動伺服器", "restart server"),
        ("刪除 report.pdf 檔案", "delete report.pdf file"),
        ("請求書検索", "invoice search find"),
        ("Удали файл report.pdf", "delete file report.pdf"),
        ("Покажи непрочитанные письма Ивана", "show непрочитанные email mail Ивана"),
        ("Ещё один счёт для Петрова", "1 invoice Петрова"),
        ("Mostrami le fatture di Bianchi", "show invoice Bianchi"),
        ("Cancella l'appuntamento", "cancel 'appointment"),
        ("파일을 삭제해 주세요", "file delete"),
        ("김철수에게 이메일을 보내줘", "김철수 email mail send"),
        ("CSV를 데이터베이스로 가져오기", "CSV database import"),
        ("3시에 회의실을 예약해줘", "3 o'clock meeting room book reserve"),
    ],
)
def test_a_foreign_request_is_read_word_by_word(query: str, reading: str) -> None:
    assert translated(query) == reading
    assert translated(unicodedata.normalize("NFD", query)) == reading


def test_connectives_and_stops_stay_so_that_needs_can_be_told_apart() -> None:
    assert translated("Buche ein Hotel und suche einen Flug") == (
        "book reserve hotel and search find flight"
    )
    assert translated("预订酒店，然后查天气。") == "book reserve hotel , then look up weather ."


LETTERS = st.characters(codec="utf-8") | st.sampled_from(
    "查询天气請書ファイルを삭제해줘을를Ещёüß éà"
)


@given(text=st.text(LETTERS, max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(translated(text), str)
    assert len(in_english((text, "", text))) == 3


@given(texts=st.lists(st.text(st.characters(codec="ascii"), max_size=80), max_size=6))
def test_ascii_texts_of_tools_are_taken_for_english(texts: list[str]) -> None:
    assert not any(in_english(texts))


def test_english_tools_are_indexed_by_their_own_words_alone() -> None:
    tools = [
        *demo_catalog(),
        Tool("cafe", description="Find a café — “near” you… naïve résumés → über-fast 😀"),
        Tool("price", description="Price in € or ¥; ½ of it for members. Doesn’t need a key."),
    ]

    assert [tool.name for tool in tools if english_fields(tool) != fields(tool)] == []


@pytest.mark.parametrize(
    ("description", "word"),
    [
        ("查询城市的天气预报", "weather"),
        ("查詢城市的天氣預報", "weather"),
        ("ファイルを検索します", "file"),
        ("도시의 날씨를 조회합니다", "weather"),
        ("Возвращает прогноз погоды в городе", "weather"),
        ("Erstellt eine Rechnung für einen Kunden.", "invoic"),
        ("Busca vuelos según la ciudad y el precio", "flight"),
        ("Invia un'e-mail, più allegati, a un cliente", "custom"),
    ],
)
def test_a_tool_is_indexed_by_what_its_description_says_in_english(
    description: str, word: str
) -> None:
    assert word in document(Tool("t", description=description)).terms


def test_the_own_words_of_a_foreign_tool_are_kept() -> None:
    tool = Tool("chaxun", description="查询天气 (v2 API)")

    assert {"查询", "天气", "v2", "api", "weather"} <= set(document(tool).terms)
    assert fields(tool).description == "查询天气 (v2 API)"


def test_names_and_parameters_are_read_with_the_description() -> None:
    schema = {"type": "object", "properties": {"kunde": {"description": "Name des Kunden"}}}
    tool = Tool("rechnung_erstellen", description="Für eine Bestellung", parameters=schema)

    assert {"invoic", "creat", "order", "custom", "name"} <= set(document(tool).terms)


@pytest.mark.parametrize("query", ["Suche Flüge nach Rom", "Erstelle bitte eine Rechnung"])
@pytest.mark.parametrize("ranker", ["hybrid", "bm25"])
def test_tools_described_in_the_language_of_the_request_are_found(query: str, ranker: str) -> None:
    best = found(GERMAN, query, ranker=ranker)[0]

    assert best == ("flug_suchen" if "Flüge" in query else "rechnung_erstellen")


def test_of_tools_in_two_languages_both_are_found() -> None:
    tools = [
        *GERMAN,
        {"name": "create_invoice", "description": "Create an invoice for a customer."},
        {"name": "tianqi", "description": "查询城市的天气预报"},
        {"name": "get_weather", "description": "Weather forecast for a city."},
    ]

    assert {"rechnung_erstellen", "create_invoice"} <= set(
        found(tools, "Erstelle eine Rechnung für den Kunden Huber")
    )
    assert {"tianqi", "get_weather"} <= set(found(tools, "明天北京天气怎么样"))


def test_the_words_of_a_request_count_more_than_their_translation() -> None:
    tools = [
        {"name": "c", "description": "send mail"},
        {"name": "b", "description": "メールを送信する"},
    ]

    assert found(tools, "送信", ranker="bm25") == ["b", "c"]


def test_a_request_is_searched_in_its_own_words_only_where_tools_know_them() -> None:
    query = "Schick die Rechnung"

    assert readings(query, lambda term: False) == ("send invoice",)
    assert readings(query, lambda term: True) == ("send invoice", query)
    assert readings("send the invoice", lambda term: True) == ("send the invoice",)


def test_explain_names_the_english_words() -> None:
    bridge = fold(demo_catalog(), settings=Settings(enabled="on")).bridge
    hit = bridge.search("Erstatte dem Kunden die Zahlung", 1)[0]

    assert hit.name == "billing__refund_payment"
    assert "refund" in bridge.explain(hit)


def test_an_english_request_pays_microseconds() -> None:
    queries = english()
    for query in queries:
        translated(query)

    started = time.process_time()
    for query in queries:
        translated(query)

    assert (time.process_time() - started) / len(queries) < 100e-6


@pytest.mark.parametrize(
    "query",
    [
        "bitte die Mail " + "ab " * 2_000,
        "mach die " + "mail" * 900,
        "发" * 5_000,
        "을를" * 5_000,
        "가나 " * 5_000,
        "обновляющимися " * 5_000,
        "mostramelo " * 5_000,
        "ﷺ" * 5_000,
    ],
)
def test_a_long_text_does_not_take_long(query: str) -> None:
    started = time.process_time()
    translated(query)
    in_english((query,) * 6)

    assert time.process_time() - started < 1


def test_the_list_is_well_formed() -> None:
    lines = [line.split("\t") for line in LEXICON.read_text("utf-8").splitlines()]

    assert lines[0] == ["english", "de", "es", "fr", "it", "pt", "ru", "ko", "zh", "ja"]
    assert LEXICON.stat().st_size < 300_000
    for line in lines[1:]:
        english, *latin, russian, korean, chinese, japanese = line
        assert len(line) == 10, line
        assert 1 <= len(english.split()) <= 4, line
        assert all(cell.isascii() and cell == cell.lower() for cell in latin), line
        assert re.fullmatch("[а-я_ a-z]*", russian), line
        assert re.fullmatch("[가-힣 ]*", korean), line
        assert not any(letter.isascii() and letter != " " for letter in chinese + japanese), line
        assert simplified(chinese) == chinese, line


def test_the_requests_name_tools_of_the_catalog() -> None:
    catalog: Catalog = demo_catalog()

    requests = [*languages().requests, *languages(FAIR_FILE).requests]
    assert [r for r in requests if any(name not in catalog for name in r.gold)] == []
