"""What every stage means: one evaluator with two value domains, NumPy arrays (the oracle) and z3 terms (proof)."""
