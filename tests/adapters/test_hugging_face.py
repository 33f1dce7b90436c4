import copy
import json
import re

import hugging
import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from PIL import Image
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertPreTrainedModel,
    ConvBertConfig,
    ConvBertForSequenceClassification,
    FNetConfig,
    FNetForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    TextClassificationPipeline,
    ViTImageProcessor,
)

import precedents as pr
from precedents.adapters._find import adapter_of
from precedents.explain.cautions import DUPLICATE
from precedents.gradients.gradients import planned

NAMES = list(hugging.BUILD)
each = pytest.mark.parametrize("name", NAMES)
TEXTS = [name for name in NAMES if name not in ("vit", "llama")]


@pytest.fixture(scope="session")
def models() -> dict:
    return {name: hugging.trained(name) for name in NAMES}


@pytest.fixture(scope="session")
def bert(models):
    return models["bert"]


@pytest.fixture(scope="session")
def tokenizer():
    return hugging.tokenizer()


@pytest.fixture(scope="session")
def rows() -> hugging.Rows:
    return hugging.texts(24, seed=1)


def small(kind, **options):
    return kind(BertConfig(**{**hugging.SIZES, **hugging.TOKENS, **options}))


def gradients(model, rows: hugging.Rows, labels: list[int]) -> Tensor:
    """Loss gradients by plain autograd, one instance at a time, without any padding."""
    found = []
    for row, label in zip(rows, labels, strict=True):
        inputs = hugging.batch([row])
        inputs.pop("attention_mask", None)
        loss = cross_entropy(model(**inputs).logits, torch.tensor([label]))
        grads = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
        found.append(torch.cat([grad.flatten() for grad in grads]))
    return torch.stack(found)


@each
def test_scores_equal_plain_autograd_one_instance_at_a_time(name, models) -> None:
    model, train, cases = models[name], hugging.data(name, 20, seed=1), hugging.data(name, 5, seed=2)
    predicted = [int(model(**hugging.batch([case])).logits.argmax()) for case in cases]
    case = gradients(model, cases, predicted)
    precedent = gradients(model, train, [row["label"] for row in train])
    dots, cosines = case @ precedent.T, cosine_similarity(case[:, None], precedent[None], dim=2)
    scale = dots.abs().max()
    assert torch.allclose(pr.Explainer(model, train).scores(cases), cosines, rtol=0, atol=1e-6)
    found = pr.Explainer(model, train, "dot_grad").scores(cases)
    assert torch.allclose(found / scale, dots / scale, rtol=0, atol=1e-6)


@each
def test_gradients_come_by_rules_alone(name, models) -> None:
    plan = planned(pr.Explainer(models[name], hugging.data(name, 6, seed=1)).relevance.workspace.classifier)
    assert plan.recording is not None
    assert not plan.recording.uncovered


@pytest.mark.parametrize(
    "metric", ["cos_grad", "cos_last", "cos_all", "l2_x", "cos_fisher", "cosine:gradient/ekfac"]
)
@pytest.mark.parametrize("name", TEXTS)
def test_padding_and_the_rest_of_the_batch_change_nothing(name, metric, models) -> None:
    train, cases = hugging.data(name, 12, seed=1), hugging.data(name, 4, seed=2)
    own = pr.Explainer(models[name], train, metric).scores(cases)
    padded = hugging.batch([*train, {"input_ids": [4] * 30}])
    wide = [
        {
            "input_ids": padded["input_ids"][i],
            "attention_mask": padded["attention_mask"][i],
            "label": row["label"],
        }
        for i, row in enumerate(train)
    ]
    assert torch.allclose(pr.Explainer(models[name], wide, metric).scores(cases), own, rtol=0, atol=1e-6)
    singly = torch.cat([pr.Explainer(models[name], train, metric).scores(case) for case in cases])
    assert torch.allclose(singly, own, rtol=0, atol=1e-6)
    backwards = pr.Explainer(models[name], train[::-1], metric).scores(cases)
    assert torch.allclose(backwards.flip(1), own, rtol=0, atol=1e-6)


