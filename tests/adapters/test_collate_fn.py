"""Text classifiers whose batches a collate_fn of the user's own makes."""

import json
import re
import warnings
from functools import cache
from threading import Thread

import pytest
import torch
from collating import (
    KINDS,
    TEST,
    TRAIN,
    Bag,
    Masked,
    OfList,
    Recurrent,
    listed,
    with_lengths,
    with_mask,
    with_offsets,
)
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import precedents as pr

SOME = ("lengths", "sorted", "packed", "offsets, labels first", "nested")
each = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
some = pytest.mark.parametrize("kind", [KINDS[name] for name in SOME], ids=SOME)


def loader(kind, items=TRAIN, **settings) -> DataLoader:
    return DataLoader(items, batch_size=4, collate_fn=kind.collate, **settings)


@cache
def explained(kind) -> pr.Explainer:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a slower fallback would warn
        return pr.Explainer(kind.model(), loader(kind))


@each
def test_scores_are_those_of_plain_autograd_one_example_at_a_time(kind) -> None:
    found = explained(kind).scores(TEST)
    torch.testing.assert_close(found, kind.cosines(kind.model(), TEST, TRAIN), rtol=0, atol=1e-9)


@pytest.mark.parametrize("tied", [tuple, list])
def test_a_batch_of_bags_is_no_list_of_items_though_each_part_is_like_one(tied) -> None:
    draw = torch.Generator().manual_seed(0)
    items = [(torch.randint(0, 9, (2 + i % 4,), generator=draw), i % 3) for i in range(12)]

    def collate(some):
        tokens, labels = zip(*some, strict=True)
        starts = torch.tensor([0, *map(len, tokens[:-1])]).cumsum(0)
        return tied((torch.cat(tokens), starts, torch.tensor(labels)))

    explainer = pr.Explainer(Bag().double(), DataLoader(items, batch_size=4, collate_fn=collate))
    wanted = explainer.scores(items[:5])
    torch.testing.assert_close(explainer.scores(collate(items[:5])), wanted)
    torch.testing.assert_close(explainer.scores(tuple(collate(items[:5])[:2])), wanted)
    for few in (5, 3, 2):
        torch.testing.assert_close(explainer.scores([tokens for tokens, _ in items[:few]]), wanted[:few])


@pytest.mark.parametrize("name", ["lengths", "offsets, labels first", "packed", "attention"])
def test_float32_is_right_to_its_digits(name) -> None:
    kind = KINDS[name]
    model = kind.model().float()
    rounded = kind._replace(collate=lambda items: _single(kind.collate(items)))
    found = pr.Explainer(model, loader(rounded)).scores(TEST)
    torch.testing.assert_close(found, rounded.cosines(model, TEST, TRAIN), rtol=0, atol=1e-6)


def _single(batch):
    if isinstance(batch, dict):
        return batch | {"mask": batch["mask"].float()}
    return batch


@each
def test_batches_shuffling_and_memory_change_no_score(kind) -> None:
    plain = explained(kind).scores(TEST)
    shuffled = pr.Explainer(kind.model(), loader(kind, shuffle=True), memory="24 MB")
    alone = torch.cat([shuffled.scores([case]) for case in TEST])
    torch.testing.assert_close(alone, plain, rtol=0, atol=1e-12)


@each
def test_a_case_is_an_item_with_or_without_its_label_or_in_a_batch(kind) -> None:
    explainer = explained(kind)
    few = sorted(TEST[:4], key=lambda item: -len(item[1]))
    wanted = explainer.scores(few)
    torch.testing.assert_close(explainer.scores([text for _, text in few]), wanted)
    torch.testing.assert_close(explainer.scores(kind.collate(list(few))), wanted)
    torch.testing.assert_close(explainer.scores(few[1]), wanted[1:2])
    torch.testing.assert_close(explainer.scores(few[1][1]), wanted[1:2])


@each
def test_a_batch_of_cases_is_taken_apart_where_the_memory_is_little(kind) -> None:
    explainer = explained(kind)
    cases = explainer.subject.cases(kind.collate(sorted(TEST, key=lambda item: -len(item[1]))))
    whole = explainer.relevance.scores(cases)
    for places in (range(2, 5), [1, 4, 7]):
        part = explainer.relevance.scores(cases.selected(places))
        torch.testing.assert_close(part, whole[list(places)])


