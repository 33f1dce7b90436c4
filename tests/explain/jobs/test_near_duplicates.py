from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import precedents as pr
from precedents.explain.jobs._likeness import groups_of_letters
from precedents.index.sketch import hashed


@pytest.fixture(scope="module")
def pictures():
    """Blots of 28 x 28 pixels, and the same again: as they are, with noise, and moved."""
    draw = torch.Generator().manual_seed(0)
    coarse = torch.rand(60, 1, 7, 7, generator=draw)
    x = torch.nn.functional.interpolate(coarse, scale_factor=4, mode="bilinear")
    x[..., :4, :] = x[..., -4:, :] = 0
    x[..., :, :4] = x[..., :, -4:] = 0
    noise = x[10:20] + 0.02 * torch.randn(10, 1, 28, 28, generator=draw)
    moved = torch.zeros_like(x[20:30])
    moved[..., 2:, 1:] = x[20:30, :, :-2, :-1]
    every = torch.cat([x, x[:10], noise, moved])
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 2))
    return pr.Explainer(model, (every, torch.arange(90) % 2)), x


def pairs(found: pr.NearDuplicates, where: str, exact: bool) -> set[tuple[int, int]]:
    return {(p.index, p.other) for p in found.pairs if p.where == where and p.exact == exact}


def test_copies_noise_and_shifts_are_found_and_nothing_else(pictures) -> None:
    explainer, _ = pictures
    found = explainer.near_duplicates()
    assert pairs(found, "train", True) == {(i, 60 + i) for i in range(10)}
    assert pairs(found, "train", False) == {(i, 60 + i) for i in range(10, 30)}
    assert "10 exact and 20 near duplicates within the training set" in str(found)


def test_they_are_found_between_the_sets(pictures) -> None:
    explainer, x = pictures
    found = explainer.near_duplicates((torch.cat([x[40:42], x[45:46] + 0.01]), torch.tensor([0, 0, 1])))
    assert pairs(found, "test", True) == {(40, 0), (41, 1)}
    assert pairs(found, "test", False) == {(45, 2)}
    frame = found.to_frame()
    own = frame[frame["where"] == "test"]
    assert own["conflict"].tolist() == [bool(i % 2 != label) for i, label in ((40, 0), (41, 0), (45, 1))]


def test_texts_are_the_same_whatever_their_case_and_blanks() -> None:
    texts = [
        "Where is the river?",
        "who wrote  this book",
        "where is the RIVER",
        "When was she born in the city of Bonn?",
    ]
    texts += ["When was she born in the city of Born?", "what is it", "Who wrote this book"]
    labels = [0, 1, 0, 1, 1, 0, 1]
    model = make_pipeline(CountVectorizer(lowercase=False), LogisticRegression()).fit(texts, labels)
    found = pr.Explainer(model, (texts, labels)).near_duplicates(least=0.9)
    every = pairs(found, "train", True) | pairs(found, "train", False)
    assert every == {(0, 2), (1, 6), (3, 4)}


def test_rows_of_a_table_are_near_in_standard_deviations() -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(50, 6, generator=draw) * torch.tensor([1, 10, 100, 1, 1, 0.1])
    every = torch.cat([x, x[:3], x[3:6] * 1.002])
    found = pr.Explainer(torch.nn.Linear(6, 2), (every, torch.arange(56) % 2)).near_duplicates()
    assert pairs(found, "train", True) == {(i, 50 + i) for i in range(3)}
    assert pairs(found, "train", False) == {(i, 50 + i) for i in range(3, 6)}


def test_one_training_instance_has_no_duplicates() -> None:
    explainer = pr.Explainer(torch.nn.Linear(2, 2), (torch.eye(2)[:1], torch.tensor([0])))
    assert len(explainer.near_duplicates()) == 0


@pytest.mark.parametrize("least", [-0.1, 1.5, "0.9", True])
def test_a_likeness_that_cannot_be_is_refused(least, pictures) -> None:
    with pytest.raises(pr.InputError, match="Pass a number from 0 to 1"):
        pictures[0].near_duplicates(least=least)


