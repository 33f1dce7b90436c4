"""What a person does in a real browser: every flow without a console message or a request to another host."""

import csv
import io
import json
import re
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from waiting import until

import precedents as pr
from explorer.conftest import filled, picture_world, row_world, text_world

sys.path.insert(0, str(Path(__file__).parents[1]))
import chromium

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
DRIVER = "GL Driver Message"  # what drawing without a graphics card says of its own speed
PAGES = ["cases?list=all", "cases/3", "train/5", "train", "hubs", "map", "suspects", "audit", "try", "tags"]
WITHOUT = """if (location.search.includes("input")) {
  const own = HTMLCanvasElement.prototype.getContext;
  const none = { apply: (f, it, args) => (args[0] === "webgl2" ? null : Reflect.apply(f, it, args)) };
  HTMLCanvasElement.prototype.getContext = new Proxy(own, none);
}"""
INKED = """document.querySelector("#points").getContext("2d").getImageData(0, 0, 900, 500).data.some(Boolean)"""
SECONDS = 60_000  # milliseconds that a page may take
expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="module")
def explorers(tmp_path_factory) -> Iterator[dict]:
    torch.set_num_threads(1)
    made = {}
    for kind, world, metrics in (
        ("pictures", picture_world, ["cos_last", "dot_grad"]),
        ("texts", text_world, ["cos_x"]),
        ("rows", row_world, ["dot_grad"]),
    ):
        explainer, test = world()
        keep = tmp_path_factory.mktemp(kind)
        few = {"metrics": ["cos_grad", "dot_grad"], "criteria": ["identical_class(k=5)", "identical_instance"]}
        audit = (
            pr.audit(explainer.subject.classifier, explainer.subject.train, test, **few, k=5)
            if kind == "pictures"
            else None
        )
        made[kind] = pr.explore(explainer, test, metrics=metrics, keep=keep, audit=audit)
    yield {kind: filled(each) for kind, each in made.items()}
    for each in made.values():
        each.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=chromium.found(), args=["--headless", *chromium.FLAGS]
        )
        yield made
        made.close()


