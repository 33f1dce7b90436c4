"""Words are marked where they stand, and the marks add up to the shares."""

import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import precedents as pr
from precedents.views.fragments import text_of
from precedents.views.marks import WordShares

TEXTS = [
    "the C++ co-op at sea",
    "ÜBER the blue sea",
    "don't sink, İda",
    "a goal in time",
    "co-op goals",
    "sea, sea!",
]
VECTORIZERS = {
    "words": TfidfVectorizer(),
    "by blanks": TfidfVectorizer(token_pattern=r"\S+"),
    "without accents": CountVectorizer(strip_accents="unicode"),
    "pairs of words": TfidfVectorizer(ngram_range=(1, 2)),
    "letters within words": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "letters": TfidfVectorizer(analyzer="char", ngram_range=(3, 3)),
}


@pytest.mark.parametrize("name", VECTORIZERS)
def test_the_marks_of_a_text_add_up_to_the_shares_of_its_words(name) -> None:
    labels = [0, 1, 0, 1, 0, 1]
    model = make_pipeline(VECTORIZERS[name], LogisticRegression()).fit(TEXTS, labels)
    explainer = pr.Explainer(model, (TEXTS, labels))
    for index in range(len(TEXTS)):
        found = explainer.shares("the uber c++ CO-OP, don't scare the sea goal", index)
        for words, text in zip(found.words or (), (found.case, found.precedent), strict=False):
            marked = words.marked(text)
            assert "".join(piece for piece, _ in marked) == text
            left = sum(share for _, share in words.unplaced(text).pieces)
            whole = sum(share for _, share in words.pieces)
            assert sum(share for _, share in marked) + left == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(
    ("piece", "text", "places"),
    [
        ("c++", "I like C++ a lot", ["C++"]),
        ("co-op", "a co-op, and a coop", ["co-op"]),
        ("uber", "ÜBER alles", ["ÜBER"]),
        ("sea", "seas of the sea", ["sea"]),
        ("blue sea", "blue\n sea", ["blue", "sea"]),
        ("i̇da", "İda came", ["İda"]),
    ],
)
def test_a_word_is_marked_where_it_stands_and_nowhere_else(piece, text, places) -> None:
    words = WordShares(((piece, 0.5),), ordered=False)
    assert [own for own, share in words.marked(text) if share] == places
    assert words.unplaced(text).pieces == ()


def test_what_is_not_in_the_text_as_it_is_called_is_listed_below_it() -> None:
    words = WordShares((("run", 0.5), ("fast", 0.25)), ordered=False)
    assert "by share, too: run +0.500</div>" in text_of("he was running fast", words)
    assert "by share, too" not in text_of("run fast", words)