@each
def test_an_explanation_prints_plots_and_exports(kind) -> None:
    explanation = explained(kind).explain([TRAIN[4], TEST[0]], k=3)
    text = " ".join(map(str, TRAIN[4][1]))
    assert f'for "{text}", because of' in str(explanation[0])
    assert f"#{explanation.precedents(1)[0].index}" in str(explanation[1])
    assert text in re.sub("<[^>]*>", "", explanation.to_html())
    assert explanation.plot().axes
    assert len(explanation.to_frame()) == 6
    assert json.loads(explanation.to_json())["cases"][1]["precedents"][2]["rank"] == 3
    own = [p for p in explanation.precedents(0) if p.index == 4]
    assert all("duplicate of the case" in p.cautions for p in own)


@each
def test_a_case_in_a_batch_is_known_as_a_copy(kind) -> None:
    few = sorted(TRAIN[:3], key=lambda item: -len(item[1]))
    explanation = explained(kind).explain(kind.collate(list(few)), k=30)
    for case, item in enumerate(few):
        found = {p.index: p.cautions for p in explanation.precedents(case)}
        assert "duplicate of the case" in found[TRAIN.index(item)]


def retrained(kind):
    def retrain(train, seed):
        model = kind.model(seed)
        model.out = nn.Linear(model.out.in_features, 2).double()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(2):
            for batch in train.batches(10):
                given = batch.inputs.arguments
                logits = model(**given) if isinstance(given, dict) else model(*given)
                loss = cross_entropy(batch.inputs.in_order(logits), batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return model

    return retrain


@each
def test_the_audit_runs(kind) -> None:
    model = kind.model()
    audit = pr.audit(model, loader(kind), TEST, metrics=["cos_last", "cos_grad"], retrain=retrained(kind))
    assert set(audit.criteria) >= {"model_randomization", "identical_class", "identical_subclass"}
    assert all(
        audit[metric, criterion].values is not None for metric in audit.metrics for criterion in audit.criteria
    )
    assert str(audit.recommendation)
    if kind is KINDS["lengths"]:
        assert " ".join(map(str, TEST[0][1])) in audit.to_html()
    explainer = pr.Explainer(model, loader(kind), audit=audit)
    assert explainer.estimate(5).seconds > 0


@pytest.mark.parametrize("name", ["cos_if", "l2_fisher", "cosine:gradient/ekfac", "cos_all"])
@pytest.mark.parametrize("kind", [KINDS["sorted"], KINDS["offsets, labels first"], KINDS["mask, a dict"]])
def test_no_metric_depends_on_the_batches(kind, name) -> None:
    model, metric = kind.model(), pr.metric(name)
    whole = metric.fit(model, pr.Examples.of(loader(kind)))
    ordered = sorted(TRAIN, key=lambda item: len(item[1]))
    places = [ordered.index(item) for item in TRAIN]
    other = metric.fit(model, pr.Examples.of(loader(kind, ordered)))
    cases = explained(kind).subject.cases(TEST)
    one, two = whole.scores(cases), other.scores(cases)[:, places]
    torch.testing.assert_close(one, two, rtol=0, atol=1e-6 * float(one.abs().max()))


def test_influence_of_bags_is_that_of_embeddings() -> None:
    class Mean(nn.Module):
        def __init__(self, other: Bag) -> None:
            super().__init__()
            self.embedding = nn.Embedding.from_pretrained(other.embedding.weight.detach(), freeze=False)
            self.out = other.out

        def forward(self, tokens, lengths):
            real = torch.arange(tokens.shape[1]) < lengths[:, None]
            return self.out((self.embedding(tokens) * real[..., None]).sum(dim=1) / lengths[:, None])

    model = Bag().double()
    metric = pr.metric("cos_if")
    found = pr.Explainer(model, DataLoader(TRAIN, collate_fn=with_offsets), metric).scores(TEST)
    wanted = pr.Explainer(Mean(model), DataLoader(TRAIN, collate_fn=with_lengths), metric).scores(TEST)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@some
def test_what_is_saved_is_loaded_and_a_changed_item_is_named(kind, tmp_path) -> None:
    model = kind.model()
    explainer = pr.Explainer(model, loader(kind))
    explainer.save(tmp_path / "kept")
    again = pr.Explainer.load(tmp_path / "kept", model, loader(kind, shuffle=True))
    assert torch.equal(again.scores(TEST), explainer.scores(TEST))
    changed = [*TRAIN[:7], (TRAIN[7][0], [5, *TRAIN[7][1]]), *TRAIN[8:]]
    with pytest.raises(pr.StaleError, match=r"rows of the training set \(1 of 30, the first at 7\)"):
        pr.Explainer.load(tmp_path / "kept", model, loader(kind, changed))


@some
def test_threads_get_the_answers_of_one(kind) -> None:
    explainer = pr.Explainer(kind.model(), loader(kind))
    wanted = explained(kind).scores(TEST)
    found = {}

    def ask(i: int) -> None:
        found[i] = explainer.scores(TEST[i : i + 3])

    threads = [Thread(target=ask, args=(i,)) for i in (0, 3, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, scores in found.items():
        torch.testing.assert_close(scores, wanted[i : i + 3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["cos_if", "cosine:gradient/lanczos"])
def test_influence_of_nested_tensors_is_refused_with_what_to_use(name) -> None:
    explainer = pr.Explainer(KINDS["nested"].model(), loader(KINDS["nested"]), name)
    with pytest.raises(
        pr.NotApplicable, match=r"nested tensors, .* Use a Fisher metric, as cosine:gradient/fisher"
    ):
        explainer.explain(TEST[0])
    assert (
        len(
            pr.Explainer(KINDS["nested"].model(), loader(KINDS["nested"]), "cosine:gradient/fisher").scores(
                TEST
            )
        )
        == 9
    )


# What a person sees.


def test_texts_are_shown_as_they_are_and_tokens_by_a_vocabulary() -> None:
    texts = [(f"class {label}", " ".join(f"w{token}" for token in tokens)) for label, tokens in TRAIN]

    def collate(items):
        return with_offsets([(int(name[-1]), [int(word[1:]) for word in text.split()]) for name, text in items])

    train = DataLoader(texts, collate_fn=collate)
    assert 'for "w3 w4", because of' in str(pr.Explainer(Bag(), train).explain("w3 w4"))
    vocabulary = [f"<{i}>" for i in range(34)]
    rendered = pr.Explainer(Bag(), train, render=pr.texts(vocabulary)).explain("w3 w4")
    assert 'for "<3> <4>", because of' in str(rendered)
    own = pr.Explainer(Bag(), train, render=str.upper, classes=["a", "b", "c"]).explain(["w3 w4", "w7"])
    assert 'for "W3 W4", because of' in str(own)
    assert 'for "3 4", because of' in str(
        pr.Explainer(Bag(), train, render=str.upper).explain(collate([("class 0", "w3 w4")]))
    )


# What a model depends on.


class OverPadding(Masked):
    def forward(self, tokens, mask):
        return super().forward(tokens, torch.ones_like(mask))


class LastState(Recurrent):
    def forward(self, tokens, lengths):
        return self.out(self.cells(self.embedding(tokens))[0][:, -1])


class LargestOfPadding(Masked):
    def forward(self, tokens, mask):
        return self.out(torch.tanh(self.hidden(self.embedding(tokens))).amax(dim=1))


@pytest.mark.parametrize(
    ("model", "collate"), [(OverPadding, with_mask), (LastState, with_lengths), (LargestOfPadding, with_mask)]
)
def test_a_model_that_depends_on_padding_is_refused(model, collate) -> None:
    torch.manual_seed(0)
    with pytest.raises(
        pr.InputError, match=r"depends on its padding or on the others of its batch: alone one has"
    ):
        pr.Explainer(model().double(), DataLoader(TRAIN, collate_fn=collate))


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3, track_running_stats=False), nn.Softmax(dim=0)])
def test_a_model_that_mixes_instances_is_refused(layer) -> None:
    class Mixing(Masked):
        def __init__(self) -> None:
            super().__init__()
            self.mix = layer

        def forward(self, tokens, mask):
            return self.mix(super().forward(tokens, mask))

    with pytest.raises(
        pr.InputError, match=r"depends on its padding or on the others|together, but none of them alone"
    ):
        pr.Explainer(Mixing().double(), DataLoader(TRAIN, collate_fn=with_mask))


def test_lists_of_tensors_are_slow_and_right() -> None:
    model = OfList().double()
    kind = KINDS["packed"]._replace(collate=listed, fed=lambda model, batch: (model(batch[0]), batch[1]))
    with pytest.warns(UserWarning, match="slower fallback"):
        found = pr.Explainer(model, loader(kind)).scores(TEST)
    torch.testing.assert_close(found, kind.cosines(model, TEST, TRAIN), rtol=0, atol=1e-9)


def test_padding_that_only_cases_have_is_tried_on_them() -> None:
    alike = [(label, (text * 5)[:5]) for label, text in TRAIN]
    torch.manual_seed(0)
    explainer = pr.Explainer(OverPadding().double(), DataLoader(alike, collate_fn=with_mask))
    assert len(explainer.explain(alike[:3])) == 3
    with pytest.raises(pr.InputError, match=r"depends on its padding"):
        explainer.explain(TEST)


class Segments(nn.Module):
    """A layer at every token of a row of all, before they are summed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.hidden, self.out = nn.Embedding(34, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, text, offsets):
        owners = torch.bucketize(torch.arange(len(text)), offsets, right=True) - 1
        hidden = torch.tanh(self.hidden(self.embedding(text)))
        return self.out(torch.zeros(len(offsets), 4).to(hidden).index_add(0, owners, hidden))


@pytest.mark.parametrize("tokens", [8, 9])
def test_as_many_tokens_as_instances_are_not_mistaken_for_them(tokens) -> None:
    texts = [[3, 4], [], [5], [6, 7, 8, 2][: tokens - 5], [], [], [9], [1]]
    items = [(i % 3, text) for i, text in enumerate(texts)]

    def collate(some):
        labels, own = zip(*some, strict=True)
        rows = [torch.tensor(text, dtype=torch.long) for text in own]
        return torch.tensor(labels), torch.cat(rows), torch.tensor([0, *map(len, rows)][:-1]).cumsum(0)

    kind = KINDS["offsets, labels first"]._replace(made=Segments, collate=collate)
    assert sum(map(len, texts)) == tokens
    found = pr.Explainer(kind.model(), loader(kind, items)).scores(items)
    torch.testing.assert_close(found, kind.cosines(kind.model(), items, items), rtol=0, atol=1e-9)


def test_a_text_is_enough_where_it_is_all_that_an_item_has_beside_its_label() -> None:
    rows = [{"text": " ".join(map(str, text)), "kind": "abc"[label]} for label, text in TRAIN]

    def collate(items):
        return with_offsets([("abc".index(row["kind"]), [*map(int, row["text"].split())]) for row in items])

    explainer = pr.Explainer(Bag(), DataLoader(rows, collate_fn=collate))
    wanted = explainer.scores(rows[4])
    assert torch.equal(explainer.scores({"text": rows[4]["text"]}), wanted)
    assert torch.equal(explainer.scores(rows[4]["text"]), wanted)
    torch.testing.assert_close(explainer.scores([rows[4]["text"], rows[5]["text"]])[:1], wanted)


def test_an_audit_shows_the_texts_of_a_test_set_with_its_own_loader() -> None:
    def texts(items):
        return [(label, " ".join(f"w{token}" for token in text)) for label, text in items]

    def collate(items):
        return with_offsets([(label, [int(word[1:]) for word in text.split()]) for label, text in items])

    train, test = (DataLoader(texts(items), collate_fn=collate) for items in (TRAIN, TEST))
    audit = pr.audit(Bag(), train, test, metrics=["cos_grad"], criteria=["identical_class"])
    assert texts(TEST)[0][1] in audit.to_html()


def test_a_case_needs_no_id_where_a_collate_fn_gets_the_items_whole() -> None:
    items = [{"id": f"t{i}", "text": text, "label": label} for i, (label, text) in enumerate(TRAIN)]

    def collate(own):
        return with_lengths([(item["label"], item["text"]) for item in own if item["id"]])

    kind = KINDS["lengths"]
    explainer = pr.Explainer(kind.model(), DataLoader(items, collate_fn=collate), ids="id")
    wanted, text = explained(kind).scores([TEST[0][1]]), TEST[0][1]
    whole = {"id": "new", "text": text, "label": 0}
    for case in (text, {"text": text}, {"text": text, "label": 0}, [{"text": text}], whole):
        torch.testing.assert_close(explainer.scores(case), wanted)
    assert explainer.explain(text, k=1).precedents()[0].id in {item["id"] for item in items}