def test_blocks_that_are_padded_to_different_lengths_give_the_same(tokenizer) -> None:
    model = small(BertForSequenceClassification, hidden_size=48, vocab_size=400, num_labels=3).double()
    train = [{"input_ids": list(range(5 + i, 6 + i + i % 4)), "label": i % 3} for i in range(20)]
    one, many = pr.Explainer(model, train), pr.Explainer(model, train, memory="2 MB")
    assert planned(
        one.relevance.workspace.classifier
    ).factored  # gradients that are not formed, of 1 to 4 tokens
    blocks = list(many.relevance.vectors.rows(many.subject.train))
    assert len(blocks) > 1
    assert torch.allclose(many.scores(train), one.scores(train), rtol=0, atol=1e-6)


def test_little_is_kept_of_what_is_read_from_a_file(bert, rows) -> None:
    ids = hugging.encoded("bert", rows)
    found = [adapter_of(bert).examples(data, "training set").streamed for data in (ids, Dataset.from_list(ids))]
    assert found == [False, True]


def test_a_saved_explainer_answers_as_before(bert, tokenizer, rows, tmp_path) -> None:
    pair, case = (bert, tokenizer), "the coach and a storm"
    explainer = pr.Explainer(pair, rows, "cos_fisher")
    explainer.save(tmp_path / "kept")
    loaded = pr.Explainer.load(tmp_path / "kept", pair, Dataset.from_list(rows))
    assert torch.equal(loaded.scores(case), explainer.scores(case))
    with pytest.raises(pr.StaleError):
        pr.Explainer.load(tmp_path / "kept", pair, [*rows[:-1], {"text": "fog", "label": 2}])


def test_plans_are_made_for_the_longest_texts(bert) -> None:
    lengths = [3, 9, 4, 12, 9]
    train = [{"input_ids": [5] * length, "label": 0} for length in lengths]
    workspace = pr.Explainer(bert, train).relevance.workspace
    assert list(workspace.train.largest) == [3, 1]
    assert workspace.classifier.sample["input_ids"].shape == (2, 12)
    assert workspace.train.take([0, 2]).inputs["input_ids"].shape == (2, 4)


@each
def test_half_precision_ranks_as_full_precision_does(name, models) -> None:
    train, cases = hugging.data(name, 20, seed=1), hugging.data(name, 5, seed=2)
    full = copy.deepcopy(models[name]).float()
    scores = [
        pr.Explainer(model, train).scores(cases, labels=[0, 1, 2, 0, 1])
        for model in (full, copy.deepcopy(full).bfloat16())
    ]
    assert float(torch.corrcoef(torch.stack([each.flatten() for each in scores]))[0, 1]) > 0.99


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_hidden_layers_are_means_over_tokens_and_what_the_head_receives(name, models, tokenizer, rows) -> None:
    model = copy.deepcopy(models[name])
    workspace = pr.Explainer((model, tokenizer), rows, "cos_last").relevance.workspace
    blocks, head = workspace.classifier.hidden(workspace.train.take([0, 1]).inputs)
    for i in range(2):
        inputs = tokenizer(rows[i]["text"], return_tensors="pt")
        states = model(**inputs, output_hidden_states=True).hidden_states
        assert torch.allclose(blocks[i], torch.cat([state[0].mean(dim=0) for state in states]))
        received = states[-1][:, -1] if name == "gpt2" else model.bert.pooler(states[-1])
        assert torch.allclose(head[i], received[0])


