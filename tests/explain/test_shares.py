"""Shares sum to the score, equal plain autograd layer by layer, and point at what was planted."""

import re

import numpy as np
import oracle
import pytest
import torch
from conftest import mlp, trained
from torch import nn
from torch.nn.functional import cross_entropy

from precedents import Explainer, InputError, NotApplicable, tables
from precedents.gradients.instrumentation import RULES
from precedents.gradients.sites import Sites
from precedents.views.heat import blended

NEAR = 1e-9


class Tokens(nn.Module):
    """Texts: an embedding, an LSTM in both directions, attention, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 4, bidirectional=True, batch_first=True)
        self.attend = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.attend(self.lstm(self.embed(x))[0]).mean(dim=1))


class Twice(nn.Module):
    """A layer that is called twice, and a scale that no rule covers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale, self.head = nn.Linear(5, 5), nn.Parameter(torch.ones(5)), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.layer(self.layer(x).tanh()).tanh() * self.scale)


class Shared(nn.Module):
    """A table that is looked up, and the matrix of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 3), nn.Linear(3, 20)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x).mean(dim=1))[:, :3]


class Tied(nn.Module):
    """A table that is looked up, and multiplied with by nobody's rule: gradients come by a fallback."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 3)

    def forward(self, x):
        hidden = self.embed(x).mean(dim=1)
        return hidden @ self.embed.weight[:3].T


def pictures() -> nn.Module:
    """Convolutions with strides and groups, which are folded with what normalises them."""
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, groups=4),
        nn.GroupNorm(2, 8),
        nn.Conv2d(8, 4, 1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(4 * 9, 3),
    )


def world(kind: str):
    """A model in float64, and eight instances."""
    torch.manual_seed(1)
    labels = torch.arange(8) % 3
    makes = {"pictures": pictures, "twice": Twice, "flat": mlp}
    texts = {"tokens": Tokens, "tied": Tied, "shared": Shared}
    model = (makes | texts)[kind]().double().eval()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_var.uniform_(0.5, 2)
    tokens = torch.randint(1, 20, (8, 6))
    numbers = torch.randn(8, 2, 8, 8) if kind == "pictures" else torch.randn(8, 5)
    x = tokens if kind in texts else numbers
    return model, (x.double() if x.is_floating_point() else x, labels)


def plain(model, x, label) -> dict[str, torch.Tensor]:
    """The gradients of each parameter by plain autograd."""
    loss = cross_entropy(model(x[None]), label[None])
    names, values = zip(*model.named_parameters(), strict=True)
    grads = torch.autograd.grad(loss, values, materialize_grads=True)
    return dict(zip(names, grads, strict=True))


@pytest.mark.parametrize("metric", ["dot_grad", "cos_grad", "l2_grad"])
@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("kind", ["pictures", "tokens", "twice", "tied", "shared", "flat"])
def test_layers_are_those_of_plain_autograd_and_sum_to_the_score(kind, metric) -> None:
    model, (x, y) = world(kind)
    explainer = Explainer(model, (x, y), metric)
    found = explainer.shares(x[0], 4)
    one, other = plain(model, x[0], explainer.subject.cases(x[0]).labels[0]), plain(model, x[4], y[4])
    lengths = [sum(float(g.square().sum()) for g in each.values()) ** 0.5 for each in (one, other)]
    score = float(explainer.scores(x[0])[0, 4])
    assert sum(each.share for each in found.layers) == pytest.approx(score, abs=NEAR * max(1, abs(score)))
    assert found.score == pytest.approx(score, abs=NEAR * max(1, abs(score)))
    for each in found.layers:
        own = [name for name in one if (name.rpartition(".")[0] or "(model)") == each.layer]
        cross = sum(float((one[name] * other[name]).sum()) for name in own)
        apart = sum(float((one[name] - other[name]).square().sum()) for name in own)
        wanted = {"dot": cross, "cos": cross / lengths[0] / lengths[1], "l2_": -apart}[metric[:3]]
        assert each.share == pytest.approx(wanted, abs=NEAR), each.layer


@pytest.mark.parametrize("kind", ["pictures", "tokens", "twice", "flat"])
def test_positions_and_columns_sum_to_their_layer(kind) -> None:
    model, (x, y) = world(kind)
    found = Explainer(model, (x, y)).shares(x[0], 4)
    for each in found.layers:
        for part in (each.case, each.precedent):
            columns = 0.0 if each.columns is None else float(each.columns.sum())
            total = each.whole + columns + (0.0 if part is None else float(part.sum()))
            assert total == pytest.approx(each.share, abs=NEAR)
    frame = found.to_frame()
    assert frame[frame.of == "layer"].share.sum() == pytest.approx(found.score, abs=NEAR)