class Visit:
    """A page that notes what the console says and where requests go."""

    def __init__(self, browser: Browser, explorer, **options) -> None:
        self.explorer = explorer
        self.base = f"http://127.0.0.1:{explorer.door.port}/"
        self.context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, **options})
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_default_timeout(SECONDS)
        self.page.goto(explorer.address)

    def go(self, path: str) -> Page:
        self.go_to(path)
        return self.awaited()

    def go_to(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def awaited(self) -> Page:
        """When nothing on the page is waited for."""
        expect(self.page.locator("[data-awaits]")).to_have_count(0, timeout=SECONDS)
        return self.page

    def told(self) -> None:
        """Nothing was said, and nobody else was asked."""
        assert [text for text in self.said if DRIVER not in text] == []
        assert {url for url in self.asked if not url.startswith(self.base)} == set()
        self.said.clear()
        self.asked.clear()

    def close(self) -> None:
        self.context.close()
        self.told()


@pytest.fixture(scope="module")
def visits(browser, explorers) -> Iterator[dict[str, Visit]]:
    """One page for each kind, which tests share."""
    made = {kind: Visit(browser, explorer) for kind, explorer in explorers.items()}
    yield made
    for each in made.values():
        each.context.close()


@pytest.fixture
def visit(visits) -> Iterator[Visit]:
    yield visits["pictures"]
    visits["pictures"].told()


@pytest.fixture
def texts(visits) -> Iterator[Visit]:
    yield visits["texts"]
    visits["texts"].told()


@pytest.fixture
def rows(visits) -> Iterator[Visit]:
    yield visits["rows"]
    visits["rows"].told()


def untagged(visit: Visit) -> None:
    tags = visit.explorer.world.tags
    while tags.undo() is not None:
        pass
    visit.explorer.world.changed()


def refused(visit: Visit, status: str = "400") -> None:
    """The browser says by itself that an answer was a refusal, and nothing else is said."""
    assert len(visit.said) == 1
    assert status in visit.said.pop()


# The first page


def test_the_address_leads_to_the_wrong_predictions_without_the_token(visit) -> None:
    visit.page.goto(visit.explorer.address)
    assert visit.page.url == visit.base + "cases"
    expect(visit.page.locator("h1")).to_contain_text("of 60 right")
    expect(visit.page.locator(".lists [aria-current]")).to_contain_text("Wrong")


def test_the_first_page_says_how_far_the_metric_may_be_believed(visit) -> None:
    visit.go("cases")
    expect(visit.page.locator(".lead").first).to_contain_text(re.compile(r"passes \d of 2 criteria"))


def test_a_wrong_case_is_listed_with_its_first_precedent(visit) -> None:
    row = visit.go("cases").locator(".caselist > li").first
    place = int(row.get_attribute("data-instance").removeprefix("case-"))
    answers = visit.explorer.world.answers[visit.explorer.world.main]
    expect(row.locator(".because a")).to_have_text(f"#{int(answers.indices[place, 0])}")


@pytest.mark.parametrize(
    "name", ["wrong", "sure", "unsure", "odd", "unprecedented", "disagree", "copies", "tagged", "all"]
)
def test_every_work_list_opens_with_as_many_cases_as_it_counts(visit, name) -> None:
    page = visit.go(f"cases?list={name}&size=100")
    counted = int(page.locator(".lists [aria-current] .count").inner_text())
    assert page.locator(".caselist > li").count() == counted
    assert (page.locator(".empty").count() == 1) == (counted == 0)


def test_the_pages_of_a_list_are_numbered_and_back_works(visit) -> None:
    page = visit.go("cases?list=all&size=24")
    first = page.locator(".caselist .who a").first.inner_text()
    page.locator(".pages a", has_text="3").click()
    expect(page.locator(".pages [aria-current]")).to_have_text("3")
    assert page.locator(".caselist .who a").first.inner_text() != first
    page.go_back()
    assert page.locator(".caselist .who a").first.inner_text() == first


def test_the_confusion_matrix_is_a_filter(visit) -> None:
    page = visit.go("cases")
    cell = page.locator(".confusion .other a").first
    count = int(cell.inner_text())
    cell.click()
    expect(page.locator("#found-title small")).to_have_text(str(count))
    assert page.locator(".confusion .chosen").count() == 1


def test_classes_and_orders_are_chosen_by_forms(visit) -> None:
    page = visit.go("cases?list=all")
    page.locator("select[name=label]").select_option("2")
    page.locator("select[name=sort]").select_option("loss")
    page.locator(".search button").click()
    world = visit.explorer.world
    shown = [int(each.get_attribute("data-instance")[5:]) for each in page.locator(".caselist > li").all()]
    assert {int(world.test.labels[i]) for i in shown} == {2}
    losses = world.measures["case"].losses[shown]
    assert bool((losses[1:] <= losses[:-1]).all())


def test_a_case_is_found_by_its_place(visit) -> None:
    page = visit.go("cases?list=all")
    page.locator("#search").fill("17")
    page.locator("#search").press("Enter")
    expect(page.locator(".caselist .one a")).to_have_text("case 17")


def test_an_empty_list_says_where_to_look_next(visit) -> None:
    page = visit.go("cases?list=tagged")
    expect(page.locator(".empty")).to_contain_text("No case is in this list")
    page.locator(".empty a").last.click()
    expect(page.locator("#found-title")).to_contain_text("All")


# A case


def test_a_case_has_a_column_for_each_metric_with_its_verdict(visit) -> None:
    page = visit.go("cases/3")
    headings = [each.inner_text().split()[0] for each in page.locator("[data-metric] h2").all()]
    assert headings == list(visit.explorer.world.engines)
    shown = page.locator("#metric-1 [data-instance]").all()
    answers = visit.explorer.world.answers[headings[0]]
    assert [each.get_attribute("data-instance") for each in shown] == [
        f"train-{i}" for i in answers.indices[3, :6].tolist()
    ]


def test_a_failed_metric_is_folded_with_the_reason(visit) -> None:
    audit = visit.explorer.world.audit
    failed = [name for name in audit.metrics if audit.failed(name)]
    page = visit.go("cases/3")
    folded = page.locator("details.failed-metric")
    assert folded.count() == len(failed)
    for each in folded.all():
        assert each.get_attribute("open") is None
        assert "failed" in each.inner_text()


def test_the_same_instance_lights_up_in_all_columns(visit) -> None:
    page = visit.go("cases/3")
    places = [each.get_attribute("data-instance") for each in page.locator("[data-instance^=train]").all()]
    shared = next(place for place in places if places.count(place) > 1)
    page.locator(f"[data-instance={shared}] a").first.hover()
    expect(page.locator(".lit")).to_have_count(places.count(shared))


def test_a_case_taken_for_another_class_is_shown_beside_it(visit) -> None:
    world = visit.explorer.world
    page = visit.go("cases/3")
    page.locator(".why a").first.click()
    page.wait_for_selector("#taken")
    visit.awaited()
    label = int(re.search(r"as=(\d)", page.url)[1])
    found = pr.Explainer.explain(world.explainer, world.test.selected([3]), 6, labels=[label])
    shown = [
        each.get_attribute("data-instance")
        for each in page.locator("[aria-labelledby=taken] [data-instance]").all()
    ]
    assert shown == [f"train-{i}" for i in found.top.indices[0].tolist()]


def test_the_neighbours_of_a_case_are_a_click_away(visit) -> None:
    page = visit.go("cases/3")
    page.locator("[rel=next]").click()
    expect(page).to_have_url(re.compile("/cases/4$"))
    page.locator("[rel=prev]").click()
    expect(page).to_have_url(re.compile("/cases/3$"))


def test_a_command_and_python_can_be_copied(visit) -> None:
    page = visit.go("cases/3")
    page.locator("summary", has_text="Copy as Python").click()
    text = page.locator(".again details[open] code").inner_text()
    assert "pr.Explainer(model, train, 'cos_grad')" in text
    assert "test.selected([3])" in text
    page.locator(".again details[open] button").click()
    expect(page.locator(".again details[open] button")).to_have_text(re.compile("Copied|Selected"))


def test_wrong_case_odd_precedent_its_other_cases_tag_export(visit) -> None:
    page = visit.go("cases")
    page.locator(".caselist .one a").first.click()
    page.locator("#metric-1 .tile a").first.click()
    expect(page.locator("h1")).to_contain_text("Training instance")
    assert page.locator(".small").count() > 0
    page.locator(".tagging select[name=tag]").select_option("wrong label")
    page.locator(".tagging select[name=label]").select_option("1")
    page.locator(".tagging input[name=note]").fill('a note, with "quotes"')
    page.locator(".tagging button").click()
    expect(page.locator(".side .tag")).to_have_text("wrong label")
    place = int(page.url.rpartition("/")[2])
    page.locator(".top a", has_text="Tags").click()
    expect(page.locator(".tag-table tbody tr")).to_have_count(1)
    assert f"better = {{{place}: 1}}" in page.locator("pre").first.inner_text()
    with page.expect_download() as download:
        page.locator("a", has_text="CSV").click()
    row = next(iter(csv.DictReader(io.StringIO(Path(download.value.path()).read_text()))))
    assert (row["set"], row["place"], row["label"], row["note"]) == (
        "train",
        str(place),
        "1",
        'a note, with "quotes"',
    )
    assert row["training set"] == visit.explorer.world.subject.train.fingerprint()
    page.locator("[data-undo]").click()
    expect(page.locator(".empty")).to_contain_text("Nothing is tagged")


# Training instances


def test_a_training_instance_shows_whom_it_answers_right_and_wrong_apart(visit) -> None:
    world = visit.explorer.world
    place = next(iter(world.answers["cos_grad"].firsts))
    page = visit.go(f"train/{place}")
    cases, _ = world.answers["cos_grad"].answered_by(place)
    wrong = int(world.measures["case"].wrong[cases].sum())
    expect(page.locator("#wrong-title small")).to_have_text(str(wrong))
    expect(page.locator("#right-title small")).to_have_text(str(len(cases) - wrong))


def test_the_metric_of_a_training_instance_is_changed_by_a_link(visit) -> None:
    page = visit.go("train/5")
    page.locator(".metrics a", has_text="dot_grad").click()
    expect(page.locator(".metrics [aria-current]")).to_have_text("dot_grad")


def test_its_own_precedents_begin_with_itself(visit) -> None:
    page = visit.go("train/5")
    page.locator("a", has_text="Its own precedents").click()
    page.wait_for_selector("#own")
    visit.awaited()
    assert (
        page.locator("[aria-labelledby=own] [data-instance]").first.get_attribute("data-instance") == "train-5"
    )


def test_the_training_set_is_listed_by_loss(visit) -> None:
    page = visit.go("train?list=wrong")
    world = visit.explorer.world
    shown = [int(each.get_attribute("data-instance")[6:]) for each in page.locator(".small").all()]
    assert len(shown) == min(24, int(world.measures["train"].wrong.sum()))
    assert shown == sorted(shown, key=lambda i: -float(world.measures["train"].losses[i]))


def test_hubs_are_counted_and_lead_to_the_instance(visit) -> None:
    page = visit.go("hubs?metric=dot_grad")
    firsts = visit.explorer.world.answers["dot_grad"].firsts
    place, count = next(iter(firsts.items()))
    expect(page.locator(".small").first).to_contain_text(f"{count} case")
    page.locator(".small a").first.click()
    expect(page).to_have_url(re.compile(f"/train/{place}$"))


def test_suspect_accused_by_case_back(visit) -> None:
    page = visit.go("suspects")
    page.wait_for_selector(".suspects")
    before = page.url
    accused = page.locator(".why a").first
    accused.click()
    expect(page.locator("h1")).to_contain_text("Case")
    page.go_back()
    assert page.url == before
    expect(page.locator(".suspects > li").first).to_contain_text("neighbours have another label")


def test_a_cell_of_the_audit_leads_to_the_cases_that_failed_it(visit) -> None:
    page = visit.go("audit")
    expect(page.locator(".verdicts tbody tr")).to_have_count(2)
    cell = page.locator(".verdicts td a[href^=cases]").first
    count = int(cell.inner_text().split()[0])
    cell.click()
    expect(page.locator("#found-title small")).to_have_text(str(count))
    expect(page.locator("#found-title")).to_contain_text("that failed")
    page.locator(".found .note a", has_text="audit").click()
    expect(page.locator("h1")).to_contain_text("believed")


def test_a_cell_of_the_audit_leads_to_the_training_instances_that_failed_it(visit) -> None:
    page = visit.go("audit")
    cell = page.locator(".verdicts td a[href^=train]").first
    count = int(cell.inner_text().split()[0])
    cell.click()
    expect(page.locator(".lead")).to_contain_text("more relevant to one than it is to itself")
    expect(page.locator("main > .note")).to_have_text(f"{count} of them")


def test_the_whole_report_can_be_had(visit) -> None:
    page = visit.go("audit")
    with page.expect_download() as download:
        page.locator("a", has_text="The whole report").click()
    assert "Can these explanations be believed?" in Path(download.value.path()).read_text()


# Cases of one's own


def test_a_picture_of_ones_own_is_explained(visit, tmp_path) -> None:
    drawn = np.full((40, 40), 255, dtype=np.uint8)
    drawn[:20, :20] = 30
    Image.fromarray(drawn).save(tmp_path / "own.png")
    page = visit.go("try")
    page.locator("input[type=file]").set_input_files(tmp_path / "own.png")
    page.locator(".try-form button", has_text="Explain").click()
    page.wait_for_selector(".subject img")
    assert page.locator(".tiles .tile").count() == 24
    expect(page.locator(".subject img")).to_have_js_property("naturalWidth", 8)
    tried = visit.explorer.world.tries.get(1)
    x = torch.zeros(1, 8, 8)
    x[0, :4, :4] = 1 - 30 / 255
    assert int(tried.measures.predictions[0]) == int(visit.explorer.world.subject.cases(x).labels[0])


def test_a_case_is_drawn_on_and_stands_beside_what_it_was(visit) -> None:
    page = visit.go("cases/3")
    page.locator("a", has_text="Change it and compare").click()
    page.wait_for_selector("canvas[data-begun]")
    page.locator(".try-form button", has_text="Explain").click()
    expect(page.locator(".problem")).to_contain_text("Draw something")
    box = page.locator(".paint canvas").bounding_box()
    page.locator("[data-brush]").select_option("dark")
    page.locator("[data-width]").select_option("thick")
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.9 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.9 * box["height"], steps=5)
    page.mouse.up()
    page.locator(".try-form button", has_text="Explain").click()
    page.wait_for_url(re.compile(r"id=\d+&case=3"))
    expect(page.locator(".beside > section")).to_have_count(2)
    expect(page.locator("h2[id^=try]").first).to_contain_text("Case 3")
    world = visit.explorer.world
    before, after = (torch.tensor(each) for each in (world.shown("case", 3), world.tries.get(_id(page)).shown))
    assert bool((after[-1, 2:6] > 0.9).all())
    assert torch.allclose(after[:4].flatten(), before[:4].flatten(), atol=0.01)
    fresh = {each.get_attribute("data-instance") for each in page.locator(".tile.new").all()}
    first = {f"train-{i}" for i in world.answers["cos_grad"].indices[3, :8].tolist()}
    shown = page.locator(".beside > section").nth(1).locator("ol").first.locator("[data-instance]").all()
    other = {each.get_attribute("data-instance") for each in shown}
    assert other - first <= fresh


