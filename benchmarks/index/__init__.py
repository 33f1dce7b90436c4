"""Indexes: building beside plain passes, further questions beside the first one, recall, bytes and memory.

Each work is a process of its own, in which a model is trained or drawn, an index is built in a folder, and some
cases are answered from it and by a full pass: `works` has the models, `measured` what is done with each,
`scaling` builds by one worker and by two, `projections` are what others do in the place of an index, `codes`
tries codes of other sizes, and `told` makes the page. A work that fails is recorded with the reason, and tried
again by the next run.

    python -m benchmarks.index --data FOLDER --out benchmarks/results
    python -m benchmarks.index --only hard --n 3000 --out elsewhere
"""
