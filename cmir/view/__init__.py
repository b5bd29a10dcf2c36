"""See what a mask does: pictures, an interactive page, and one cell explained.

    scene        a mask under one choice of metadata: what is visible, in which Region, by which clause and slot
    cell         one pair (i, j): every literal with its numbers, every interval with its ends
    provenance   which lines of a spec, and of every later stage, a clause is made of
    javascript   index expressions as JavaScript, so that a browser evaluates what NumPy does
    text, picture, page    a scene as text, as PNG or SVG by matplotlib, as a self-contained HTML page
    load, metadata         from the text of a spec, and of metadata, to a scene; what is left out is drawn
    output                 a scene written to a file

`cm-view` is the command; `CompiledMask.explain` and `cm-opt --explain=i,j` print a cell.
"""
