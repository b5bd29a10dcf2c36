// RUN: cm-opt --split-input-file --verify-diagnostics --load %S/inputs/reports.py --report %s
// RUN: not cm-opt --split-input-file --verify-diagnostics %s

// Every severity, every way to point at a line, regular expressions. Without the pass nothing is reported, so that what
// the comments announce is missing.

// expected-error@+1 {{an error of @here}}
func.func private @error_here()

// -----

func.func private @error_same_line()  // expected-error {{of @same_line}}

// -----

func.func private @warning_above()
// expected-warning@-1 {{a warning of @above}}

// -----

// expected-remark@below {{a remark of @below}}
func.func private @remark_below()
// expected-note@above {{a note of @below}}

// -----

// A note may be left out; of two that are announced the same way each needs its own.
// expected-remark@below {{a remark of @alone}}
func.func private @remark_alone()

// -----

// expected-error-re@+1 {{an error of @number_{{[0-9]+}}}}
func.func private @error_number_42()

// -----

// Outside of inner braces a text is a text: dots and brackets mean themselves.
// expected-remark-re@below {{a remark of {{@[a-z]+}}}}
func.func private @remark_pattern()
