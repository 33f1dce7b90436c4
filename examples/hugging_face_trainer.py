# %% [markdown]
# # A `Trainer` of Hugging Face, explained as it is
#
# A BERT learns topics of toy questions by LoRA, in a `Trainer`. The Trainer alone is then enough: it has the
# model with its adapter, the training set, the collator and the tokenizer, and the audit asks about its
# `eval_dataset`.
# Nothing is downloaded: with a Trainer of your own, begin at "Explain".

# %%
import random
from tempfile import mkdtemp

import torch
from datasets import ClassLabel, Dataset
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

import precedents as pr

# %% Questions with a topic, as a data set has them: a column of texts, and one of labels with names
TOPICS = {
    "person": ["who", "writer", "king", "coach", "born", "painter"],
    "place": ["where", "city", "river", "island", "country", "lake"],
    "number": ["how", "many", "much", "tall", "old", "price"],
}
COMMON = ["is", "the", "of", "a", "was", "in", "and", "which", "first", "his"]
draw = random.Random(0)


def question(topic: str) -> str:
    words = draw.choices(TOPICS[topic], k=3) + draw.choices(COMMON, k=draw.randrange(1, 6))
    return " ".join(draw.sample(words, len(words))) + "?"


def questions(n: int) -> Dataset:
    rows = [{"text": question(list(TOPICS)[i % 3]), "label": i % 3} for i in range(n)]
    return Dataset.from_list(rows).cast_column("label", ClassLabel(names=list(TOPICS)))


# %% A tokenizer of whole words, and a BERT of two layers that has seen nothing
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *COMMON, *(word for topic in TOPICS.values() for word in topic)]
inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
inner.pre_tokenizer = pre_tokenizers.Whitespace()
inner.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
)
torch.manual_seed(0)
config = BertConfig(
    vocab_size=len(words),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    initializer_range=0.1,
    num_labels=3,
)
base = BertForSequenceClassification(config)

# %% LoRA: the base is frozen; what is trained, and explained, are the adapter and the head
lora = LoraConfig(task_type="SEQ_CLS", r=4, lora_dropout=0.1, target_modules=["query", "value"])
model = get_peft_model(base, lora)


# %% A Trainer, as in every tutorial
def tokenized(rows):
    return tokenizer(rows["text"], truncation=True, max_length=16)


train, test = (questions(n).map(tokenized, batched=True) for n in (120, 30))
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=mkdtemp(),
        num_train_epochs=15,
        learning_rate=1e-2,
        per_device_train_batch_size=16,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    ),
    train_dataset=train,
    eval_dataset=test,
    data_collator=DataCollatorWithPadding(tokenizer),
    processing_class=tokenizer,
)
trainer.train()

# %% Explain: the Trainer, and a text as it is
explainer = pr.Explainer(trainer)
explanation = explainer.explain("Where is the first lake of his country?", k=5)
print(explanation)
explanation.plot()

# %% Should you believe it?
audit = pr.audit(trainer, metrics=["cos_x", "dot_grad", "cos_grad"])
print(audit)
