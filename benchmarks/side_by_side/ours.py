import precedents as pr

explanation = pr.Explainer(model, (x, y)).explain(cases, k=5)
top = explanation.top.indices
