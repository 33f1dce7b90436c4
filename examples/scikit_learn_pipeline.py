"""Why did my pipeline decide so? A table with numbers, words and gaps, explained by its precedents.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% A table as tables are: numbers, a column in words, missing values, labels in words
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import precedents as pr

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "malic_acid", "flavanoids", "hue", "magnesium"]].copy()
tones = pd.cut(wine.data.color_intensity, [0, 4, 7, np.inf], labels=["pale", "medium", "deep"])
table["tone"] = tones.astype(str)
table.loc[table.index[::9], "magnesium"] = np.nan
cultivar = wine.target.map({0: "barolo", 1: "grignolino", 2: "barbera"})
train, test, y_train, y_test = train_test_split(table, cultivar, random_state=0, stratify=cultivar)

# %% A pipeline as pipelines are
numbers = make_pipeline(SimpleImputer(), StandardScaler())
columns = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), ["tone"]),
)
pipeline = make_pipeline(columns, LogisticRegression()).fit(train, y_train)
print(f"accuracy {pipeline.score(test, y_test):.3f} on {len(test)} wines")

# %% Which training rows speak for the prediction? `#12` is `train.iloc[12]`
explainer = pr.Explainer(pipeline, (train, y_train))
explanation = explainer.explain(test.iloc[0], k=3)
print(explanation)
print(explanation.to_frame()[["rank", "index", "label", "score"]])

# %% The rows side by side, as they were in the table (`explanation.plot()` draws them, a notebook shows them)
found = [precedent.index for precedent in explanation.precedents()]
print(pd.concat([test.iloc[[0]], train.iloc[found]]).to_string())

# %% What was predicted wrongly, and because of what?
wrong = test[pipeline.predict(test) != y_test]
print(explainer.explain(wrong, k=3) if len(wrong) else "Nothing was.")

# %% A case that is in no table: a dict will do
row = {"alcohol": 12.1, "malic_acid": 3.9, "flavanoids": 0.7, "hue": 0.6, "magnesium": None, "tone": "deep"}
print(explainer.explain(row, k=2))

# %% May these explanations be believed? The metrics on trial on this very model
metrics = ["cos_grad", "dot_grad", "cos_if", "cos_x"]  # without this argument, all eighteen
audit = pr.audit(pipeline, (train, y_train), (test, y_test), metrics=metrics)
print(audit)