def _id(page: Page) -> int:
    return int(re.search(r"id=(\d+)", page.url)[1])


def test_a_sheet_of_white_is_drawn_on_and_begun_afresh(visit) -> None:
    page = visit.go("try")
    sheet = page.locator(".paint canvas")
    sheet.click(position={"x": 20, "y": 20})
    expect(sheet).to_have_attribute("data-drawn", "1")
    page.locator("[data-afresh]").click()
    assert sheet.get_attribute("data-drawn") is None


def test_a_file_that_is_no_picture_is_refused_in_words(visit, tmp_path) -> None:
    (tmp_path / "own.png").write_bytes(b"no picture")
    page = visit.go("try")
    page.locator("input[type=file]").set_input_files(tmp_path / "own.png")
    page.locator(".try-form button", has_text="Explain").click()
    expect(page.locator(".problem")).to_contain_text("PNG, JPEG or WebP")
    refused(visit)


def test_typed_text_edit_difference(texts) -> None:
    page = texts.go("try")
    page.locator("textarea").fill("the coach praised a late goal and the player")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"id=\d+"))
    first = page.locator("h2[id^=try]").inner_text()
    page.locator("textarea").fill("the bank raised its rate and shares fell")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"with=\d+"))
    expect(page.locator(".beside > section")).to_have_count(2)
    expect(page.locator("main")).to_contain_text("the prediction has changed")
    assert page.locator("h2[id^=try]").first.inner_text() == first


