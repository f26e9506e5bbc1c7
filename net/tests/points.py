"""A class that two programs know."""


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y
