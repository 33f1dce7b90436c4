import copy
import tempfile

import hugging
import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from peft import LoraConfig, get_peft_model
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertModel, DataCollatorWithPadding, Trainer, ViTImageProcessor

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
    return hugging.texts(12, seed=1)


@pytest.fixture(scope="module")
def tokenized(rows, tokenizer) -> Dataset:
    """As most do: the tokens beside the text."""
    return Dataset.from_list([{**row, **tokenizer(row["text"])} for row in rows])


@pytest.fixture(scope="module")
def made(bert, tokenizer, tokenized, tmp_path_factory):
    """A Trainer of the model; what is not said is as most have it."""

    def make(**parts):
        usual = {"train_dataset": tokenized, "processing_class": tokenizer}
        folder = tmp_path_factory.mktemp("trainer")
        return hugging.trainer(parts.pop("model", bert), folder, **{**usual, **parts})

    return make


@pytest.fixture(scope="module")
def wanted(bert, tokenizer, rows) -> torch.Tensor:
    feed = [tokenizer(row["text"], return_tensors="pt") for row in rows]
    return hugging.cosines(bert, [tokenizer(CASE, return_tensors="pt")], feed, [row["label"] for row in rows])


def test_a_trainer_alone_is_explained_after_it_has_trained(made, tokenizer, rows, tmp_path) -> None:
    model = hugging.trained("bert", 5)
    trainer = made(model=model, data_collator=DataCollatorWithPadding(tokenizer))
    trainer.train()
    explainer = pr.Explainer(trainer)
    feed = [tokenizer(row["text"], return_tensors="pt") for row in rows]
    case = [tokenizer(CASE, return_tensors="pt")]
    found = hugging.cosines(model, case, feed, [row["label"] for row in rows])
    assert torch.allclose(explainer.scores(CASE), found, rtol=0, atol=1e-6)
    explanation = explainer.explain(CASE, k=2)
    assert f'for "{CASE}", because of' in str(explanation)
    assert rows[explanation.precedents()[0].index]["text"] in str(explanation)
    assert explanation.plot().axes
    assert "qwxyz" in explanation.to_html()
    assert len(explanation.to_frame()) == 2
    explainer.save(tmp_path / "kept")
    assert torch.equal(pr.Explainer.load(tmp_path / "kept", trainer).scores(CASE), explainer.scores(CASE))


def test_other_data_than_the_trainers_may_be_given(made, tokenized, wanted) -> None:
    found = pr.Explainer(made(train_dataset=None), tokenized.select([3, 1])).scores(CASE)
    assert torch.allclose(found, wanted[:, [3, 1]], rtol=0, atol=1e-6)


def test_an_audit_takes_the_trainers_two_sets(made, tokenized) -> None:
    trainer = made(eval_dataset=tokenized.select(range(3)))
    options = {"metrics": ["cos_grad"], "criteria": ["identical_class"]}
    audit = pr.audit(trainer, **options)
    assert "3 cases" in repr(audit)
    assert "BertForSequenceClassification" in audit.to_html()
    assert len(pr.Trial.of(made(), test=tokenized).cases) == 12
    assert pr.Trial.of(trainer).truth.tolist() == tokenized[:3]["label"]
    with pytest.raises(
        pr.InputError, match=r"no test set, and the Trainer has no eval_dataset. Pass it: test="
    ):
        pr.audit(made(), **options)
    with pytest.raises(pr.InputError, match=r"sets: one, two\..* test=trainer\.eval_dataset\['one'\]"):
        pr.audit(made(eval_dataset={"one": tokenized, "two": tokenized}), **options)