def test_a_text_of_the_test_set_is_edited_and_stands_beside_itself(texts) -> None:
    page = texts.go("try?case=3")
    said = page.locator("textarea").input_value()
    assert said == texts.explorer.world.shown("case", 3)
    page.locator("textarea").fill(f"{said} goal")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"id=\d+&case=3"))
    assert page.locator("h2[id^=try]").first.inner_text().startswith("Case 3")
    assert page.locator("textarea").input_value() == f"{said} goal"
    texts.go("try")
    expect(page.locator("main li").first).to_contain_text("your case")


def test_an_empty_text_is_refused_in_words(texts) -> None:
    page = texts.go("try")
    page.locator("textarea").fill("   ")
    page.locator(".try-form button").click()
    expect(page.locator(".problem")).to_contain_text("no word")
    refused(texts)


def test_texts_are_searched_by_their_words(texts) -> None:
    page = texts.go("cases?list=all")
    page.locator("#search").fill("goal")
    page.locator("#search").press("Enter")
    shown = page.locator(".caselist .one").all()
    assert shown
    assert all("goal" in each.inner_text() for each in shown)


def test_words_that_a_precedent_shares_with_the_case_are_bold(texts) -> None:
    page = texts.go("cases/3")
    bold = {each.inner_text() for each in page.locator("#metric-1 .tile b").all()}
    said = page.locator(".subject").inner_text()
    assert bold
    assert all(word in said for text in bold for word in text.split())


