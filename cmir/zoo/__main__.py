"""`python -m cmir.zoo [--json]`: every mask of the zoo with the slots that the compiler derives for it."""

import argparse
import json

from cmir.zoo import NAMES, load, summary


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m cmir.zoo", description="List the masks of the zoo and their slot counts."
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    arguments = parser.parse_args()
    slots = {name: load(name).slots for name in NAMES}
    if arguments.json:
        print(json.dumps([{"name": n, "slots": slots[n], "summary": summary(n)} for n in NAMES], indent=2))
        return
    width = max(map(len, NAMES))
    print(f"{'mask':{width}} {'rows':>9} {'cols':>9}  what it is")
    for name in NAMES:
        rows, cols = ("unbounded" if n is None else n for n in slots[name].values())
        print(f"{name:{width}} {rows:>9} {cols:>9}  {summary(name)}")


if __name__ == "__main__":
    main()
