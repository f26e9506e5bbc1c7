"""A module beside placed_programs.py, which goes to a board with what imports it."""

OFFSET = 100


def shifted(x):
    return x + OFFSET


if __name__ == "__main__":
    raise SystemExit("this is for the PC alone")