def test_a_row_is_changed_and_compared(rows) -> None:
    page = rows.go("try")
    page.locator("[data-column=proline]").fill("300")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"id=\d+"))
    expect(page.locator(".subject").first).to_contain_text("300")
    page.locator("[data-column=proline]").fill("1600")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"with=\d+"))
    expect(page.locator(".beside > section")).to_have_count(2)


def test_instances_are_called_by_their_ids_wherever_they_are_named(rows) -> None:
    world = rows.explorer.world
    page = rows.go("cases/3")
    before, here, after = (world.called("case", i) for i in (2, 3, 4))
    assert here == "case 7"  # of the frame's index
    assert page.locator("[rel=prev]").inner_text() == f"← {before}"
    assert page.locator("[rel=next]").inner_text() == f"{after} →"
    page.locator("a", has_text="Change it and compare").click()
    expect(page.locator(".lead a")).to_have_text(here)
    page.locator("[data-column=proline]").fill("300")
    page.locator(".try-form button").click()
    page.wait_for_url(re.compile(r"id=\d+&case=3"))
    expect(page.locator("main")).to_contain_text("Changed: proline from 1295 to 300.")
    expect(page.locator("h2[id^=try]").first).to_contain_text("Case 7")


def test_a_row_with_a_word_for_a_number_is_refused_in_words(rows) -> None:
    page = rows.go("try?case=0")
    page.locator("[data-column=alcohol]").fill("much")
    page.locator(".try-form button").click()
    expect(page.locator(".problem")).to_contain_text("the column holds numbers")
    refused(rows)


