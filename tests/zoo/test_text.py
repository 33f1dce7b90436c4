from hypothesis import given
from hypothesis import strategies as st

from precedents.zoo.text import MARKS, counted, encoded, vocabulary, written

TEXTS = [["b", "a", "a"], ["a", "b", "c"], ["d"]]


def test_words_come_by_frequency_then_alphabet() -> None:
    assert vocabulary(TEXTS, least=1) == (*MARKS, "a", "b", "c", "d")
    assert vocabulary(TEXTS, least=2) == (*MARKS, "a", "b")
    assert vocabulary(TEXTS, least=1, most=1) == (*MARKS, "a")


def test_texts_are_marked_and_padded() -> None:
    words = vocabulary(TEXTS, least=2)
    assert encoded(TEXTS, words).tolist() == [[2, 5, 4, 4, 3], [2, 4, 5, 1, 3], [2, 1, 3, 0, 0]]


def test_a_word_that_looks_like_a_mark_is_unknown() -> None:
    assert encoded([["", MARKS[1], MARKS[3]]], MARKS).tolist() == [[2, 1, 1, 1, 3]]


def test_counts_are_of_known_words_alone() -> None:
    words = vocabulary(TEXTS, least=2)
    assert counted(encoded(TEXTS, words), len(words)).tolist() == [
        [0, 0, 0, 0, 2, 1],
        [0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6), min_size=1, max_size=6))
def test_a_text_comes_back_with_unknown_words_marked(texts) -> None:
    words = vocabulary(texts, least=2)
    tokens = encoded(texts, words)
    for row, text in zip(tokens, texts, strict=True):
        assert written(row, words) == " ".join(word if word in words else "‹unknown›" for word in text)
    known = [float(sum(word in words for word in text)) for text in texts]
    assert counted(tokens, len(words)).sum(dim=1).tolist() == known