def test_each_test_case_is_exactly_the_first_of_equal_instances_and_near_to_none_of_them(pictures) -> None:
    explainer, x = pictures
    found = explainer.near_duplicates((x[:3], torch.zeros(3, dtype=torch.long)))
    assert pairs(found, "test", True) == {(i, i) for i in range(3)}
    assert not pairs(found, "test", False) & {(60 + i, i) for i in range(3)}


@pytest.mark.parametrize("wrong", [torch.full((2, 1, 28, 28), torch.nan), torch.rand(2, 1, 9, 9)])
def test_a_test_set_that_the_model_cannot_take_is_refused(wrong, pictures) -> None:
    with pytest.raises(pr.PrecedentsError):
        pictures[0].near_duplicates((wrong, torch.zeros(2, dtype=torch.long)))


def pipeline_of(texts: list[str], labels: list[int]) -> pr.Explainer:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    return pr.Explainer(model, (texts, labels))


@settings(max_examples=40)
@given(st.text(max_size=30))
def test_letters_are_counted_in_threes_one_after_the_other(text) -> None:
    padded, expected = f" {text} ".ljust(3), np.zeros(512)
    for i in range(len(padded) - 2):
        first, second, third = map(ord, padded[i : i + 3])
        place = np.array([first * 2**42 + second * 2**21 + third], dtype=np.uint64)
        expected[int(hashed(place, 0)[0]) % 512] += 1
    assert (groups_of_letters(text) == expected).all()


def test_different_groups_of_letters_are_spread_over_the_buckets() -> None:
    words = ["".join(letters) for letters in product("abcdefghij", repeat=3)]
    found = groups_of_letters("".join(words))
    assert (found > 0).mean() > 0.8
    assert found.max() < 8 * found.mean()


def test_long_texts_are_described_in_bulk() -> None:
    draw = np.random.default_rng(0)
    words = np.array(["".join(draw.choice(list("abcdefghijklmnop"), 6)) for _ in range(3000)])
    texts = [" ".join(draw.choice(words, 3000)) for _ in range(20)]
    texts += [texts[0].upper(), texts[1] + " more"]
    found = pipeline_of(texts, [i % 2 for i in range(22)]).near_duplicates(least=0.99)
    assert {(0, 20), (1, 21)} <= pairs(found, "train", True) | pairs(found, "train", False)


def test_what_is_the_same_to_the_model_alone_is_said() -> None:
    texts = ["", "a", "where is the river", "Where is THE river", "who wrote this book", "who wrote this book"]
    found = pipeline_of(texts, [0, 0, 0, 1, 1, 1]).near_duplicates()
    told = {(pair.index, pair.other): pair for pair in found.pairs}
    assert [(told[each].exact, told[each].same) for each in [(0, 1), (2, 3), (4, 5)]] == [
        (True, False),
        (True, False),
        (True, True),
    ]
    assert told[0, 1].likeness < 0.9
    assert told[2, 3].likeness == told[4, 5].likeness == 1
    assert "#0  0  the same to the model as  #1" in str(found)
    assert "#4  1  the same as               #5" in str(found)
    assert "a person sees something else: 2 of the exact ones" in str(found)


def test_what_the_memory_has_no_room_for_is_refused_at_first() -> None:
    x = torch.randn(6000, 600)
    explainer = pr.Explainer(torch.nn.Linear(600, 2), (x, torch.arange(6000) % 2), "cos_x", memory="20 MB")
    with pytest.raises(pr.BudgetError, match=r"Descriptions of 6000 instances needs .* memory="):
        explainer.near_duplicates()


@pytest.mark.parametrize("what", ["label", "row"])
@pytest.mark.parametrize("which", ["train", "test"])
def test_what_has_changed_since_is_not_searched(which, what) -> None:
    sets = {name: (torch.rand(8, 3), torch.arange(8) % 2) for name in ("train", "test")}
    explainer, test = (
        pr.Explainer(torch.nn.Linear(3, 2), sets["train"]),
        pr.Examples.of(sets["test"], "test set"),
    )
    explainer.near_duplicates(test)
    x, y = sets[which]
    (y if what == "label" else x)[2] += 1
    with pytest.raises(
        pr.StaleError, match=f"{what.capitalize()} 2 of the {which}(ing)? set has changed since"
    ):
        explainer.near_duplicates(test)