def test_every_way_to_bring_data_gives_the_same(bert, tokenizer, rows) -> None:
    pair = bert, tokenizer
    ids = [{**tokenizer(row["text"]), "label": row["label"]} for row in rows]
    sentences, labels = [row["text"] for row in rows], [row["label"] for row in rows]
    columns = Features({"text": Value("string"), "label": ClassLabel(names=list(hugging.TOPICS))})
    ways = [
        (pair, rows),
        (pair, (sentences, labels)),
        (pair, list(zip(sentences, torch.tensor(labels), strict=True))),
        (pair, {"sentence": sentences, "labels": torch.tensor(labels)}),
        (pair, Dataset.from_list(rows, features=columns)),
        (pair, [{"text": row["text"], "label": list(hugging.TOPICS)[row["label"]]} for row in rows]),
        (TextClassificationPipeline(model=bert, tokenizer=tokenizer), rows),
        (bert, ids),
        (bert, Dataset.from_list(ids)),
        (bert, Dataset.from_list(ids).with_format("torch")),
        (
            bert,
            Dataset.from_list(rows).map(
                lambda row: tokenizer(row["text"], padding="max_length", max_length=20)
            ),
        ),
        (bert, (tokenizer(sentences, padding=True, return_tensors="pt"), labels)),
    ]
    cases = hugging.encoded("bert", hugging.texts(3, seed=2))
    wanted = pr.Explainer(*ways[0]).scores(cases)
    for model, train in ways:
        assert torch.allclose(pr.Explainer(model, train).scores(cases), wanted, rtol=0, atol=1e-9)


def test_every_way_to_ask_gives_the_same(bert, tokenizer, rows) -> None:
    explainer = pr.Explainer((bert, tokenizer), rows)
    asked = hugging.texts(2, seed=2)
    sentences = [row["text"] for row in asked]
    several = [
        sentences,
        tuple(sentences),
        asked,
        Dataset.from_list(asked),
        {"text": sentences},
        tokenizer(sentences),
    ]
    several += [
        tokenizer(sentences, padding=True, return_tensors="pt"),
        hugging.batch(hugging.encoded("bert", asked)),
    ]
    single = [sentences[0], asked[0], {"text": sentences[0]}, tokenizer(sentences[0])]
    ids = tokenizer(sentences[0])["input_ids"]
    single += [ids, torch.tensor(ids), np.array(ids), tokenizer(sentences[0], return_tensors="pt")]
    wanted = explainer.scores(sentences)
    for x in several:
        assert torch.allclose(explainer.scores(x), wanted, rtol=0, atol=1e-9)
    for x in single:
        assert torch.allclose(explainer.scores(x), wanted[:1], rtol=0, atol=1e-9)
    assert explainer.explain(sentences[0], k=1, labels=2).predictions.tolist() == [2]
    assert explainer.explain(sentences, k=1, labels=["food", "sport"]).predictions.tolist() == [2, 1]


def test_an_explanation_of_a_text_prints_plots_and_exports(bert, tokenizer, rows) -> None:
    explanation = pr.Explainer((bert, tokenizer), rows).explain("some goal was qwxyz", k=3)
    assert 'predicted sport for "some goal was qwxyz", because of' in str(explanation)
    page = explanation.to_html()
    found = explanation.precedents()[0]
    assert "some goal was qwxyz" in re.sub("<[^>]*>", "", page)
    assert rows[found.index]["text"] in re.sub("<[^>]*>", "", page)  # words are marked
    assert not any(mark in page for mark in ("[CLS]", "[SEP]", "[PAD]"))
    assert explanation.plot().axes
    assert json.loads(explanation.to_json())["cases"][0]["prediction"] == "sport"
    assert len(explanation.to_frame()) == 3


def test_without_a_tokenizer_token_numbers_are_shown_without_padding(bert) -> None:
    explanation = pr.Explainer(bert, hugging.data("bert", 12, seed=1)).explain({"input_ids": [2, 12, 3]}, k=1)
    assert ">2 12 3<" in explanation.to_html()


def test_the_names_that_every_configuration_begins_with_are_dropped(bert) -> None:
    plain = BertForSequenceClassification(BertConfig(**hugging.SIZES, **hugging.TOKENS, num_labels=3))
    assert adapter_of(plain).classes is None
    assert adapter_of(bert).classes == list(hugging.TOPICS)


def test_a_configuration_without_names_is_read(bert, tokenizer, rows) -> None:
    nameless = copy.deepcopy(bert)
    nameless.config.__dict__["id2label"] = None  # as that of PvtForImageClassification
    explainer, expected = (pr.Explainer((model, tokenizer), rows) for model in (nameless, bert))
    assert explainer.classes is None
    assert torch.equal(*(each.scores("some goal", labels=2) for each in (explainer, expected)))


