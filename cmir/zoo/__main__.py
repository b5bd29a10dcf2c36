"""`python -m cmir.zoo [--json]`: every mask of the zoo with the slots that the compiler derives for it."""

import argparse
import json

from cmir.zoo import NAMES, load, summary


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cmir.zoo", description="List the masks of the zoo and their slot counts.")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    arguments = parser.parse_args()
    masks = [{"name": n, "slots": load(n).slots, "summary": summary(n)} for n in NAMES]
    if arguments.json:
        print(json.dumps(masks, indent=2))
        return
    print(f"{'mask':15} {'rows':>9} {'cols':>9}  what it is")
    for mask in masks:
        rows, cols = ("unbounded" if n is None else n for n in mask["slots"].values())
        print(f"{mask['name']:15} {rows:>9} {cols:>9}  {mask['summary']}")


if __name__ == "__main__":
    main()