def test_a_page_says_what_its_pairs_mean() -> None:
    x = torch.tensor([[0.0, 0.0], [9.0, 9.0], [0.01, 0.0], [5.0, 1.0], [5.0, 1.0]])

    def legend(labels: list[int], test=None, rows=x) -> str:
        return pr.Explainer(torch.nn.Linear(2, 2), (rows, torch.tensor(labels))).near_duplicates(test).legend

    assert legend([0, 0, 0, 1, 1]) == ""
    assert "may both be right" in legend([0, 0, 1, 1, 1])  # nearly the same
    assert "may both be right" not in legend([0, 0, 0, 0, 1])
    assert "One of the two is wrong, or the label cannot be told" in legend([0, 0, 0, 0, 1])
    assert "accuracy" not in legend([0, 0, 0, 0, 1], (x[:1] + 50, torch.tensor([0])))
    assert "accuracy" in legend([0, 0, 0, 0, 1], (x[:1], torch.tensor([0])))


def of_texts(*texts: str) -> pr.Explainer:
    """Texts in pairs, the two of each with different labels."""
    model = make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression())
    labels = [i % 2 for i in range(len(texts))]
    return pr.Explainer(model.fit(list(texts), labels), (list(texts), labels))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("मेरा बेटा", "मेरी बेटी", False),
        ("ไม่ดี", "ไมดี", False),
        ("😀😀", "😡", False),
        ("c", "c++", False),
        ("?!", "...", False),
        ("New York is big", "NewYork is big", True),
        ("e-mail me the report", "Email me, the report!", True),
        ("ﬁne ｗork", "fine work", True),
        ("Straße", "STRASSE", True),
        ("ignore_case", "Ignore Case", True),
    ],
)
def test_letters_of_all_scripts_count_and_blanks_do_not(one, other, same) -> None:
    found = of_texts(one, other, "something else 1", "and 2 others").near_duplicates(least=0.999)
    near = [pair for pair in found.pairs if {pair.index, pair.other} == {0, 1}]
    assert [pair.likeness == 1 for pair in near] == ([True] if same else [])


@pytest.mark.parametrize("least", [0.0, 0.3, 0.6, 0.85])
def test_a_smaller_likeness_finds_what_is_that_much_alike(least, pictures) -> None:
    texts = of_texts(
        "the printer on the second floor does not print",
        "the printer on the third floor does not print any more",
        "my invoice is wrong by ten euros",
        "the invoice of march is wrong by ten euros",
    )
    draw = torch.Generator().manual_seed(0)
    table = pr.Explainer(torch.nn.Linear(2, 2), (torch.randn(4, 2, generator=draw), torch.arange(4) % 2))
    x = torch.rand(4, 1, 8, 8, generator=draw)
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))
    for explainer in (texts, table, pr.Explainer(linear, (x, torch.arange(4) % 2))):
        every = explainer.near_duplicates(least=0.0).pairs  # of four instances, three others each
        expected = {(pair.index, pair.other) for pair in every if pair.likeness >= least}
        found = explainer.near_duplicates(least=least)
        assert {(pair.index, pair.other) for pair in found.pairs} == expected
        assert all(pair.likeness >= least for pair in found.pairs)
    assert {(0, 1), (2, 3)} <= {(pair.index, pair.other) for pair in texts.near_duplicates(least=0.6).pairs}


def test_pictures_of_several_sizes_are_compared() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(12, 48, generator=draw)
    x[:, 0] = torch.arange(12) / 12
    x[7] = x[3] + 0.001
    model = torch.nn.Linear(48, 2)

    def shown(row: torch.Tensor) -> torch.Tensor:
        return row[: 8 * (1 + int(row[0] * 6))].reshape(-1, 8)

    found = pr.Explainer(model, (x, torch.arange(12) % 2), render=shown).near_duplicates()
    assert (3, 7) in {(pair.index, pair.other) for pair in found.pairs}
    assert found.to_html()
    mixed = pr.Explainer(
        model, (x, torch.arange(12) % 2), render=lambda row: shown(row) if row[0] < 0.2 else "no"
    )
    with pytest.raises(
        pr.InputError, match=r"Instance 3 is not shown as a picture.*render that shows all alike"
    ):
        mixed.near_duplicates()
