"""The Python face of specs: `cmir.MaskSpec` builds the same surface IR that a `.mlir` text does.

`spec.py` is what users call; `terms.py` holds the terms that rules, guards and facts are made of; `facts.py` and
`rule.py` turn them into the ops of a spec; `source.py` remembers where in the user's Python each of them was written.
Nothing here needs NumPy, z3 or torch.
"""
