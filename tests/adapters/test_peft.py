import copy

import hugging
import pytest
import torch
from datasets import Dataset
from peft import (
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptEncoderConfig,
    PromptTuningConfig,
    VeraConfig,
    get_peft_model,
)
from torch import nn
from transformers import TextClassificationPipeline

import precedents as pr
from precedents.gradients.gradients import planned

pytestmark = pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")

ATTENTION = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}
GPT = {"task_type": "SEQ_CLS", "target_modules": ["c_attn"], "fan_in_fan_out": True}
KINDS = {
    "lora": ("bert", lambda: LoraConfig(r=4, lora_dropout=0.5, **ATTENTION)),
    "lora, head": ("bert", lambda: LoraConfig(r=3, target_modules=["query", "classifier"])),
    "lora, embedding": (
        "bert",
        lambda: LoraConfig(r=2, task_type="SEQ_CLS", target_modules=["word_embeddings"]),
    ),
    "dora": ("bert", lambda: LoraConfig(r=4, use_dora=True, **ATTENTION)),
    "dora, gpt2": ("gpt2", lambda: LoraConfig(r=4, use_dora=True, **GPT)),
    "vera": ("bert", lambda: VeraConfig(r=4, **ATTENTION)),
    "ia3": (
        "bert",
        lambda: IA3Config(
            task_type="SEQ_CLS", target_modules=["key", "output.dense"], feedforward_modules=["output.dense"]
        ),
    ),
    "prefix": ("bert", lambda: PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=3)),
    "prefix, gpt2": ("gpt2", lambda: PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=3)),
    "prompt": ("bert", lambda: PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=3)),
    "p-tuning": (
        "bert",
        lambda: PromptEncoderConfig(task_type="SEQ_CLS", num_virtual_tokens=3, encoder_hidden_size=8),
    ),
}
BY_RULES = ["lora", "lora, head", "prefix", "prefix, gpt2"]


@pytest.fixture(scope="module")
def bases() -> dict:
    return {name: hugging.trained(name, 10) for name in ("bert", "gpt2")}


@pytest.fixture(scope="module")
def tokenizer():
    return hugging.tokenizer()


@pytest.fixture(scope="module")
def rows() -> hugging.Rows:
    return hugging.texts(10, seed=1)


@pytest.fixture(scope="module")
def tuned(bases) -> dict:
    """Each kind of adapter as if it had been trained: away from the zeros that it begins with."""
    return {
        kind: drawn(get_peft_model(copy.deepcopy(bases[name]), config()))
        for kind, (name, config) in KINDS.items()
    }


def drawn(model):
    random = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.1 * torch.randn(parameter.shape, generator=random)
    return model.double()


def wanted(model, tokenizer, cases: list[str], rows: hugging.Rows) -> torch.Tensor:
    asked, train = (
        [tokenizer(text, return_tensors="pt") for text in texts] for texts in (cases, [r["text"] for r in rows])
    )
    return hugging.cosines(model, asked, train, [row["label"] for row in rows])


CASES = ["the rain and some soup", "goal"]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_plain_autograd_of_the_adapter_alone(kind, tuned, tokenizer, rows) -> None:
    model = tuned[kind]
    explainer = pr.Explainer((model, tokenizer), rows)
    classifier = explainer.relevance.workspace.classifier
    assert classifier.size == sum(p.numel() for p in model.parameters() if p.requires_grad) < 3000
    assert torch.allclose(explainer.scores(CASES), wanted(model, tokenizer, CASES, rows), rtol=0, atol=1e-6)
    plan = planned(classifier)
    assert (plan.recording is not None and not plan.recording.uncovered) == (kind in BY_RULES)


@pytest.mark.parametrize("kind", ["lora", "lora, head", "prompt", "prefix, gpt2"])
def test_hidden_layers_are_those_of_the_text_and_of_the_last_layer(kind, tuned, tokenizer, rows) -> None:
    model = tuned[kind].eval()
    workspace = pr.Explainer((model, tokenizer), rows, "cos_all").relevance.workspace
    blocks, head = workspace.classifier.hidden(workspace.train.take([0, 1]).inputs)
    for i in range(2):
        inputs = tokenizer(rows[i]["text"], return_tensors="pt")
        states = model(**inputs, output_hidden_states=True).hidden_states
        length = inputs["input_ids"].shape[1]
        assert torch.allclose(blocks[i], torch.cat([state[0, -length:].mean(dim=0) for state in states]))
        assert head[i].shape == (16,)


def test_an_adapter_prints_plots_exports_is_audited_and_kept(tuned, tokenizer, rows, tmp_path) -> None:
    model = tuned["lora"]
    pipeline = TextClassificationPipeline(model=model, tokenizer=tokenizer)
    explainer = pr.Explainer(pipeline, Dataset.from_list(rows))
    explanation = explainer.explain(CASES[0], k=2)
    assert f'for "{CASES[0]}", because of' in str(explanation)
    assert explanation.plot().axes
    assert rows[explanation.precedents()[0].index]["text"] in explanation.to_html().replace("<b>", "").replace(
        "</b>", ""
    )
    assert len(explanation.to_frame()) == 2
    criteria = ["identical_class", "model_randomization"]
    audit = pr.audit(pipeline, rows, rows[:2], metrics=["cos_grad"], criteria=criteria)
    assert audit["cos_grad", "model_randomization"].mean < 1
    assert "BertForSequenceClassification with LORA" in audit.to_html()
    explainer.save(tmp_path / "kept")
    loaded = pr.Explainer.load(tmp_path / "kept", pipeline, rows)
    assert torch.equal(loaded.scores(CASES), explainer.scores(CASES))
    with pytest.raises(pr.StaleError):
        pr.Explainer.load(tmp_path / "kept", (tuned["dora"], tokenizer), rows)