def test_every_set_that_a_trainer_takes_gives_the_same(made, rows, tokenizer, tokenized, wanted) -> None:
    def collated(batch):
        found = tokenizer([row["text"] for row in batch], padding=True, return_tensors="pt")
        return {**found, "labels": torch.tensor([row["label"] for row in batch])}

    class Own(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, i):
            fields = {name: torch.tensor(value) for name, value in tokenizer(rows[i]["text"]).items()}
            return {**fields, "labels": torch.tensor(rows[i]["label"])}

    texts, everything = Dataset.from_list(rows), {"remove_unused_columns": False}
    on_the_fly = texts.with_transform(lambda b: {**tokenizer(b["text"]), "labels": b["label"]})
    pairs = [(row["text"], row["label"]) for row in rows]
    trainers = [
        made(train_dataset=tokenized.remove_columns("text")),
        made(train_dataset=tokenized.with_format("torch")),
        made(train_dataset=on_the_fly, options=everything),
        made(train_dataset=texts, data_collator=collated, options=everything),
        made(train_dataset=texts, data_collator=collated, processing_class=None, options=everything),
        made(
            train_dataset=pairs,
            data_collator=lambda batch: collated([{"text": text, "label": label} for text, label in batch]),
        ),
        made(train_dataset=tokenized.rename_column("label", "target"), options={"label_names": ["target"]}),
        made(train_dataset=Own()),
    ]
    for trainer in trainers:
        assert torch.allclose(pr.Explainer(trainer).scores(CASE), wanted, rtol=0, atol=1e-6)
    tuples = pr.Explainer(trainers[3])
    for x in ({"text": CASE}, [CASE], [{"text": CASE, "label": 2}], tokenizer(CASE)):
        assert torch.allclose(tuples.scores(x), wanted, rtol=0, atol=1e-6)
    assert "the rain and [UNK]" in str(tuples.explain(tokenizer(CASE), k=1))
    with pytest.raises(pr.InputError, match="A case has no 'text', which the data collator is given"):
        tuples.scores({"sentence": CASE})


def test_texts_are_shown_as_they_were_given_and_decoded_where_they_are_not_there(
    made, rows, tokenizer, tokenized
) -> None:
    unknown = Dataset.from_list([{**row, "text": f"{row['text']} Qwxyz!"} for row in rows])
    on_the_fly = unknown.with_transform(lambda b: {**tokenizer(b["text"]), "labels": b["label"]})
    named = unknown.rename_column("text", "sentence").add_column("id", [f"a-{i}" for i in range(12)])
    tokens = [tokenizer(row["sentence"], truncation=True, max_length=6) for row in named]
    cut = Dataset.from_list([{**row, **own} for row, own in zip(named, tokens, strict=True)])
    for train in (on_the_fly, cut):
        trainer = made(train_dataset=train, options={"remove_unused_columns": False})
        assert "Qwxyz!" in str(pr.Explainer(trainer).explain(CASE, k=1)).splitlines()[2]
    shown = str(pr.Explainer(made(train_dataset=cut.remove_columns("sentence"))).explain(CASE, k=1))
    assert CASE in shown.splitlines()[0]
    assert "Qwxyz" not in shown
    assert rows[0]["text"].split()[0] in str(
        pr.Explainer(made(processing_class=None)).explain({"input_ids": [2, 3]}, k=12)
    )


def test_the_loss_is_the_trainers(made, bert, tokenizer, rows) -> None:
    feed = [tokenizer(row["text"], return_tensors="pt") for row in rows]

    def smooth(logits, labels):
        return cross_entropy(logits, labels, label_smoothing=0.3)

    labels = [row["label"] for row in rows]
    found = hugging.cosines(bert, [tokenizer(CASE, return_tensors="pt")], feed, labels, loss=smooth)
    trainer = made(options={"label_smoothing_factor": 0.3})
    assert torch.allclose(pr.Explainer(trainer).scores(CASE), found, rtol=0, atol=1e-6)
    plain = pr.Explainer(trainer, loss=nn.CrossEntropyLoss()).scores(CASE)
    assert not torch.allclose(plain, found, rtol=0, atol=1e-4)


class Weighted(Trainer):
    """As many write it: weights for rare classes."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        output = model(**inputs)
        loss = cross_entropy(output.logits, labels, torch.tensor([1.0, 2.0, 3.0]).to(output.logits))
        return (loss, output) if return_outputs else loss


def test_a_loss_of_ones_own_must_be_said(made) -> None:
    with pytest.raises(pr.InputError, match=r"Weighted.compute_loss.*loss=torch.nn.CrossEntropyLoss\(weight"):
        pr.Explainer(made(kind=Weighted))
    with pytest.raises(pr.InputError, match="by compute_loss_func"):
        pr.Explainer(
            made(compute_loss_func=lambda output, labels, num_items_in_batch=None: output.logits.sum())
        )
    weights = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
    told = pr.Explainer(made(kind=Weighted), metric="dot_grad", loss=weights).scores(CASE, labels=0)
    plain = pr.Explainer(made(), metric="dot_grad").scores(CASE, labels=0)
    factors = torch.tensor([1.0, 2.0, 3.0])[pr.Explainer(made()).subject.train.labels]
    assert torch.allclose(told, plain * factors, rtol=1e-6)


class Own(nn.Module):
    """A module of a user's own around an encoder, as its Trainer takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = BertModel(BertConfig(**hugging.SIZES, **hugging.TOKENS), add_pooling_layer=False)
        self.head = nn.Linear(16, 3)

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.head(self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state[:, 0])
        return (
            {"logits": logits} if labels is None else {"loss": cross_entropy(logits, labels), "logits": logits}
        )


