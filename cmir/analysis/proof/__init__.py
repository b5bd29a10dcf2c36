"""Translation validation: after a pass, prove that the IR still means what it meant before.

    claims    what a pass must have kept, read off the IR before and after it, whichever pass it was
    meaning   rules, tables and preprocess kernels as z3 terms: who is visible at row i, column j
    world     metadata as z3 unknowns, and what the facts say of them
    decide    proved; refuted, with numbers that the NumPy oracle confirms; or unknown

Nothing here asks what a pass asked, or how it answered: `cmir.analysis.entailment` and `smt` are not used. Shared are
the meaning of operators (`cmir.interp`) and the list of a spec's facts. The idea is that of translation validation
(Pnueli, Siegel, Singerman; Necula; Alive): check each compilation, not the compiler.
"""