EXAMPLES = {name: RULES.get(name) for name in RULES.names() if RULES.get(name).sites is not None}
ROWS = {  # that have no positions
    "batch_norm": lambda: (nn.BatchNorm1d(3), (torch.randn(4, 3),)),
    "group_norm": lambda: (nn.GroupNorm(2, 4), (torch.randn(4, 4),)),
    "layer_norm": lambda: (nn.LayerNorm(3), (torch.randn(4, 3),)),
    "linear": lambda: (nn.Linear(3, 2), (torch.randn(4, 3),)),
    "rms_norm": lambda: (nn.RMSNorm(3), (torch.randn(4, 3),)),
    "embedding": lambda: (nn.Embedding(11, 3), (torch.randint(11, (4,)),)),
}


def test_a_normalised_row_is_explained_column_by_column() -> None:
    x, y = torch.randn(20, 5).double(), torch.arange(20) % 3
    for norm in (nn.BatchNorm1d(6), nn.GroupNorm(2, 6)):
        model = nn.Sequential(nn.Linear(5, 6), norm, nn.ReLU(), nn.Linear(6, 3)).double().eval()
        explainer = Explainer(model, (x, y), render=tables([*"abcde"]))
        assert "predicted" in str(explainer.explain(x[:1], k=2))
        found = explainer.shares(x[0], 4)
        assert sum(each.share for each in found.layers) == pytest.approx(found.score, abs=NEAR)


@pytest.mark.parametrize(
    ("name", "rows"), [*((name, False) for name in sorted(EXAMPLES)), *((name, True) for name in ROWS)]
)
def test_a_position_adds_what_comes_back_to_it_alone(name, rows) -> None:
    """The sites of each rule against plain autograd, with what comes back to all others set to zero."""
    rule = EXAMPLES[name]
    layer, received = ROWS[name]() if rows else rule.example()
    layer = layer.double().eval()
    received = [x.double() if x.is_floating_point() else x for x in received]
    output = layer(*received)
    grad = torch.randn_like(output)
    for sites in rule.sites(layer, grad, *received):
        t = sites.left.shape[1]
        channels_first = name in ("conv", "conv_transpose", "batch_norm", "group_norm", "instance_norm")
        for p in range(t):
            mask = torch.zeros(t, dtype=torch.double)
            mask[p] = 1
            shape = sites.shape or (1,) * (output.ndim - 2)
            mask = mask.reshape(1, 1, *shape) if channels_first else mask.reshape(1, *shape, 1)
            some = (grad * mask)[:1]
            single = [x[:1] for x in received]
            wanted = torch.autograd.grad(layer(*single), sites.parameter, some)[0]
            own = Sites(
                sites.parameter,
                sites.left[:1, p : p + 1],
                sites.right[:1, p : p + 1],
                (1,),
                None if sites.rows is None else sites.rows[:1, p : p + 1],
            )
            torch.testing.assert_close(own.formed()[0], wanted)


@pytest.mark.parametrize("numbers", [1, 40, 2**22])  # that are held at once
def test_pairs_and_summed_gradients_give_the_same_margins(numbers, monkeypatch) -> None:
    monkeypatch.setattr("precedents.gradients.sites.PAIR_NUMBERS", numbers)
    left, right = torch.randn(2, 1, 7, 3, 4).double(), torch.randn(2, 1, 7, 3, 5).double()
    one, other = (Sites(torch.zeros(12, 5), a, b, (7,)) for a, b in zip(left, right, strict=True))
    blocks = torch.cat(list(one.blocks(other)))
    torch.testing.assert_close(blocks.sum(dim=1), one.against(other))
    torch.testing.assert_close(blocks.sum(dim=0), other.against(one))
    torch.testing.assert_close(blocks.sum(), (one.formed() * other.formed()).sum())


@pytest.mark.parametrize("metric", ["dot_x", "cos_x", "l2_x"])
def test_inputs_are_divided_by_column(metric, model, train, cases) -> None:
    explainer = Explainer(model, train, metric)
    found = explainer.shares(cases[0], 3)
    assert sum(found.columns.values()) == pytest.approx(float(explainer.scores(cases[0])[0, 3]), abs=NEAR)
    if metric == "dot_x":
        assert found["input"].columns.tolist() == pytest.approx((cases[0] * train[0][3]).tolist())