def test_the_name_of_several_classes_is_no_label(bert, tokenizer, rows) -> None:
    twice = copy.deepcopy(bert)
    twice.config.id2label = {0: "same", 1: "same", 2: "other"}
    named = [{**row, "label": "other"} for row in rows]
    assert set(pr.Explainer((twice, tokenizer), named).subject.train.labels.tolist()) == {2}
    for model, names in ((twice, None), (bert, ["same", "same", "other"])):
        with pytest.raises(pr.InputError, match=r"instance 3 is 'same', which is the name of several classes"):
            pr.Explainer((model, tokenizer), [*named[:3], {**rows[3], "label": "same"}], classes=names)


def test_a_text_that_is_in_the_training_set_is_said_to_be(bert, tokenizer, rows) -> None:
    longer = "the rain " * 12
    explanation = pr.Explainer((bert, tokenizer), rows, "cos_x").explain([rows[5]["text"], longer], k=1)
    assert explanation.precedents(0)[0].cautions == (DUPLICATE,)
    assert DUPLICATE not in explanation.precedents(1)[0].cautions


def test_metrics_on_inputs_count_words(bert, tokenizer) -> None:
    train = [{"text": "rain rain soup", "label": 0}, {"text": "the goal", "label": 1}]
    scores = pr.Explainer((bert, tokenizer), train, "dot_x").scores(["rain soup soup", "goal"])
    assert scores.tolist() == [[4, 0], [0, 1]]


def test_an_audit_of_a_text_classifier(bert, tokenizer, rows) -> None:
    test = [*hugging.texts(9, seed=2), rows[4]]
    metrics = ["cos_x", "cos_last", "cos_all", "cos_grad"]
    audit = pr.audit((bert, tokenizer), rows, test, metrics=metrics, k=2)
    assert "cos_grad" in str(audit)
    page = audit.to_html()
    assert "BertForSequenceClassification" in page
    assert test[0]["text"] in page
    assert (9, 4) in audit.duplicates
    applied = {name for name, profile in audit.profiles.items() if not hasattr(profile, "reason")}
    assert {"cos_x", "cos_last", "cos_all", "cos_grad"} <= applied


def test_retraining_and_drawing_anew_give_models_that_are_read_as_the_first_was(bert, tokenizer, rows) -> None:
    def fresh(seed: int, classes: int = 3):
        torch.manual_seed(seed)
        return small(BertForSequenceClassification, num_labels=classes).double()

    def retrain(train: pr.Examples, seed: int):
        model = fresh(seed, classes=2)
        inputs, labels, _ = train.take(range(len(train)))
        model(**inputs, labels=labels).loss.backward()
        return model

    trial = pr.Trial.of((bert, tokenizer), rows, rows[:6], retrain=retrain, fresh=fresh)
    outcomes = pr.judge(trial, ["cos_last"], ["identical_subclass", "model_randomization"]).outcomes
    assert all(isinstance(outcome, pr.Result) for outcome in outcomes.values())


@pytest.fixture(scope="session")
def processor() -> ViTImageProcessor:
    return ViTImageProcessor(
        size={"height": 8, "width": 8}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4]
    )


def pictures(n: int) -> list[Image.Image]:
    drawn = np.random.default_rng(0).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    return [Image.fromarray(each) for each in drawn]


