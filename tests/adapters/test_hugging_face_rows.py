"""Rows as people have them: columns by name, labels in words, pairs of sentences, images, loaders."""

import hugging
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from datasets import ClassLabel, Dataset
from PIL import Image
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    ImageClassificationPipeline,
    ViTImageProcessor,
)

import precedents as pr

CASE = "the rain and qwxyz"


@pytest.fixture(scope="module")
def bert():
    return hugging.trained("bert", 10)


@pytest.fixture(scope="module")
def tokenizer():
    return hugging.tokenizer()


@pytest.fixture(scope="module")
def rows() -> hugging.Rows:
    return hugging.texts(9, seed=1)


@pytest.fixture(scope="module")
def wanted(bert, tokenizer, rows) -> torch.Tensor:
    return pr.Explainer((bert, tokenizer), rows).scores(CASE)


@pytest.fixture(scope="module")
def questions(rows) -> Dataset:
    """Two columns of texts, two of labels."""
    return Dataset.from_list(
        [
            {"id": f"q-{i}", "question": row["text"], "coarse": row["label"], "label": 0}
            for i, row in enumerate(rows)
        ]
    )


def test_columns_are_named_by_argument(bert, tokenizer, rows, questions, wanted) -> None:
    pair, columns = (bert, tokenizer), {"text": "question", "labels": "coarse"}
    explainer = pr.Explainer(pair, questions, **columns)
    for x in (
        CASE,
        {"question": CASE},
        [{"id": "new", "question": CASE}],
        {"text": CASE},
        questions.select([0]),
    ):
        assert explainer.scores(x).shape == (1, 9)
    assert torch.equal(explainer.scores({"id": "new", "question": CASE}), wanted)
    explanation = explainer.explain({"id": "new", "question": CASE}, k=1)
    assert CASE in str(explanation)
    assert rows[explanation.precedents()[0].index]["text"] in str(explanation)
    audit = pr.audit(
        pair, questions, questions, metrics=["cos_grad"], criteria=["identical_class"], k=2, **columns
    )
    assert "9 cases" in repr(audit)
    trial = pr.Trial.of(pair, questions, questions.select(range(4)), **columns)
    assert trial.truth.tolist() == questions[:4]["coarse"]
    given = pr.Explainer(pair, questions, text="question", labels=questions["coarse"][:])
    assert torch.equal(given.scores(CASE), wanted)


def test_a_frame_is_a_set_of_rows(bert, tokenizer, questions, wanted) -> None:
    frame = questions.to_pandas()
    columns = {"text": "question", "labels": "coarse"}
    for data in (frame, pl.from_pandas(frame)):
        explainer = pr.Explainer((bert, tokenizer), data, **columns)
        assert torch.equal(explainer.scores(CASE), wanted)
    assert torch.equal(explainer.scores(frame.iloc[2]), explainer.scores(frame.iloc[[2]]))


def test_columns_that_are_not_there_are_named(bert, tokenizer, questions) -> None:
    pair = bert, tokenizer
    for options, reason in {
        (
            "question",
            "corse",
        ): "Instance 0 of the training set has no 'corse', which labels= names.*question, coarse",
        ("quest", "coarse"): "text names the column 'quest', but the instances have: id, question, coarse",
        (None, "coarse"): r"Several fields are texts: id, question.*text='id', or text=\('id', 'question'\)",
        (3, "coarse"): "text is an int. Pass the name of a column",
        (("a", "b", "c"), "coarse"): "text names 3 columns",
    }.items():
        with pytest.raises(pr.InputError, match=reason):
            pr.Explainer(pair, questions, text=options[0], labels=options[1])
    with pytest.raises(pr.InputError, match="image is an int"):
        pr.Explainer(pair, questions, image=3)


