"""The plugin for pytest: `--weft-check` and `--weft-replay`. Without the plugin too, a function
under `@weft.check` is a test.

Invariant: pytest imports this module wherever Weft is installed. So it imports nothing more of Weft
before an option asks for it.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

_HOW = "--weft-check={!r}: write a number of seconds, all or off"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("weft", "networks of Weft in every order")
    group.addoption(
        "--weft-check",
        metavar="SECONDS|all|off",
        help="how many seconds to search for each test under @weft.check; all: it is a failure if a search "
        "was cut; off: each test is run once, unchecked",
    )
    group.addoption(
        "--weft-replay",
        metavar="TOKEN",
        help="runs the selected test under @weft.check in this one order",
    )


def pytest_configure(config: pytest.Config) -> None:
    asked, token = config.getoption("--weft-check"), config.getoption("--weft-replay")
    if asked is None and token is None:
        return
    from weft._checking.api import Checked
    from weft._checking.tokens import parse
    from weft.errors import BadUse

    override: dict[str, Any] | str = {}
    if asked == "off":
        override = "off"
    elif asked == "all":
        override = {"all": True}
    elif asked is not None:
        try:
            seconds = float(asked)
        except ValueError:
            raise pytest.UsageError(_HOW.format(asked)) from None
        if not 0 < seconds < float("inf"):
            raise pytest.UsageError(_HOW.format(asked))
        override = {"seconds": seconds}
    if token is not None:
        try:
            parse(token)
        except BadUse as error:
            raise pytest.UsageError(f"--weft-replay: {error}") from None
        if override == "off":
            raise pytest.UsageError("give only one of --weft-replay and --weft-check=off")
        override = {**override, "replay": token}  # type: ignore[dict-item]
    Checked.override = override


def pytest_unconfigure() -> None:
    import sys

    api = sys.modules.get("weft._checking.api")
    if api is not None:
        api.Checked.override = None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--weft-replay") is None:
        return
    from weft._checking.api import Checked

    checked = [item for item in items if isinstance(getattr(item, "obj", None), Checked)]
    if len(checked) != 1:
        raise pytest.UsageError(
            f"--weft-replay is for one test under @weft.check, and {len(checked)} are selected: "
            "name it, as in test_shop.py::test_shop"
        )


class Kept:
    """A plugin for `weft check FILE::TEST`: checks each test that pytest runs, and keeps the
    reports.
    """

    def __init__(self, given: dict[str, Any], name: str) -> None:
        self.reports: list[Any] = []
        self._given = dict(given)
        self._name = name
        self._replay = self._given.pop("replay", None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        from weft._checking.api import Checked
        from weft._checking.checker import check_function
        from weft._checking.options import options

        function: Any = pyfuncitem.obj
        if isinstance(function, Checked):
            function = function.__wrapped__
        named = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        self.reports.append(
            check_function(
                functools.partial(function, **named),
                options(**self._given),
                () if self._replay is None else (self._replay,),
                search=self._replay is None,
                name=self._name,
                command=f"weft check {self._name}",
            )
        )
        return True