def test_a_trainers_model_may_be_a_module_of_ones_own(made, tokenizer, rows) -> None:
    torch.manual_seed(0)
    model = Own().double()
    trainer = made(model=model)
    trainer.train()
    feed = [{"input_ids": torch.tensor([tokenizer(row["text"])["input_ids"]])} for row in rows]
    case = [{"input_ids": torch.tensor([tokenizer(CASE)["input_ids"]])}]
    found = hugging.cosines(model, case, feed, [row["label"] for row in rows])
    assert torch.allclose(pr.Explainer(trainer).scores(CASE), found, rtol=0, atol=1e-6)
    assert torch.allclose(pr.Explainer((model, tokenizer), rows).scores(CASE), found, rtol=0, atol=1e-6)
    for metric in ("cos_last", "cos_all", "cos_x"):
        assert pr.Explainer(trainer, metric=metric).scores(rows[3]["text"])[0, 3] == pytest.approx(1)


class Focal(Own):
    """Computes a loss of its own."""

    def forward(self, input_ids, attention_mask=None, labels=None):
        output = super().forward(input_ids, attention_mask)
        if labels is not None:
            losses = cross_entropy(output["logits"], labels, reduction="none")
            output["loss"] = ((1 - (-losses).exp()) ** 2 * losses).mean()
        return output


def test_a_loss_that_a_model_computes_must_be_said(made, bert) -> None:
    with pytest.raises(pr.InputError, match=r"The loss that Focal computes is not the cross entropy.*loss="):
        pr.Explainer(made(model=Focal()))
    assert pr.Explainer(made(model=Focal()), loss=nn.CrossEntropyLoss()).scores(CASE).shape == (1, 12)
    instance = made()
    instance.compute_loss = lambda model, inputs, **_: model(**inputs).logits.sum()
    with pytest.raises(pr.InputError, match=r"Trainer.compute_loss, which gives one number"):
        pr.Explainer(instance)


class Padded(Own):
    """Takes no notice of the mask."""

    def forward(self, input_ids, attention_mask=None, labels=None):
        return {"logits": self.head(self.encoder(input_ids).last_hidden_state.mean(dim=1))}


def test_a_trainer_of_half_precision_is_tried_in_full(made, bert) -> None:
    half = copy.deepcopy(bert).bfloat16()
    found = pr.Explainer(made(model=half)).scores(CASE, labels=0)
    full = pr.Explainer(made(model=copy.deepcopy(half).float())).scores(CASE, labels=0)
    assert torch.equal(found, full)
    assert half.dtype == torch.bfloat16


def test_a_model_that_minds_padding_is_refused(made) -> None:
    with pytest.raises(pr.InputError, match="depends on the padding behind it"):
        pr.Explainer(made(model=Padded()))


def test_adapters_in_a_trainer_are_what_it_tuned(made, bert, tokenizer, rows) -> None:
    config = LoraConfig(task_type="SEQ_CLS", r=2, lora_dropout=0.1, target_modules=["query"])
    model = get_peft_model(copy.deepcopy(bert), config)
    trainer = made(model=model)
    trainer.train()
    feed = [tokenizer(row["text"], return_tensors="pt") for row in rows]
    case = [tokenizer(CASE, return_tensors="pt")]
    found = hugging.cosines(model, case, feed, [row["label"] for row in rows])
    explainer = pr.Explainer(trainer)
    assert explainer.relevance.workspace.classifier.size == 2 * 2 * 32 + 51
    assert torch.allclose(explainer.scores(CASE), found, rtol=0, atol=1e-6)