def test_a_precedent_of_a_row_shows_its_nearest_and_farthest_columns(rows) -> None:
    page = rows.go("cases/3")
    assert page.locator("#metric-1 .tile .near dt").count() > 0
    assert page.locator("#metric-1 .tile .far small", has_text="sd").count() > 0


# The map


def test_the_map_is_drawn_and_lasso_lists_and_tags(visit) -> None:
    page = visit.go("map")
    page.wait_for_selector("#map[data-drawn]")
    expect(page.locator(".lead")).to_contain_text("nearest on this map")
    page.locator("#lasso").click()
    box = page.locator("#points").bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in [*places[1:], places[0]]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    expect(page.locator("#count")).to_have_text("160")
    assert page.locator("#chosen li").count() == 160
    page.locator("#tag-all button").click()
    page.wait_for_url(re.compile("tags$"))
    expect(page.locator("h1 small")).to_have_text("160")
    untagged(visit)


def test_a_case_has_lines_to_its_precedents_on_the_map(visit) -> None:
    page = visit.go("map?case=3")
    page.wait_for_selector("#map[data-drawn]")
    answers = visit.explorer.world.answers[visit.explorer.world.main]
    shown = [each.inner_text().split()[0] for each in page.locator("#chosen li").all()]
    assert shown == [f"#{i}" for i in answers.indices[3, :10].tolist()]
    expect(page.locator("#chosen li").first).to_contain_text(f"{float(answers.scores[3, 0]):+.3f}")
    expect(page.locator("#ranked")).to_contain_text("in the middle of these precedents")
    page.locator("#view").click()
    expect(page.locator("#ranked")).to_be_hidden()


def test_the_map_moves_and_lists_by_keyboard_alone(visit) -> None:
    page = visit.go("map")
    page.wait_for_selector("#map[data-drawn]")
    page.locator("#points").focus()
    for key in ("+", "+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    page.locator("#view").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#count")).to_have_text(re.compile(r"\d"))
    listed = int(page.locator("#count").inner_text())
    assert 0 < listed < 160
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"train/\d+$"))


def test_the_map_is_coloured_by_loss(visit) -> None:
    page = visit.go("map")
    page.wait_for_selector("#map[data-drawn]")
    page.locator("#colour").select_option("loss")
    expect(page.locator(".legend")).to_contain_text("high loss")


def test_without_webgl_a_plain_canvas_draws(visit) -> None:
    page = visit.go("map?by=input")
    page.wait_for_selector("#map[data-drawn]")
    page.add_init_script(WITHOUT)
    page.reload()
    page.wait_for_selector("#map[data-drawn]")
    expect(page.locator("#drawing")).to_contain_text("no WebGL: 160 of the points")
    inked = page.evaluate(INKED)
    assert inked


# Keyboard, states, themes, sizes


def test_everything_by_keyboard_alone(visit) -> None:
    page = visit.go("cases?list=all")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Case")
    page.wait_for_load_state()
    page.keyboard.press("2")
    assert page.evaluate("document.activeElement.closest('[data-metric]').id") == "metric-2"
    page.keyboard.press("Backspace")
    page.wait_for_url(re.compile("list=all"))
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("x")
    assert page.locator("#search").input_value() == "x"


def test_an_instance_is_tagged_by_a_key_and_listed(visit) -> None:
    page = visit.go("cases?list=all")
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("x")
    expect(page.locator(".caselist .tag").first).to_have_text("look again")
    page.goto(visit.base + "cases?list=tagged")
    expect(page.locator(".caselist > li")).to_have_count(1)
    untagged(visit)


def test_the_keys_are_listed_and_closed(visit) -> None:
    page = visit.go("cases")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_the_skip_link_comes_first(visit) -> None:
    page = visit.go("cases")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))


def test_reading_works_without_javascript(browser, explorers) -> None:
    visit = Visit(browser, explorers["pictures"], java_script_enabled=False)
    visit.page.goto(visit.base + "cases?list=all")
    visit.page.locator(".caselist .one a").first.click()
    visit.page.locator("#metric-1 .tile a").first.click()
    visit.page.locator(".small a").first.click()
    expect(visit.page.locator("h1")).to_contain_text("Case")
    for path in ("hubs", "train", "tags", "audit", "suspects"):
        assert visit.page.goto(visit.base + path).status == 200
    visit.close()


def test_a_page_that_does_not_exist_says_so(visit) -> None:
    assert visit.page.goto(visit.base + "cases/60").status == 404
    assert "from 0 to 59" in visit.page.content()
    refused(visit, "404")


