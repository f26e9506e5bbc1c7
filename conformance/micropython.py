"""Converts scenarios to plain MicroPython: `python -m conformance.micropython FOLDER` writes one
file for each file of scenarios/.

The conversion makes these changes: annotations and `__future__` are removed; `pytest` becomes the
`kit` of micropython/tests (`raises`, `approx`); the names of `weft` are those of weft.coroutines.
MicroPython has neither awaiting comprehensions nor starred items in a list: the former become a
loop before their statement, the latter become a sum. On threads `log.append(x)` takes a lock.
Otherwise the scenario stays the same, line by line.

LACKS lists the features that the ports lack, with the reasons of `weft portable`; `LEFT_OUT` names
the scenarios that need these features.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from weft._commands.portable_list import BEHAVIOUR, BEHAVIOUR_OF_THREADS

HERE = Path(__file__).parent / "scenarios"

# The features that the scenarios need and MicroPython lacks, on every port, and why.
LACKS: dict[str, str] = {
    **BEHAVIOUR,
    "threading": "the scenario asks the module threading where it runs, or waits for a threading.Event",
}

# The scenarios that are not run, and the feature that each needs.
_ENDS, _REST, _WHERE = "rules_01_02_channels_and_ends", "rules_09_12_the_rest", "rules_15_where"
_TURNS, _AGAIN = "rules_07_07_turns", "rules_07_18_again"
LEFT_OUT: dict[str, str] = {
    f"{_ENDS}.a_channel_has_the_name_it_is_given_or_the_place_of_its_birth": "line numbers",
    f"{_ENDS}.an_end_that_is_dropped_is_retired": "finalisers",
    f"{_TURNS}.a_barrier_of_one": "every operation",
    f"{_TURNS}.groups_without_a_process": "every operation",
    f"{_TURNS}.limits_that_have_expired": "every operation",
    f"{_AGAIN}.each_operation_of_the_block_is_withdrawn": "again",
    f"{_AGAIN}.one_that_swallows_it_leaves_its_block_in_time": "again",
    f"{_AGAIN}.what_repeats_a_request_of_an_outer_scope_is_the_outer_ones": "again",
    f"{_AGAIN}.a_scope_within_lets_it_pass": "again",
    f"{_AGAIN}.nothing_is_started_in_it_afterwards": "again",
    f"{_AGAIN}.it_may_be_set_anew_until_it_is_met": "again",
    f"{_REST}.two_that_wait_for_each_other_are_the_knot": "line numbers",
    f"{_REST}.a_dropped_value_is_released_outside_the_lock": "finalisers",
    f"{_REST}.an_end_in_a_dropped_value_is_retired": "finalisers",
    f"{_WHERE}.an_io_call_gives_its_result_or_its_exception": "threading",
    f"{_WHERE}.the_clock_stands_still_during_an_io_call": "threading",
    f"{_WHERE}.a_cancelled_io_call_is_waited_for_no_longer": "threading",
    f"{_WHERE}.the_network_does_not_change_with_where_its_processes_run": "kinds",
    f"{_WHERE}.choices_meet_wherever_they_are_made": "kinds",
    f"{_WHERE}.one_scheduler_runs_its_processes_one_at_a_time": "threading",
    f"{_WHERE}.on_threads_each_has_its_own": "kinds",
    f"{_WHERE}.what_cannot_run_there_is_bad_use": "kinds",
}

# Further features that weft.threads lacks on MicroPython, and why.
LACKS_THREADS = BEHAVIOUR_OF_THREADS
LEFT_OUT_THREADS: dict[str, str] = {
    "rules_05_choice.three_choices_in_a_ring_each_in_and_out": "a start in order",
}


def scenarios_of(path: Path) -> list[str]:
    """Returns the scenarios of a file, as `file.function`, without running the file."""
    return [
        f"{path.stem}.{node.name}"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(
            isinstance(d, ast.Call) and getattr(d.func, "id", "") in ("scenario", "outermost")
            for d in node.decorator_list
        )
    ]


def convert(source: str, names: str = "coroutines") -> str:
    """Returns the source of a file of scenarios, converted for MicroPython."""
    tree = ast.parse(source)
    if names == "threads":
        tree = Called().visit(tree)
    tree = Plain(names).visit(tree)
    if names == "threads":
        tree.body[:0] = ast.parse("from kit import append").body
    if "TimeoutError" in source:  # MicroPython's builtins have no TimeoutError
        tree.body[:0] = ast.parse(f"from weft.{names} import TimeoutError").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class Called(ast.NodeTransformer):
    """Turns awaited operations into plain calls, for weft.threads."""

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        plain = ast.FunctionDef(**{f: getattr(node, f) for f in node._fields if hasattr(node, f)})
        return self.generic_visit(ast.copy_location(plain, node))

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        return self.generic_visit(ast.copy_location(ast.With(node.items, node.body), node))

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        plain = ast.For(node.target, node.iter, node.body, node.orelse)
        return self.generic_visit(ast.copy_location(plain, node))

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Makes `log.append(x)` acquire a lock: without a GIL two threads that append to the same
        list can lose a value.
        """
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            return ast.Call(ast.Name("append", ast.Load()), [node.func.value, *node.args], [])
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.is_async = 0
        return self.generic_visit(node)


