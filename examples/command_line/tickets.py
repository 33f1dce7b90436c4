"""Which messages taught my text classifier that? A TF-IDF pipeline on the command line, from this folder:

    precedents audit --target tickets:factory --metrics gc,gd,cos_x
    precedents explain --target tickets:factory --case 0 --case 7 -k 2
    precedents audit --target tickets:factory --metrics gc --fail-under 0.9 --report tickets.html

The command calls `factory`, which returns the model, its training set and its test set as they are: texts and
their topics. The rows of the vectorizer stay sparse from there to the scores.
"""

import random

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

TOPICS = {
    "billing": ["invoice charged twice", "refund of the fee", "card was declined", "wrong price on the bill"],
    "delivery": ["parcel never arrived", "courier left it outside", "tracking has stopped", "box is broken"],
    "account": ["cannot log in", "password reset expired", "two accounts with one address", "name is wrong"],
}
BEGINNINGS = ["hello", "good morning", "please help", "again", "since yesterday", "urgent"]
ENDINGS = ["thank you", "what can I do", "I have waited a week", "please call me", "this is the third time"]

Messages = tuple[list[str], list[str]]  # texts and their topics


def messages(count: int, seed: int = 0) -> Messages:
    """Messages to a help desk, drawn from what people write."""
    draw = random.Random(seed)
    topics = [draw.choice(list(TOPICS)) for _ in range(count)]
    parts = ((draw.choice(BEGINNINGS), *draw.sample(TOPICS[each], 2), draw.choice(ENDINGS)) for each in topics)
    return [", ".join(each) for each in parts], topics


def factory() -> tuple[Pipeline, Messages, Messages]:
    """The model, its training set and its test set."""
    train, test = messages(400), messages(80, seed=1)
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    return model.fit(*train), train, test
