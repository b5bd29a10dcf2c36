"""Questions the passes ask: linear forms, simplification, solving for an index, facts and entailment, monotonicity."""