def test_images_go_through_the_processor_and_are_shown_as_they_were(models, processor) -> None:
    drawn = pictures(8)
    train = [{"image": picture, "label": i % 3} for i, picture in enumerate(drawn)]
    explainer = pr.Explainer((models["vit"], processor), train)
    pixels = processor(images=drawn, return_tensors="pt")["pixel_values"]
    wanted = pr.Explainer(models["vit"], (pixels, [i % 3 for i in range(8)])).scores(pixels[:2])
    for x in (
        drawn[:2],
        [np.asarray(each) for each in drawn[:2]],
        train[:2],
        pixels[:2],
        {"pixel_values": pixels[:2]},
    ):
        assert torch.allclose(explainer.scores(x), wanted)
    for x in (drawn[0], np.asarray(drawn[0]), train[0], pixels[0]):
        assert torch.allclose(explainer.scores(x), wanted[:1])
    shown = explainer.render({"pixel_values": pixels[3]})
    assert torch.allclose(shown.permute(1, 2, 0) * 255, torch.tensor(np.asarray(drawn[3])).double(), atol=1e-3)
    explanation = explainer.explain(drawn[0], k=2)
    assert explanation.plot().axes
    assert "data:image/png" in explanation.to_html()
    assert "predicted" in str(explanation)
    audit = pr.audit((models["vit"], processor), train, train[:4], metrics=["cos_grad", "cos_x"], k=2)
    assert "ViTForImageClassification" in audit.to_html()


def test_the_model_comes_back_as_it_was(models, tokenizer, rows) -> None:
    for name in ("bert", "gpt2"):
        model = copy.deepcopy(models[name]).train()
        state, drawn = copy.deepcopy(model.state_dict()), torch.get_rng_state()
        config, hooks = model.config.to_dict(), [len(module._forward_hooks) for module in model.modules()]
        for metric in ("cos_grad", "cos_all"):
            pr.Explainer((model, tokenizer), rows, metric).explain("the match", k=1)
        assert torch.equal(torch.get_rng_state(), drawn)
        assert model.training
        assert model.config.to_dict() == config
        assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
        assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
        assert [len(module._forward_hooks) for module in model.modules()] == hooks
        assert type(model).__name__ == type(models[name]).__name__
        assert [type(module) for module in model.modules()] == [
            type(module) for module in models[name].modules()
        ]


class Own(BertPreTrainedModel):
    """A user's own head, which returns a tuple."""

    def __init__(self, config) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.score = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, labels=None):
        return (self.score(self.bert(input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]),)


def test_a_class_of_the_users_own_is_read_as_well(tokenizer, rows) -> None:
    model = Own(BertConfig(**hugging.SIZES, **hugging.TOKENS, num_labels=3)).double()
    for metric in ("cos_grad", "cos_last", "cos_all"):
        scores = pr.Explainer((model, tokenizer), rows, metric).scores([rows[0]["text"]], labels=[0])
        assert scores[0, 0] == pytest.approx(1)