def test_it_works_behind_a_prefix(browser, explorers) -> None:
    """As behind Jupyter's proxy, which takes the prefix off."""
    visit = Visit(browser, explorers["pictures"])

    def proxied(route) -> None:
        answer = route.fetch(url=route.request.url.replace("/proxy/8123/", "/"))
        route.fulfill(response=answer)

    visit.context.route("**/proxy/8123/**", proxied)
    page = visit.page
    page.goto("about:blank")  # whose scripts ask for nothing any more
    visit.asked.clear()
    page.goto(visit.base + "proxy/8123/cases?list=all")
    page.locator(".caselist .one a").first.click()
    page.locator("#metric-1 .tile a").first.click()
    page.locator(".top a", has_text="Hubs").click()
    expect(page).to_have_url(visit.base + "proxy/8123/hubs")
    page.wait_for_function("() => document.querySelector('.small img')?.naturalWidth > 0")
    assert [url for url in visit.asked if "/proxy/8123/" not in url and url != "about:blank"] == []
    page.wait_for_load_state("networkidle")  # no picture is under way
    page.goto("about:blank")
    visit.context.unroute_all(behavior="ignoreErrors")
    visit.close()


def test_a_notebook_shows_it_in_a_frame_with_a_link_beneath(browser, explorers, tmp_path) -> None:
    explorer = explorers["rows"]
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>notebook</title>{explorer._repr_html_()}")
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.goto(f"http://localhost:{server.server_port}/notebook.html")
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_contain_text("right")
    frame.locator(".top a", has_text="Hubs").click()
    expect(frame.locator("h1")).to_have_text("Hubs")
    with context.expect_page() as opened:
        page.locator("a", has_text="page of its own").click()
    expect(opened.value.locator("h1")).to_contain_text("right")
    context.close()
    server.shutdown()
    server.server_close()


def test_work_that_is_under_way_is_told_and_the_page_follows(browser) -> None:
    explainer, test = picture_world(seed=3)
    explorer = pr.explore(explainer, test)
    try:
        filled(explorer)
        held = explorer.world.jobs.ask("fill", "precedents by cos_grad", _held, lasting=True)
        explorer.world.answers.clear()
        explorer.world.changed()
        visit = Visit(browser, explorer)
        expect(visit.page.locator("#progress")).to_contain_text("precedents by cos_grad: 32 of 60")
        assert visit.page.locator("[data-waiting]").count() > 0
        explorer.world.store.close()
        explorer.world.jobs.ask("refill", "again", explorer.world.fill, lasting=True)
        held.ending = True
        expect(visit.page.locator(".because a").first).to_be_visible(timeout=SECONDS)
        expect(visit.page.locator("#progress")).to_be_hidden()
        visit.close()
    finally:
        explorer.stop()


def _held(job) -> None:
    while not job.ending:
        job.step(32, 60)
        time.sleep(0.02)


def test_nine_tabs_follow_the_work_and_another_one_opens_meanwhile(browser) -> None:
    explorer = filled(pr.explore(*picture_world(seed=3)))
    try:
        held = explorer.world.jobs.ask("fill", "precedents by cos_grad", _held, lasting=True)
        explorer.world.changed()
        visit = Visit(browser, explorer)
        tabs = [visit.context.new_page() for _ in range(9)]
        for i, tab in enumerate(tabs):
            tab.goto(f"{visit.base}cases/{i}" + (f"?as={i % 4}" if i < 7 else ""))
            expect(tab.locator("#progress")).to_contain_text("32 of 60")
        expect(visit.go_to("hubs").locator("h1")).to_have_text("Hubs")
        held.ending = True
        for tab in tabs:
            expect(tab.locator("#progress")).to_be_hidden()
        visit.close()
    finally:
        explorer.stop()


def test_a_page_that_is_left_is_not_waited_for_and_a_cancelled_job_is_told(browser, monkeypatch) -> None:
    monkeypatch.setattr("precedents.explorer.jobs.SOON", 0.1)
    explorer = filled(pr.explore(*picture_world(seed=3)))
    try:
        jobs = explorer.world.jobs
        visit = Visit(browser, explorer)
        hold = jobs.ask("hold", "held", _until_cancelled)
        visit.go_to("cases/3?as=1").wait_for_selector("[data-awaits]")
        (asked,) = [job for job in jobs.every.values() if job.title.startswith("case 3")]
        until(lambda: asked.until is not None)
        visit.go_to("suspects")
        (suspects,) = [
            job for job in jobs.every.values() if isinstance(job.key, tuple) and job.key[0] == "suspects"
        ]
        until(lambda: asked.abandoned)
        visit.page.locator("[data-cancel]").click()
        expect(visit.page.locator("[data-awaits]")).to_have_text("It was cancelled.")
        jobs.cancel(hold)
        until(lambda: asked.state == "cancelled")
        assert suspects.state == "cancelled"
        visit.close()
    finally:
        explorer.stop()