class Plain(ast.NodeTransformer):
    def __init__(self, names: str) -> None:
        self.names = names
        self.hoisted: list[list[ast.stmt]] = []
        self.count = 0

    # imports

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        if node.module in ("__future__", "exceptiongroup"):
            return None
        if node.module == "weft":
            node.module = f"weft.{self.names}"
        elif node.module == "conformance.scenarios":
            node.module = "kit"
        elif node.module == "conformance.scenarios.parts":
            node.module = "parts"
        return node

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        for alias in node.names:
            if alias.name == "pytest":
                alias.name, alias.asname = "kit", "pytest"
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | None:
        if "version_info" in ast.unparse(node.test):
            return ast.parse(f"from weft.{self.names} import Failures as BaseExceptionGroup").body[
                0
            ]
        return self.statement(node)  # type: ignore[return-value]

    # annotations

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self.function(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        node.returns = None
        if node.args.posonlyargs:
            node.args.args = node.args.posonlyargs + node.args.args
            node.args.posonlyargs = []
        for arg in ast.walk(node.args):
            if isinstance(arg, ast.arg):
                arg.annotation = None
        if ast.get_docstring(node) and len(node.body) > 1:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            return None
        return self.visit_Assign(ast.Assign([node.target], node.value, lineno=node.lineno))  # type: ignore[return-value]

    # features that MicroPython's compiler lacks

    def statement(self, node: ast.stmt) -> list[ast.stmt] | ast.stmt:
        self.hoisted.append([])
        self.generic_visit(node)
        before = self.hoisted.pop()
        return [*before, node] if before else node

    visit_Assign = visit_Expr = visit_Assert = visit_Return = visit_AugAssign = statement

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        waits = any(isinstance(n, ast.Await) for n in ast.walk(node)) or any(
            g.is_async for g in node.generators
        )
        if not waits:
            return node
        self.count += 1
        name = f"_list{self.count}"
        body: ast.stmt = ast.Expr(
            ast.Call(
                ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [node.elt], []
            )
        )
        for g in reversed(node.generators):
            for condition in g.ifs:
                body = ast.If(condition, [body], [])
            loop = ast.AsyncFor if g.is_async else ast.For
            body = loop(g.target, g.iter, [body], [])
        empty = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
        self.hoisted[-1] += [empty, body]
        return ast.Name(name, ast.Load())

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not any(
            isinstance(e, ast.Starred) for e in node.elts
        ):
            return node
        parts: list[ast.expr] = [
            ast.Call(ast.Name("list", ast.Load()), [e.value], [])
            if isinstance(e, ast.Starred)
            else ast.List([e], ast.Load())
            for e in node.elts
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = ast.BinOp(whole, ast.Add(), part)
        return whole


def write(folder: Path, names: str = "coroutines") -> list[str]:
    """Writes all scenario files; returns the names of the modules."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = []
    for path in [HERE / "parts.py", *sorted(HERE.glob("rules_*.py"))]:
        text = convert(path.read_text(encoding="utf-8"), names)
        (folder / path.name).write_text(text, encoding="utf-8")
        modules.append(path.stem)
    return modules


if __name__ == "__main__":
    print("\n".join(write(Path(sys.argv[1]), *sys.argv[2:])))
