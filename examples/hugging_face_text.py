# %% [markdown]
# # Why did a Hugging Face text classifier decide so?
#
# A small BERT is trained on toy news for some seconds, then explained by its training texts and put on trial.
# Nothing is downloaded: with a model of your own, begin at "Explain".

# %%
import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, pipeline

import precedents as pr

# %% Texts: some words of a topic among words of every day
TOPICS = {
    "weather": ["rain", "snow", "wind", "sun", "storm", "frost", "cloud", "fog"],
    "sport": ["goal", "match", "team", "coach", "race", "player", "win", "score"],
    "food": ["soup", "bread", "salt", "spice", "lunch", "cook", "cheese", "apple"],
}
COMMON = ["the", "a", "was", "is", "very", "and", "today", "after", "long", "good"]
draw = random.Random(0)


def text(topic: str) -> str:
    words = draw.choices(COMMON, k=draw.randrange(2, 7)) + draw.choices(TOPICS[topic], k=2)
    return " ".join(draw.sample(words, len(words)))


def news(n: int) -> Dataset:
    return Dataset.from_list([{"text": text(list(TOPICS)[i % 3]), "label": i % 3} for i in range(n)])


train, test = news(150), news(30)

# %% A tokenizer of whole words, and a BERT of two layers
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
    id2label=dict(enumerate(TOPICS)),
    label2id={topic: i for i, topic in enumerate(TOPICS)},
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
batch = tokenizer(train["text"][:], padding=True, return_tensors="pt")
for _ in range(40):
    optimizer.zero_grad()
    model(**batch, labels=torch.tensor(train["label"][:])).loss.backward()
    optimizer.step()
model.eval()

# %% Explain: the model with its tokenizer is a pipeline, or the pair (model, tokenizer)
classifier = pipeline("text-classification", model=model, tokenizer=tokenizer)
explainer = pr.Explainer(classifier, train)
explanation = explainer.explain("after the long race a good lunch", k=5)
print(explanation)
explanation.plot()

# %% Should you believe it?
audit = pr.audit(classifier, train, test, metrics=["cos_x", "cos_last", "dot_grad", "cos_grad"])
print(audit)