GPT = {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 36, "bos_token_id": 2, "eos_token_id": 3}
MANY = {"num_labels": 3, "problem_type": "multi_label_classification"}
HEADLESS = "no classification head.*AutoModelForSequenceClassification"
REFUSED = {
    "several labels at once.*two classes": lambda: small(BertForSequenceClassification, **MANY),
    "a number, not a class.*ranges": lambda: small(BertForSequenceClassification, num_labels=1),
    "every token.*AutoModelForSequence": lambda: small(BertForTokenClassification, num_labels=3),
    f"GPT2LMHeadModel has {HEADLESS}": lambda: GPT2LMHeadModel(GPT2Config(**GPT)),
    f"BertForMaskedLM has {HEADLESS}": lambda: small(BertForMaskedLM),
    f"BertModel has {HEADLESS}": lambda: small(BertModel),
    "Type: model.config.pad_token_id": lambda: GPT2ForSequenceClassification(GPT2Config(**GPT, num_labels=3)),
    r"A int came.*\(model, tokenizer\)": lambda: (small(BertForSequenceClassification), 3),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_served_is_refused_with_the_reason(reason) -> None:
    with pytest.raises(pr.InputError, match=reason):
        pr.Explainer(REFUSED[reason](), hugging.data("bert", 4, seed=1))


WRONG_TEXTS = {
    "names of classes: weather, sport, food": [{"text": "rain", "label": "music"}],
    "0.5. Labels are class numbers": [{"text": "rain", "label": 0.5}],
    r"splits: train.*data\['train'\]": DatasetDict(train=Dataset.from_list([{"text": "rain"}])),
    "Pass a datasets.Dataset": iter([{"text": "rain", "label": 0}]),
    "training set is empty": [],
    "Several fields are texts: premise, other": [{"premise": "rain", "other": "snow", "label": 0}],
    "No text is in: words, label": [{"words": 3, "label": 0}],
    "2 instances, but 1 labels": (["rain", "snow"], [0]),
}
WRONG_FIELDS = {
    r"\(model, tokenizer\), or a pipeline": [{"text": "rain", "label": 0}],
    "Instance 0 of the training set has no label": [{"input_ids": [2, 5, 3]}],
    "several labels": [{"input_ids": [2, 5, 3], "label": [0, 1]}],
    "All need the same": [{"input_ids": [2], "label": 0}, {"input_ids": [2], "label": 0, "position_ids": [0]}],
    "leaves no token": [{"input_ids": [2], "attention_mask": [0], "label": 0}],
    r"shape \(1, 1\), not \(tokens,\)": [{"input_ids": [[2]], "label": 0}],
    "out of range": [{"input_ids": [2], "label": 3}],
}


@pytest.mark.parametrize("reason", [*WRONG_TEXTS, *WRONG_FIELDS])
def test_data_that_cannot_be_read_are_refused_with_the_reason(reason, bert, tokenizer) -> None:
    texts = reason in WRONG_TEXTS
    with pytest.raises(pr.InputError, match=reason):
        pr.Explainer((bert, tokenizer) if texts else bert, (WRONG_TEXTS if texts else WRONG_FIELDS)[reason])


def test_data_that_differ_at_every_reading_are_refused(models) -> None:
    random = torch.Generator().manual_seed(0)
    train = Dataset.from_dict({"label": [0, 1]}).with_transform(
        lambda row: {"pixel_values": [torch.randn(3, 8, 8, generator=random) for _ in row["label"]], **row}
    )
    with pytest.raises(pr.InputError, match="differs from its first reading"):
        pr.Explainer(models["vit"], train)


def test_padding_that_a_model_cannot_be_told_of_is_refused() -> None:
    config = FNetConfig(hidden_size=16, num_hidden_layers=1, intermediate_size=24, vocab_size=40, num_labels=2)
    model = FNetForSequenceClassification(config)
    same = [{"input_ids": [4, 7, 5], "label": 0}, {"input_ids": [4, 8, 5], "label": 1}]
    assert pr.Explainer(model, same).scores(same).shape == (2, 2)
    with pytest.raises(pr.InputError, match="takes no attention mask"):
        pr.Explainer(model, [*same, {"input_ids": [4, 5], "label": 1}])


def test_a_model_whose_convolutions_see_a_little_of_the_padding_is_refused(tokenizer, rows) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = ConvBertConfig(vocab_size=40, embedding_size=16, head_ratio=1, num_labels=3, **sizes)
        model = ConvBertForSequenceClassification(config).double().eval()
    for weight in model.parameters():
        weight.data *= 4 if weight.ndim > 1 else 1
    texts = [" ".join(["the rain"] * 4), "the rain"]
    both = tokenizer(texts, padding=True, return_tensors="pt").data
    short = tokenizer(texts[1], return_tensors="pt").data
    beside, alone = (
        model(**{name: each[name] for name in ("input_ids", "attention_mask")}).logits[-1]
        for each in (both, short)
    )
    assert torch.allclose(beside, alone, rtol=1e-2, atol=1e-3)  # which was enough
    with pytest.raises(pr.InputError, match="depends on the padding behind it"):
        pr.Explainer((model, tokenizer), rows)


def test_long_texts_are_cut_at_the_tokenizers_limit(bert, rows) -> None:
    short = hugging.tokenizer(model_max_length=6)
    explainer = pr.Explainer((bert, short), rows)
    assert torch.equal(explainer.scores("rain " * 90), explainer.scores("rain " * 4))


def test_pairs_of_texts_are_told_apart(bert) -> None:
    tokenizer = hugging.tokenizer(model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    train = [
        {"text": "rain", "text_pair": "snow wind", "label": 0},
        {"text": "goal", "text_pair": "team", "label": 1},
    ]
    batch = adapter_of((bert, tokenizer)).examples(train, "training set").take([0, 1]).inputs
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0]]