@pytest.mark.parametrize("kind", ["lora", "prompt"])
def test_an_adapter_that_was_loaded_for_predictions_alone_explains_as_the_trained_one(
    kind, bases, tuned, tokenizer, rows, tmp_path
) -> None:
    tuned[kind].save_pretrained(tmp_path)
    loaded = PeftModel.from_pretrained(copy.deepcopy(bases["bert"]), tmp_path).double()
    frozen = [p.requires_grad for p in loaded.parameters()]
    found = pr.Explainer((loaded, tokenizer), rows).scores(CASES)
    assert torch.allclose(found, pr.Explainer((tuned[kind], tokenizer), rows).scores(CASES), rtol=0, atol=1e-9)
    assert [p.requires_grad for p in loaded.parameters()] == frozen


def test_of_several_adapters_the_active_one_is_explained(bases, tokenizer, rows) -> None:
    model = drawn(get_peft_model(copy.deepcopy(bases["bert"]), KINDS["lora"][1]()))
    first = pr.Explainer((model, tokenizer), rows).scores(CASES)
    model.add_adapter("second", LoraConfig(r=2, **ATTENTION))
    model.set_adapter("second")
    drawn(model)
    assert torch.allclose(
        pr.Explainer((model, tokenizer), rows).scores(CASES),
        wanted(model, tokenizer, CASES, rows),
        rtol=0,
        atol=1e-6,
    )
    model.set_adapter("default")
    assert torch.allclose(pr.Explainer((model, tokenizer), rows).scores(CASES), first, rtol=0, atol=1e-9)


def test_adapters_that_transformers_itself_adds_are_read_alike(bases, tokenizer, rows) -> None:
    model = copy.deepcopy(bases["bert"])
    model.add_adapter(LoraConfig(r=2, target_modules=["query"]))
    drawn(model)
    explainer = pr.Explainer((model, tokenizer), rows)
    assert explainer.relevance.workspace.classifier.size == 2 * 2 * (16 + 16)
    assert torch.allclose(explainer.scores(CASES), wanted(model, tokenizer, CASES, rows), rtol=0, atol=1e-6)


def test_a_module_of_ones_own_with_adapters_is_explained() -> None:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    model = drawn(get_peft_model(inner, LoraConfig(r=2, target_modules=["0"], modules_to_save=["2"])))
    x, y = torch.randn(9, 6, dtype=torch.double), torch.arange(9) % 3
    explainer = pr.Explainer(model, (x, y))
    assert explainer.relevance.workspace.classifier.size == 2 * (6 + 8) + 27
    assert explainer.subject.name == "Sequential with LORA"
    feed = [{"input": each[None]} for each in x]
    found = hugging.cosines(Named(model), feed[:2], feed, y.tolist())
    assert torch.allclose(explainer.scores(x[:2]), found, rtol=0, atol=1e-6)


class Named(nn.Module):
    """Calls its logits by name."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.model(**inputs)}


def test_what_takes_no_part_in_a_prediction_is_refused_with_what_to_type(tuned, tokenizer, rows) -> None:
    model = copy.deepcopy(tuned["lora"])
    with model.disable_adapter(), pytest.raises(pr.InputError, match=r"disabled.*enable_adapter_layers\(\)"):
        pr.Explainer((model, tokenizer), rows)
    model.merge_adapter()
    with pytest.raises(pr.InputError, match=r"default is merged.*unmerge_adapter\(\)"):
        pr.Explainer((model, tokenizer), rows)
    model.unmerge_adapter()
    pr.Explainer((model, tokenizer), rows, "cos_last")
    merged = model.merge_and_unload()
    assert pr.Explainer((merged, tokenizer), rows, "cos_last").scores(CASES).shape == (2, 10)


def test_quantised_weights_are_refused(tuned, tokenizer, rows) -> None:
    model = copy.deepcopy(tuned["lora"])
    layer = model.get_base_model().bert.encoder.layer[0].intermediate.dense
    layer.weight = nn.Parameter((layer.weight * 100).to(torch.int8), requires_grad=False)
    with pytest.raises(pr.InputError, match=r"quantised \(torch.int8\).*without quantization_config"):
        pr.Explainer((model, tokenizer), rows)


def test_a_prompt_that_hides_the_padding_from_a_decoder_is_refused(bases, tokenizer, rows) -> None:
    config = PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=3)
    model = drawn(get_peft_model(copy.deepcopy(bases["gpt2"]), config))
    with pytest.raises(pr.InputError, match=r"depends on the padding.*prefix tuning"):
        pr.Explainer((model, tokenizer), rows)


def test_the_model_comes_back_as_it_was(tuned, tokenizer, rows) -> None:
    model = copy.deepcopy(tuned["lora"]).train()
    state, trainable = copy.deepcopy(model.state_dict()), [p.requires_grad for p in model.parameters()]
    pr.Explainer((model, tokenizer), rows).explain("the match", k=1)
    assert model.training
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert [p.requires_grad for p in model.parameters()] == trainable
    assert all(p.grad is None for p in model.parameters())