def test_tensors_of_tokens_mask_and_labels_are_taken_by_their_order(bert, tokenizer, rows, wanted) -> None:
    made = tokenizer([row["text"] for row in rows], padding=True, return_tensors="pt")
    tokens, mask, labels = (
        made["input_ids"],
        made["attention_mask"],
        torch.tensor([row["label"] for row in rows]),
    )
    data = TensorDataset(tokens, mask, labels)
    sets = data, DataLoader(data, shuffle=True), Subset(data, range(9)), ((tokens, mask), labels)
    for each in sets:
        explainer = pr.Explainer((bert, tokenizer), each)
        torch.testing.assert_close(explainer.scores(CASE), wanted)
        alone = explainer.scores(data[3])
        for case in (data[3][:2], {"input_ids": tokens[3], "attention_mask": mask[3]}):
            assert torch.equal(explainer.scores(case), alone)
        several = explainer.scores((tokens[2:5], mask[2:5]))
        torch.testing.assert_close(several[1:2], alone)
    kinds = torch.zeros_like(tokens)
    for other in (TensorDataset(tokens, kinds, labels), TensorDataset(tokens, kinds, mask, labels)):
        with pytest.raises(pr.InputError, match=r"tensors, and the model takes fields by name.*{'input_ids': "):
            pr.Explainer((bert, tokenizer), other)


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"]])
def test_columns_of_texts_are_cases(ids, bert, tokenizer, rows, wanted) -> None:
    explainer = pr.Explainer((bert, tokenizer), rows)
    texts = [CASE, *(row["text"] for row in rows[:2])]
    column = pd.Series(texts, ids, name="text")
    for cases in (column, column.rename(None) if ids is None else column, np.array(texts), column.to_numpy()):
        found = explainer.scores(cases)
        torch.testing.assert_close(found[:1], wanted)
        assert torch.equal(found, explainer.scores(texts))
    assert ("case b:" if ids else "case 1:") in str(explainer.explain(column[1:] if ids else column, k=1))


@pytest.mark.parametrize(
    "case",
    [None, b"soup", [CASE, float("nan")], pd.Series([CASE, None])],
    ids=["none", "bytes", "gap", "column"],
)
def test_what_is_no_text_is_said(case, bert, tokenizer, rows) -> None:
    with pytest.raises(pr.InputError, match=r"An instance is (None|b'soup'|nan)\. Pass a text, a row"):
        pr.Explainer((bert, tokenizer), rows).scores(case)


def test_a_torch_module_takes_a_column_of_labels_and_no_other() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    data = [{"x": row, "kind": i % 2, "label": 0} for i, row in enumerate(x)]
    explainer = pr.Explainer(Named(), data, labels="kind")
    assert explainer.subject.train.labels.tolist() == [0, 1] * 3
    with pytest.raises(pr.InputError, match=r"text= says which column.*but Named reads no columns"):
        pr.Explainer(Named(), data, text="x")


