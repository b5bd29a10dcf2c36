"""`python -m cmir.zoo [--json | NAME]`: every mask of the zoo with the slots that the compiler derives for it, or one's
file, to start a mask of your own from."""

import argparse
import json

from cmir.errors import CmirError
from cmir.zoo import NAMES, load, path, summary


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m cmir.zoo", description="List the masks of the zoo and their slot counts."
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this mask's .mlir file")
    arguments = parser.parse_args()
    if arguments.name is not None:
        try:
            print(path(arguments.name).read_text(), end="")
        except CmirError as error:
            parser.error(str(error))
        return
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
