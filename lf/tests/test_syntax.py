"""Tests that the parser accepts every text that upstream's grammar allows."""

from __future__ import annotations

import pytest
import syntax

from weft_lf import tree
from weft_lf.errors import LfError, rendered
from weft_lf.parser import parse

FEW = 100


def accepted(seeds: range) -> None:
    for seed in seeds:
        text = syntax.text(seed)
        try:
            parse(text, f"seed {seed}")
        except LfError as error:
            pytest.fail("\n".join(rendered(p) for p in error.problems) + "\n" + text)


def test_random_texts_of_the_grammar() -> None:
    accepted(range(FEW))


@pytest.mark.soak
def test_more_random_texts_of_the_grammar() -> None:
    accepted(range(FEW, 10_000))


def members(body: str) -> list[tree.Member]:
    return parse("target C\nmain reactor {\n" + body + "\n}\n", "x.lf").reactors[0].members


@pytest.mark.parametrize(
    "before",
    [
        "reaction(startup) {= =}",
        "reaction(startup) -> o",
        "reaction(startup) i -> o {= =}",
        "reaction(startup) {= =} deadline(1 sec) {= =}",
        "reaction f(startup);",
    ],
)
@pytest.mark.parametrize("after", ["a.o -> b.i", "(a.o)+ -> b.i", "b = new B()", "@x a.o -> b.i"])
def test_what_stands_behind_a_reaction(before: str, after: str) -> None:
    reaction, other = members(f"{before}\n{after}")
    assert isinstance(reaction, tree.Reaction)
    assert isinstance(other, (tree.Connection, tree.Instance))


def test_a_reaction_without_effects_and_body_takes_sources() -> None:
    (reaction,) = members("reaction f(startup)\na.o -> b.i")
    assert isinstance(reaction, tree.Reaction)
    assert [str(r) for r in reaction.sources + reaction.effects] == ["a.o", "b.i"]


@pytest.mark.parametrize(
    "body",
    [
        'printf("=}");',
        'char c = \'"\'; f("=}");',
        "/* =} */",
        '// it\'s\n x("=}");',
        "don't // \"\n",
    ],
)
def test_code_ends_where_c_allows_it(body: str) -> None:
    (reaction,) = members("reaction(startup) {= " + body + " =}")
    assert isinstance(reaction, tree.Reaction) and reaction.code is not None
    assert reaction.code.text.strip() == body.strip()


def test_the_end_of_code_in_a_line_comment_counts() -> None:
    reaction, state = members('reaction(startup) {= // say "x =}\nstate n: string = "y"')
    assert isinstance(reaction, tree.Reaction) and isinstance(state, tree.State)
