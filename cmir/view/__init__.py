"""See what a mask does: pictures, an interactive page, and one cell explained.

    scene        a mask under one choice of metadata: what is visible, in which Region, by which clause and slot
    cell         one pair (i, j): every literal with its numbers, every interval with its ends
    provenance   which lines of a spec, and of every later stage, a clause is made of
    javascript   index expressions as JavaScript, so that a browser evaluates what NumPy does
    picture      PNG and SVG, by matplotlib
    page         a self-contained HTML page

`cm-view` is the command; `CompiledMask.explain` and `cm-opt --explain=i,j` print a cell.
"""
