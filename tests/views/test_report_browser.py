"""The report in a real Chromium, opened from disk."""

from dataclasses import replace

import pytest
import reports
from axe_playwright_python.sync_playwright import Axe
from visiting import Visit

from precedents.seen import visible
from precedents.views.report import Report, html

EMPTY = Report("title", [], [], {}, {}, [], {}, [], {}, [], {}, {})


@pytest.fixture(scope="module")
def pages(tmp_path_factory, trial, large) -> dict[str, str]:
    """The address of each page on disk."""
    real = reports.real(trial)
    row = real.rows[0]
    explained = replace(
        real,
        why={(row.metric, row.criterion): "It is so."},
        copies={real.duplicates[0]: "a text of two"},
        compared={row.metric: "RIF: the angle between the loss gradients after influence-function weighting"},
    )
    texts = {
        "real": html(real),
        "hostile": html(reports.hostile(real)),
        "large": large,
        "explained": html(explained),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.mark.parametrize("width", [1280, 390, 360])
@pytest.mark.parametrize("name", ["real", "large", "hostile"])
def test_the_page_shows_its_table_and_figures_quietly(browser, pages, name, width) -> None:
    with Visit(browser, pages[name], width) as visit:
        page = visit.page
        assert page.locator("table.verdicts tbody tr").count() == (18 if name == "large" else 5)
        assert page.locator("table.verdicts").is_visible()
        drawn = page.locator("figure.drawing svg:visible")
        assert drawn.count() == page.locator("figure.drawing").count() >= 7
        assert all(drawn.nth(i).bounding_box()["width"] > 280 for i in range(drawn.count()))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert visit.said == []


def test_hostile_text_is_shown_and_does_not_run(browser, pages) -> None:
    with Visit(browser, pages["hostile"]) as visit:
        page = visit.page
        for details in page.locator("summary").all():
            details.click()
        page.mouse.move(400, 400)
        assert page.evaluate("window.hacked === undefined")
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object, textarea").count() == 0
        assert page.evaluate(
            "[...document.querySelectorAll('*')].every(e => ![...e.attributes].some(a => /^on/.test(a.name)))"
        )
        shown = visible(reports.HOSTILE)
        assert page.locator("h1").inner_text().split() == shown.split()
        assert page.title().split() == shown.split()
        where = ["th[scope=row]", ".tile .title", ".values dd", ".facts dd", "pre", ".verdict .lead"]
        for place in where:
            assert " ".join(shown.split()) in " ".join(page.locator(place).first.text_content().split()), place
        parts = page.locator(".case p.text").all_text_contents()[:2]  # a long text and its rest
        assert "".join(parts).split() == shown.split()
        assert visit.said == []


def test_a_script_that_is_not_the_page_s_own_does_not_run(browser, pages, tmp_path) -> None:
    """Were something ever left unescaped, the policy of the page would still stop it."""
    broken = html(EMPTY).replace(
        "</main>", f"<script>{reports.RUN}</script><img src=x onerror='{reports.RUN}'></main>"
    )
    file = tmp_path / "broken.html"
    file.write_text(broken, encoding="utf-8")
    with Visit(browser, file.as_uri()) as visit:
        visit.page.wait_for_load_state("networkidle")
        assert visit.page.evaluate("window.hacked === undefined")
        assert any("Content Security Policy" in said for said in visit.said)


def test_the_table_sorts_best_first_then_worst_first(browser, pages) -> None:
    with Visit(browser, pages["large"]) as visit:
        heading = visit.page.locator("table.verdicts thead th").nth(4)
        cells = visit.page.locator("table.verdicts tbody tr td:nth-child(5) .value")
        heading.locator("button").focus()
        visit.page.keyboard.press("Enter")
        best = [float(text) for text in cells.all_inner_texts()]
        assert best == sorted(best, reverse=True)
        assert heading.get_attribute("aria-sort") == "descending"
        visit.page.keyboard.press("Enter")
        assert [float(text) for text in cells.all_inner_texts()] == sorted(best)


def test_without_scripts_the_page_is_whole_and_offers_no_button(browser, pages) -> None:
    with Visit(browser, pages["real"], java_script_enabled=False) as visit:
        assert visit.page.locator("table.verdicts").is_visible()
        assert visit.page.locator("button").count() == 0


def test_the_figures_follow_light_and_dark(browser, pages) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        with Visit(browser, pages["real"], color_scheme=scheme) as visit:
            seen[scheme] = visit.page.evaluate(
                "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
                " getComputedStyle(document.querySelector('figure.drawing svg text')).fill]"
            )
    assert seen["light"][0] != seen["dark"][0]
    assert all(ink == text for _, ink, text in seen.values())
    assert seen["light"][1] != seen["dark"][1]


def test_the_keyboard_reaches_the_content_at_once(browser, pages) -> None:
    with Visit(browser, pages["real"]) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the verdicts"
        assert visit.page.evaluate("document.activeElement.getBoundingClientRect().top >= 0")


def test_the_wide_table_scrolls_in_its_own_box_on_a_phone(browser, pages) -> None:
    with Visit(browser, pages["large"], 390) as visit:
        assert visit.page.evaluate(
            "(box => box.scrollWidth > box.clientWidth && !box.tabIndex)(document.querySelector('.scroll'))"
        )


def test_the_page_prints_on_light_paper_even_in_the_dark(browser, pages) -> None:
    with Visit(browser, pages["real"], color_scheme="dark") as visit:
        visit.page.emulate_media(media="print", color_scheme="dark")
        paper = "getComputedStyle(document.body).backgroundColor"
        assert visit.page.evaluate(paper) == "rgb(255, 255, 255)"
        assert visit.page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_in_light_and_dark(browser, pages, width) -> None:
    with Visit(browser, pages["explained"], width) as visit:
        assert visit.page.locator(".why li").count() == 1
        assert visit.page.locator(".pairs p.text").count() == 1
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            found = Axe().run(visit.page).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found] == []


def test_the_column_of_metrics_is_as_wide_as_its_words(browser, pages) -> None:
    for width, most in ((1280, 300), (390, 160)):  # 15 and 7.5 rem of words, and room around them
        with Visit(browser, pages["explained"], width) as visit:
            names = visit.page.locator(".verdicts th[scope=row]")
            assert names.first.bounding_box()["width"] <= most
            assert visit.page.locator(".verdicts .compared").first.bounding_box()["height"] < 120
