"""One pass a file. Each file states its equation, the IR before and after, and where the idea comes from."""
