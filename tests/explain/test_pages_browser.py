"""Pages of explanations, shares and jobs in a real Chromium: light and dark, on a desktop and on a phone."""

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from visiting import Visit

import precedents as pr

LOOKED_AT = {  # pages that axe looks at, each kind on one of the screens
    "desktop": ("pictures", "shares of texts", "suspects", "rows"),
    "phone": ("pictures under heat maps", "texts", "shares of pictures", "shares of rows", "near_duplicates"),
}
SCREENS = {"desktop": {"width": 1200}, "phone": {"width": 390, "color_scheme": "dark"}}
LONG = 4000  # letters of a text


def of_pictures() -> dict[str, str]:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.rand(40, 1, 8, 8, generator=draw), torch.arange(40) % 4
    names = ["a cat", "a dog", "a bird with a rather long name of its own", "<b>"]
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(108, 4)
    )
    explainer = pr.Explainer(model, (torch.cat([x, x[:3]]), torch.cat([y, y[:3]])), classes=names)
    found = explainer.explain(x[:3], truth=y[:3])
    other = pr.Explainer(model, explainer.subject.train, "dot_grad", classes=names)
    return {
        "pictures": found.to_html(),
        "pictures under heat maps": found.to_html(shares=True),
        "shares of pictures": found.shares().to_html(),
        "suspects": explainer.suspects(30, (x, y)).to_html(),
        "self_relevance": other.self_relevance().to_html(),
        "contrast": explainer.contrast(x[0], 0, 1).to_html(),
        "answers": explainer.answers(None, x).to_html(),
        "near_duplicates": explainer.near_duplicates((x[:5], y[:5])).to_html(),
        "groups": explainer.groups((x, y), by="error").to_html(),
        "compare": pr.compare(explainer, other, x).to_html(),
    }


def of_texts() -> dict[str, str]:
    draw = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30000)]
    texts = [
        " ".join([*draw.choice(words, LONG // 10), "sea " * 5 if i % 2 else "goal " * 5]) for i in range(8)
    ]
    texts += ["https://" + "a" * 400, "a short one"]
    labels = ["wet" if i % 2 else "dry" for i in range(10)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)).fit(texts, labels)
    explainer = pr.Explainer(model, (texts, labels))
    cases = [" ".join([*draw.choice(words, LONG // 10), each]) for each in ("goal " * 5, "sea " * 5)]
    found = explainer.explain(cases, k=3)
    return {
        "texts": found.to_html(),
        "shares of texts": found.shares().to_html(),
        "suspects of texts": explainer.suspects(8).to_html(),
        "near_duplicates of texts": explainer.near_duplicates().to_html(),
    }


def of_rows() -> dict[str, str]:
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 20, generator=draw), torch.arange(40) % 2
    columns = [f"a column with a long name, number {i}" for i in range(20)]
    explainer = pr.Explainer(torch.nn.Linear(20, 2), (x, y), render=pr.tables(columns, std=[1e4] * 20))
    found = explainer.explain(x[:2])
    return {"rows": found.to_html(), "shares of rows": found.shares().to_html()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """The address of each page on disk."""
    folder, found = tmp_path_factory.mktemp("pages"), of_pictures() | of_texts() | of_rows()
    for name, text in found.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in found}


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_fit_say_nothing_and_are_accessible(screen, pages, browser) -> None:
    wrong = {}
    for name, address in pages.items():
        with Visit(browser, address, **SCREENS[screen]) as visit:
            if not visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                wrong[name, "too wide"] = visit.page.evaluate("document.documentElement.scrollWidth")
            if visit.said:
                wrong[name, "said"] = visit.said
            if name in LOOKED_AT[screen]:
                violations = Axe().run(visit.page).response["violations"]
                wrong |= {(name, each["id"]): each["nodes"][0]["html"][:200] for each in violations}
    assert wrong == {}


WIDEST = """() => [...document.querySelectorAll("figure, figure *")]
    .filter(each => each.scrollWidth > each.closest("figure").clientWidth).map(each => each.outerHTML)"""


def test_long_words_stay_within_their_columns_in_a_notebook(tmp_path, browser) -> None:
    draw = torch.Generator().manual_seed(0)
    x, names = torch.rand(8, 1, 8, 8, generator=draw), ["great_white_shark_carcharodon", "b"]
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))
    pictures = pr.Explainer(linear, (x, torch.arange(8) % 2), classes=names).explain(x[:2])
    texts = [f"see https://{'a' * 160} {each}" for each in ("one", "two", "three", "four")]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [0, 1, 0, 1])
    found = pr.Explainer(model, (texts, [0, 1, 0, 1])).explain(texts[:2], k=3)
    fragments = pictures._repr_html_() + found._repr_html_()  # without the styles of a page
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{fragments}</body>", encoding="utf-8")
    with Visit(browser, (tmp_path / "notebook.html").as_uri(), width=1000) as visit:
        assert visit.page.locator("figure").count() > 10
        assert visit.page.evaluate(WIDEST) == []
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_of_long_texts_is_no_longer_than_what_matters(pages, browser) -> None:
    with Visit(browser, pages["texts"], width=390) as visit:
        folded = visit.page.evaluate("document.documentElement.scrollHeight")
        assert folded < 8000
        assert visit.page.locator("figure").first.locator("mark", has_text="goal").first.is_visible()
        visit.page.locator("summary").first.click()
        assert visit.page.evaluate("document.documentElement.scrollHeight") > folded + 1000
