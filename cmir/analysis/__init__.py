"""Questions the passes ask: linear forms, simplification, solving for a variable, facts and entailment, monotonicity."""