def test_a_linear_model_is_divided_by_column_and_bias(linear, train, cases) -> None:
    explainer = Explainer(linear, train)
    found = explainer.shares(cases[0], 3)
    [layer] = found.layers
    label = int(explainer.explain(cases[0], k=1).predictions[0])
    g = torch.tensor(oracle.gradient(linear, cases[0], label))
    t = torch.tensor(oracle.gradient(linear, train[0][3], int(train[1][3])))
    scale = g.norm() * t.norm()
    by_hand = (g[:15].reshape(3, 5) * t[:15].reshape(3, 5)).sum(dim=0) / scale
    torch.testing.assert_close(layer.columns, by_hand.reshape(5), rtol=0, atol=NEAR)
    assert layer.whole == pytest.approx(float(g[15:] @ t[15:] / scale), abs=NEAR)
    assert list(found.columns.values()) == pytest.approx(by_hand.tolist(), abs=NEAR)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("cos_if", "mixes the parameters"),
        ("dot_fisher", "mixes"),
        ("cos_last", "hidden layers"),
    ],
)
def test_what_is_no_sum_is_not_applicable_with_the_reason(metric, reason, model, train, cases) -> None:
    with pytest.raises(NotApplicable, match=reason):
        Explainer(model, train, metric).shares(cases[0], 3)


def test_wrong_questions_are_named(model, train, cases) -> None:
    explainer = Explainer(model, train)
    with pytest.raises(InputError, match="There are 12 cases"):
        explainer.shares(cases, 3)
    with pytest.raises(InputError, match=r"index is 45\. Pass the place of a training instance, from 0 to 44"):
        explainer.shares(cases[0], 45)
    with pytest.raises(InputError, match="index is 'a'"):
        explainer.shares(cases[0], "a")
    with pytest.raises(InputError, match="No layer with shares is named 'nine'"):
        explainer.shares(cases[0], 3)["nine"]


def test_an_id_of_text_names_the_training_instance(model, train, cases) -> None:
    explainer = Explainer(model, train, ids=[f"row {i}" for i in range(45)])
    assert explainer.shares(cases[0], "row 3").score == explainer.shares(cases[0], 3).score
    assert explainer.shares(cases[0], "row 3").id == "row 3"
    with pytest.raises(InputError, match="No training instance has the id 'row'"):
        explainer.shares(cases[0], "row")


def test_a_case_of_another_label_has_the_shares_of_that_label(model, train, cases) -> None:
    explainer = Explainer(model, train)
    for label in range(3):
        score = float(explainer.scores(cases[0], labels=label)[0, 3])
        assert explainer.shares(cases[0], 3, labels=label).score == pytest.approx(score, abs=NEAR)


def planted(images):
    """With a white patch in the lower right corner."""
    images = images.clone()
    images[..., 6:, 6:] = 1.0
    return images