def _until_cancelled(job) -> None:
    while True:
        job.step(0, 1)
        time.sleep(0.02)


def test_a_server_that_is_gone_is_told_and_one_that_is_back_is_used(browser, tmp_path) -> None:
    explainer, test = picture_world(seed=4)
    first = filled(pr.explore(explainer, test, keep=tmp_path))
    port = first.door.port
    visit = Visit(browser, first)
    visit.go("cases/3")
    first.stop()
    visit.page.locator(".tagging button").click()
    expect(visit.page.locator("#gone")).to_be_visible()
    second = filled(pr.explore(explainer, test, keep=tmp_path, port=port))
    try:
        assert visit.page.goto(visit.base + "cases/3").status == 401
        visit.page.goto(second.address)
        expect(visit.page.locator("h1")).to_contain_text("of 60 right")
        assert second.world.differing == []
    finally:
        visit.context.close()
        second.stop()


def test_another_model_behind_the_same_folder_is_told_and_answered_anew(browser, tmp_path) -> None:
    explainer, test = picture_world(seed=5)
    filled(pr.explore(explainer, test, keep=tmp_path)).stop()
    other, _ = picture_world(seed=6)
    explorer = filled(pr.explore(other, test, keep=tmp_path))
    try:
        visit = Visit(browser, explorer)
        expect(visit.page.locator(".differing")).to_contain_text("model")
        found = other.explain(explorer.world.test.selected([3]), 5).top.indices
        assert explorer.world.answers["cos_grad"].indices[3, :5].tolist() == found[0].tolist()
        visit.close()
    finally:
        explorer.stop()


AXE = [("pictures", path) for path in PAGES]
AXE += [
    (kind, path)
    for kind in ("texts", "rows")
    for path in ("cases?list=all&size=3", "cases/3?k=2", "try?case=3")
]


@pytest.mark.parametrize(("kind", "path"), AXE)
def test_axe_finds_nothing_in_either_theme(visits, kind, path) -> None:
    page = visits[kind].go(path)
    try:
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, {"runOnly": ["color-contrast"]}) == []  # nothing else depends on the theme
    finally:
        page.emulate_media(color_scheme="light")
    visits[kind].told()


def violations(page: Page, options: dict | None = None) -> list[tuple[str, str, str]]:
    found = Axe().run(page, options=options).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"][:120], each["nodes"][0]["failureSummary"][:300]) for each in found
    ]


@pytest.mark.parametrize("kind", ["pictures", "texts", "rows"])
def test_nothing_is_wider_than_a_phone(browser, explorers, kind) -> None:
    visit = Visit(browser, explorers[kind], viewport=NARROW)
    for path in PAGES if kind == "pictures" else ["cases?list=all", "cases/3", "try?case=3"]:
        page = visit.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
    visit.close()


def test_two_hundred_percent_of_zoom_loses_nothing(browser, explorers) -> None:
    visit = Visit(browser, explorers["pictures"], viewport={"width": 720, "height": 450}, device_scale_factor=2)
    for path in ("cases", "cases/3", "map", "audit", "tags"):
        page = visit.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 720, path
    visit.close()


def test_what_pages_load_is_small(visit) -> None:
    sizes: dict[str, int] = {}
    visit.page.on(
        "response",
        lambda answer: (
            sizes.update({answer.url.rpartition("/")[2]: len(answer.body())}) if ".js" in answer.url else None
        ),
    )
    visit.go("cases")
    assert list(sizes) == ["explorer.js"]
    assert sizes["explorer.js"] <= 60_000
    visit.go("map")
    visit.page.wait_for_selector("#map[data-drawn]")
    assert sizes["map.js"] <= 25_000


def test_json_of_a_page_has_the_same_cases(visit) -> None:
    page = visit.go("cases?list=unprecedented")
    shown = [int(each.get_attribute("data-instance")[5:]) for each in page.locator(".caselist > li").all()]
    found = json.loads(page.request.get(visit.base + "api/v1/cases?list=unprecedented").text())
    assert [each["place"] for each in found["cases"]] == shown