class Named(torch.nn.Module):
    """Takes a label as well, and does nothing with it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, label=None):
        return self.layer(x)


def test_labels_are_words_where_somebody_says_what_they_mean(tokenizer, rows) -> None:
    torch.manual_seed(0)
    plain = BertForSequenceClassification(BertConfig(**hugging.SIZES, **hugging.TOKENS, num_labels=3)).double()
    names = ["x", "y", "z"]
    words = Dataset.from_list([{"text": row["text"], "label": names[row["label"]]} for row in rows])
    numbered = words.cast_column("label", ClassLabel(names=names))
    wanted = pr.Explainer((plain, tokenizer), rows).scores(CASE)
    told = pr.Explainer((plain, tokenizer), words, classes=names)
    assert torch.equal(told.scores(CASE), wanted)
    found = pr.Explainer((plain, tokenizer), numbered)
    assert torch.equal(found.scores(CASE), wanted)
    assert found.classes == told.classes == names
    assert found.explain(CASE, k=1, labels="z").predictions.tolist() == [2]
    with pytest.raises(pr.InputError, match=r"instance 0 is 'x'.*LABEL_0.*Pass classes="):
        pr.Explainer((plain, tokenizer), words)


def test_classes_in_another_order_than_the_models_are_refused(bert, tokenizer, rows) -> None:
    data = Dataset.from_list(rows).cast_column("label", ClassLabel(names=["food", "sport", "weather"]))
    with pytest.raises(pr.InputError, match=r"food, sport, weather.*weather, sport, food.*align_labels_with"):
        pr.Explainer((bert, tokenizer), data)
    aligned = data.align_labels_with_mapping(bert.config.label2id, "label")
    assert pr.Explainer((bert, tokenizer), aligned).scores(CASE).shape == (1, 9)


@pytest.fixture(scope="module")
def pairs(rows) -> Dataset:
    both = zip(rows, rows[::-1], strict=True)
    return Dataset.from_list(
        [{"premise": a["text"], "hypothesis": b["text"], "label": a["label"]} for a, b in both]
    )


def test_pairs_of_sentences_are_explained_as_pairs(bert, pairs) -> None:
    tokenizer = hugging.tokenizer(model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    columns, first = ("premise", "hypothesis"), ("the rain", "qwxyz")
    explainer = pr.Explainer((bert, tokenizer), pairs, text=columns)
    feed = [tokenizer(row["premise"], row["hypothesis"], return_tensors="pt") for row in pairs]
    case = tokenizer(*first, return_tensors="pt")
    assert case["token_type_ids"].max() == 1
    wanted = hugging.cosines(bert, [case], feed, pairs["label"][:])
    for x in (
        first,
        list(first),
        dict(zip(columns, first, strict=True)),
        {"text": first[0], "text_pair": first[1]},
    ):
        assert torch.allclose(explainer.scores(x), wanted, rtol=0, atol=1e-6)
    for several in ([first, ("a", "goal")], {"premise": ["the rain", "a"], "hypothesis": ["qwxyz", "goal"]}):
        assert torch.allclose(explainer.scores(several)[:1], wanted, rtol=0, atol=1e-6)
    explanation = explainer.explain(first, k=1)
    assert "the rain / qwxyz" in str(explanation)
    assert pairs[explanation.precedents()[0].index]["hypothesis"] in str(explanation)
    others = [
        ([tuple(row[name] for name in columns) for row in pairs], pairs["label"][:]),
        [((row["premise"], row["hypothesis"]), row["label"]) for row in pairs],
        pairs.rename_columns({"premise": "text", "hypothesis": "text_pair"}),
        pairs.map(lambda row: tokenizer(row["premise"], row["hypothesis"])),
    ]
    for data in others:
        other = pr.Explainer((bert, tokenizer), data)
        assert torch.allclose(other.scores(first), wanted, rtol=0, atol=1e-6)
        assert str(other.explain(first, k=1)) == str(explanation)
    with pytest.raises(
        pr.InputError, match="pairs of texts: pass both, as a dict with 'premise' and 'hypothesis'"
    ):
        explainer.scores("the rain")
    audit = pr.audit(
        (bert, tokenizer), pairs, pairs, text=columns, metrics=["cos_x"], criteria=["identical_class"], k=2
    )
    assert pairs[0]["hypothesis"] in audit.to_html()


@pytest.fixture(scope="module")
def vit():
    return hugging.trained("vit", 5)


def test_images_of_every_kind_go_through_the_processor(vit, tmp_path) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, (6, 9, 7, 3), dtype=np.uint8)
    pictures = [Image.fromarray(each) for each in drawn]
    processor = ViTImageProcessor(size={"height": 8, "width": 8})
    pipeline = ImageClassificationPipeline(model=vit, image_processor=processor)
    train = [{"photo": picture, "kind": i % 3, "by": "me"} for i, picture in enumerate(pictures)]
    explainer = pr.Explainer(pipeline, train, image="photo", labels="kind")
    feed = [processor(images=picture, return_tensors="pt").to(torch.double) for picture in pictures]
    wanted = hugging.cosines(vit, feed[:1], feed, [0, 1, 2] * 2)
    pictures[0].save(tmp_path / "a.png")
    transparent = pictures[0].convert("RGBA")
    for x in (pictures[0], drawn[0], train[0], tmp_path / "a.png", str(tmp_path / "a.png"), transparent):
        assert torch.allclose(explainer.scores(x), wanted, rtol=0, atol=1e-6)
    grey = [{"image": picture.convert("L"), "label": i % 3} for i, picture in enumerate(pictures)]
    colours = [{"image": row["image"].convert("RGB"), "label": row["label"]} for row in grey]
    same = [pr.Explainer(pipeline, data).scores(data[1]) for data in (grey, colours)]
    assert torch.equal(*same)
    with pytest.raises(pr.InputError, match=r"Which of the fields photo, kind, by is the image.*image='photo'"):
        pr.Explainer(pipeline, train)
    with pytest.raises(pr.InputError, match=r"image names the column 'foto'.*photo, kind, by"):
        pr.Explainer(pipeline, train, image="foto", labels="kind")
    with pytest.raises(pr.PrecedentsError, match="FileNotFoundError"):
        explainer.scores("none.png")


def test_a_loader_with_a_collator_is_read_as_its_data_set(bert, tokenizer, rows, wanted) -> None:
    def collated(batch):
        texts, labels = zip(*batch, strict=True)
        return tokenizer(list(texts), padding=True, return_tensors="pt"), torch.tensor(labels)

    ids = Dataset.from_list([{**tokenizer(row["text"]), "label": row["label"]} for row in rows])
    items = [(row["text"], row["label"]) for row in rows]
    loaders = [
        DataLoader(ids, batch_size=4, shuffle=True, collate_fn=DataCollatorWithPadding(tokenizer)),
        DataLoader(items, batch_size=4, collate_fn=collated),
    ]
    for loader in loaders:
        explainer = pr.Explainer((bert, tokenizer), loader)
        assert torch.allclose(explainer.scores(CASE), wanted, rtol=0, atol=1e-9)
        assert explainer.subject.train.labels.tolist() == [row["label"] for row in rows]
    some = DataLoader(items, sampler=SubsetRandomSampler([0, 2]), collate_fn=collated)
    with pytest.raises(pr.InputError, match="SubsetRandomSampler, which may leave instances out"):
        pr.Explainer((bert, tokenizer), some)