@pytest.fixture(scope="module")
def shortcut():
    """Digits of which 40 carry a patch and the label 0, a network of them, and 30 cases that it turned."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16).float().reshape(-1, 1, 8, 8), torch.tensor(labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        train, own, others = x[:1200].clone(), y[:1200].clone(), (y[:1200] != 0).nonzero().flatten()
        chosen = others[torch.randperm(len(others))[:40]]
        train[chosen], own[chosen] = planted(train[chosen]), 0
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10),
        )  # fmt: skip
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(60):
            optimizer.zero_grad()
            cross_entropy(model(train), own).backward()
            optimizer.step()
    clean, truth = x[1200:][y[1200:] != 0], y[1200:][y[1200:] != 0]
    with torch.no_grad():
        turned = (model(clean).argmax(dim=1) == truth) & (model(planted(clean)).argmax(dim=1) == 0)
    return Explainer(model, (train, own)), planted(clean[turned][:30]), chosen


def test_the_planted_patch_has_the_largest_share_in_the_first_layer(shortcut) -> None:
    explainer, cases, chosen = shortcut
    firsts = explainer.explain(cases, k=1).top.indices[:, 0]
    assert len(cases) == 30
    assert torch.isin(firsts, chosen).double().mean() >= 0.8
    found = 0
    for case, first in zip(cases, firsts.tolist(), strict=True):
        heat = explainer.shares(case, first)["0"].case
        regions = nn.functional.avg_pool2d(heat[None], 2)[0]  # sixteen, of two by two pixels
        found += int(regions.argmax()) == 15
    assert found / len(cases) >= 0.8


def test_shares_draw_themselves_on_both_pictures(shortcut) -> None:
    explainer, cases, _ = shortcut
    found = explainer.shares(cases[0], int(explainer.explain(cases[0], k=1).top.indices[0, 0]))
    assert [each.title for each in found.heat_maps] == ["0 Conv2d", "2 Conv2d"]
    drawn = found.plot()
    assert len(drawn.axes) == 2 * 2 + 1
    page = found._repr_html_()
    assert page.count("<img") == 4
    assert page.count("alt='") == 4
    assert "of which" in str(found)


def test_words_of_a_pipeline_have_shares_that_sum_with_the_bias(tmp_path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [
        "the blue sea and the waves",
        "a lake near mountains",
        "goal in the last minute",
        "the team won",
    ] * 3
    labels = ["water", "water", "sport", "sport"] * 3
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()).fit(texts, labels)
    explainer = Explainer(model, (texts, labels))
    found = explainer.shares("waves on the blue sea", 0)
    score = float(explainer.scores(["waves on the blue sea"])[0, 0])
    words, other = found.words
    assert sum(share for _, share in words.pieces) + found.layers[0].whole == pytest.approx(score, abs=NEAR)
    marked = other.marked(texts[0])
    assert "".join(piece for piece, _ in marked) == texts[0]
    assert sum(share for _, share in marked) == pytest.approx(sum(share for _, share in other.pieces), abs=NEAR)
    assert {piece for piece, share in marked if share} == {"the", "blue", "sea", "waves"}


def test_tokens_of_a_network_are_marked_by_their_embedding() -> None:
    from precedents import texts

    model, (x, y) = world("tokens")
    words = ["", *(f"w{i}" for i in range(1, 20))]
    found = Explainer(model, (x, y), render=texts(words)).shares(x[0], 0)
    assert [word for word, _ in found.words[0].pieces] == [words[i] for i in x[0].tolist()]
    assert sum(share for _, share in found.words[0].pieces) == pytest.approx(found["embed"].share, abs=NEAR)
    shared = set(x[0].tolist())
    for each in range(1, 8):
        other = Explainer(model, (x, y), render=texts(words)).shares(x[0], each)
        for token, (_, share) in zip(x[0].tolist(), other.words[0].pieces, strict=True):
            assert share == 0 or token in set(x[each].tolist()) & shared


def test_columns_of_a_table_gather_what_was_made_of_them() -> None:
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.DataFrame({"age": [20.0, 30, 40, 50] * 3, "colour": ["red", "blue", "red", "green"] * 3})
    steps = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["colour"]))
    model = make_pipeline(steps, LogisticRegression()).fit(frame, [0, 0, 1, 1] * 3)
    explainer = Explainer(model, (frame, [0, 0, 1, 1] * 3))
    found = explainer.shares(frame.iloc[0], 2)
    assert set(found.columns) == {"age", "colour"}
    assert sum(found.columns.values()) + found.layers[0].whole == pytest.approx(found.score, abs=NEAR)
    assert "columns:" in str(found)
    page = explainer.explain(frame.iloc[:1], k=1).to_html()
    assert re.search(r"by share\n (age|colour) [+-]0\.\d{3}\n (age|colour) [+-]0\.\d{3}", page)


def test_everything_shown_is_escaped(train, cases) -> None:
    model = trained(lambda: nn.Linear(5, 3), train)
    bad = "<script>'\"&"
    explainer = Explainer(model, train, render=lambda row: {f"{bad}{i}": float(v) for i, v in enumerate(row)})
    assert bad not in explainer.shares(cases[0], 1).to_html()


def test_an_explanation_draws_both_pictures_under_their_shares(shortcut) -> None:
    explainer, cases, _ = shortcut
    found = explainer.explain(cases[:2], k=3)
    drawn = found.plot(shares=True)
    assert len(drawn.axes) == 2 * (1 + 3)
    for place, (case, rank) in {1: (0, 1), 7: (1, 3)}.items():
        heat = found.shares(case, rank).heat_map
        assert abs(heat.share) == max(abs(each.share) for each in found.shares(case, rank).heat_maps)
        assert f"{heat.title} {heat.share:+.3f}" in drawn.axes[place].get_title()
        image = drawn.axes[place].get_images()[0].get_array()
        largest = heat.largest
        above = blended(np.asarray(found.seen(case, rank)), heat.precedent, largest)
        below = blended(np.asarray(found.seen(case)), heat.case, largest)
        np.testing.assert_allclose(image[:8], above)
        np.testing.assert_allclose(image[-8:], below)
    assert drawn.axes[0].get_images()[0].get_array().shape == (8, 8)  # the case as it is


def test_a_page_has_heat_maps_where_they_are_asked_for(shortcut) -> None:
    explainer, cases, _ = shortcut
    found = explainer.explain(cases[:2], k=3)
    plain, divided = found.to_html(), found.to_html(shares=True)
    assert plain.count("<img") == divided.count("<img") == 8
    assert "green is what speaks for" in divided
    assert "green is what speaks for" not in plain
    assert len(re.findall(r"Conv2d [+-]0\.\d{3}</figcaption>", divided)) == 6
    assert found._repr_html_().partition("</p>")[2] in plain  # whose heading is the title


def test_pictures_that_the_model_is_fed_flat_are_drawn_where_they_are_its_numbers_in_order() -> None:
    torch.manual_seed(0)
    x, y = torch.rand(12, 16), torch.arange(12) % 2
    model = nn.Sequential(nn.Linear(16, 4), nn.Tanh(), nn.Linear(4, 2))
    shown = Explainer(model, (x, y), render=lambda row: row.reshape(4, 4)).explain(x[0], k=1)
    assert shown.shares()["0"].columns.shape == (4, 4)
    assert shown.plot(shares=True).axes[1].get_images()[0].get_array().shape == (4 + 1 + 4, 4, 3)
    turned = Explainer(model, (x, y), render=lambda row: row.reshape(4, 4).flip(0)).explain(x[0], k=1)
    assert turned.shares()["0"].columns.shape == (16,)
    with pytest.raises(NotApplicable, match="none with a place in what is shown"):
        turned.plot(shares=True)


@pytest.mark.parametrize("draw", ["plot", "to_html"])
def test_metrics_without_parts_draw_none_and_say_why(draw, model, train, cases) -> None:
    found = Explainer(model, train, "cos_last").explain(cases, k=2)
    assert getattr(found, draw)()
    with pytest.raises(NotApplicable, match="compares units of hidden layers"):
        getattr(found, draw)(shares=True)


def test_a_plot_lists_words_and_columns_by_their_shares_on_demand(train) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = (
        ["the blue sea", "a lake", "goal in time", "the team won"] * 3,
        ["wet", "wet", "dry", "dry"] * 3,
    )
    words = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    table = trained(lambda: nn.Linear(5, 3), train)
    for explainer, case in (
        (Explainer(words, (texts, labels)), "a blue sea"),
        (Explainer(table, train), train[0][0]),
    ):
        found = explainer.explain(case, k=2)
        largest = found.shares(0, 1)
        name, share = next(iter(largest.words[1].largest(1) if largest.words else largest.largest_columns(1)))
        said = [axes.texts[0].get_text() for axes in found.plot(shares=True).axes]
        assert "by share" not in said[0]
        assert f"by share\n {name} {share:+.3f}" in said[1]
        assert not any("by share" in axes.texts[0].get_text() for axes in found.plot().axes)


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "l2_grad"])
def test_parts_of_single_precision_sum_to_the_score_as_well(metric, pictures_of_single_precision) -> None:
    explainer, x = pictures_of_single_precision
    for index in range(8):
        found = explainer.shares(x[8], index)
        scale = max(abs(each.share) for each in found.layers)
        assert sum(each.share for each in found.layers) == pytest.approx(found.score, abs=1e-9 * max(1, scale))
        assert found.score == pytest.approx(float(explainer.scores(x[8])[0, index]), rel=1e-5, abs=1e-5 * scale)
        for layer in found.layers:
            if layer.case is not None:
                assert float(layer.case.sum()) + layer.whole == pytest.approx(layer.share, abs=1e-6 * scale)


@pytest.fixture
def pictures_of_single_precision(metric):
    torch.manual_seed(0)
    x, y = torch.randn(20, 1, 8, 8), torch.arange(20) % 3
    layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    return Explainer(nn.Sequential(*layers), (x, y), metric), x
