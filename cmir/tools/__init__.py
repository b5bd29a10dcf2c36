"""Command-line tools: `cm-opt`, and the driver that Python users and tests share with it."""
