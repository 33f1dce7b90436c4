"""The same task with each library: the five training digits most relevant to each of some predictions.

A file has what a user of the library writes. It finds `model`, the training set `x`, `y`, the `cases` and the
labels `predicted` for them, and leaves the numbers of the training instances in `top`. The page docs/peers.md
shows the files.
`python -m benchmarks.side_by_side` runs each in the environment of its library and notes what came of it in
`benchmarks/results/side_by_side.json`: the tests refuse a file that was changed and not run again.
"""
