"""A module beside placed_programs.py. A process that imports it takes it along to a board."""

OFFSET = 100


def shifted(x):
    return x + OFFSET


if __name__ == "__main__":
    raise SystemExit("this is for the PC alone")