def test_images_of_a_trainer_are_shown_as_they_were(made) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    data = Dataset.from_dict({"image": [Image.fromarray(each) for each in drawn], "label": [0, 1, 2] * 2})
    processor = ViTImageProcessor(size={"height": 8, "width": 8}, image_mean=[0.4] * 3, image_std=[0.2] * 3)
    model = hugging.trained("vit", 5)

    def pixels(images):
        return processor(images=images, return_tensors="pt")["pixel_values"]

    def stacked(batch):
        return {
            "pixel_values": torch.stack([row["pixel_values"] for row in batch]),
            "labels": torch.tensor([row["label"] for row in batch]),
        }

    def processed(batch):
        return {
            "pixel_values": pixels([row["image"] for row in batch]),
            "labels": torch.tensor([row["label"] for row in batch]),
        }

    before = data.with_transform(lambda batch: {"pixel_values": list(pixels(batch["image"])), **batch})
    feed = [{"pixel_values": pixels([image]).double()} for image in data["image"]]
    found = hugging.cosines(model, feed[:1], feed, data["label"][:])
    for train, collate in ((before, stacked), (data, processed)):
        parts = {"train_dataset": train, "data_collator": collate, "processing_class": processor}
        explainer = pr.Explainer(made(model=model, **parts, options={"remove_unused_columns": False}))
        assert torch.allclose(explainer.scores(data[0]["image"]), found, rtol=0, atol=1e-6)
    explanation = explainer.explain(Image.fromarray(drawn[0]), k=1)
    seen = explanation.seen(0, 1)
    assert np.allclose(seen * 255, drawn[explanation.precedents()[0].index], atol=1e-2)


def test_what_a_trainer_lacks_is_named(made, tokenized, bert, tokenizer) -> None:
    with pytest.raises(pr.InputError, match=r"the Trainer has no train_dataset. Pass it: train="):
        pr.Explainer(made(train_dataset=None))
    with pytest.raises(pr.InputError, match="only a Trainer brings one along"):
        pr.Explainer((bert, tokenizer))
    stream = made(train_dataset=tokenized.to_iterable_dataset(), options={"max_steps": 1})
    with pytest.raises(pr.InputError, match=r"an IterableDataset, whose.*Dataset.from_list\(list\(data\)\)"):
        pr.Explainer(stream)
    with pytest.raises(pr.InputError, match=r"The training set is a str. Pass a datasets.Dataset"):
        pr.Explainer(made(), "cos_last")
    with pytest.raises(pr.InputError, match=r"data\['train'\]"):
        pr.Explainer(made(), DatasetDict(train=tokenized))

    def broken(batch):
        raise KeyError("labels")

    with pytest.raises(pr.PrecedentsError, match=r"The data collator failed: KeyError.*test_trainer.py"):
        pr.Explainer(made(data_collator=broken))


def test_a_trainer_comes_back_as_it_was(made, tokenizer) -> None:
    trainer = made()
    trainer.model.train()
    settings, drawn = tokenizer.init_kwargs.copy(), torch.get_rng_state()
    pr.Explainer(trainer).explain(CASE, k=1)
    assert trainer.model.training
    assert torch.equal(torch.get_rng_state(), drawn)
    assert tokenizer.init_kwargs == settings
    assert trainer._signature_columns is None


def test_a_factory_may_return_a_trainer(made, tokenized, tmp_path, monkeypatch, capsys) -> None:
    from precedents.cli._main import main

    code = (
        "import hugging\nfrom datasets import Dataset\n\n\ndef factory():\n"
        "    tokenizer = hugging.tokenizer()\n"
        "    rows = [{**row, **tokenizer(row['text'])} for row in hugging.texts(12, seed=1)]\n"
        "    data = Dataset.from_list(rows)\n"
        f"    return hugging.trainer(hugging.trained('bert', 5), {tempfile.mkdtemp(dir=tmp_path)!r}, "
        "train_dataset=data, eval_dataset=data.select(range(3)), processing_class=tokenizer)\n"
    )
    (tmp_path / "own_trainer.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "--target", "own_trainer:factory", "--case", "1", "-k", "1"]) == 0
    assert tokenized[1]["text"] in capsys.readouterr().out
    assert (
        main(["audit", "--target", "own_trainer:factory", "--metrics", "gc", "--criteria", "identical_class"])
        == 0
    )
    assert "cos_grad" in capsys.readouterr().out
