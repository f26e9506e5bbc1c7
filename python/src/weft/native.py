"""Native components: processes in C++ that run without the GIL, and meet Python's processes at
ordinary channels (rule 16).

    import weft.native
    filter = weft.native.load("filter.cpp")   # built if it has changed; or a library, "filter.so";
                                              # or a name, "filter", "package.filter"
    run(source(-a), filter.scale(+a, -b, factor=0.5), sink(+b))

<weft/component.hpp>, which is in `include_dir()`, says what a component is, and how to write one.

Invariant: the declarations of a component are checked once, when it is loaded. A factory checks its
arguments when it is called, so that they are right by the time that the process runs.
"""

from __future__ import annotations

import functools
import importlib.machinery
import inspect
import itertools
import keyword
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from weft._components import host_runner as _native_hosts
from weft._components import stack as _native_stack
from weft._components.build import build, cmake_dir, include_dir
from weft._components.stubs import stub_of
from weft._components.types import class_of, type_text
from weft._extension import native as _native
from weft.errors import BadUse, WeftError

__all__ = ["Component", "ComponentError", "build", "cmake_dir", "include_dir", "load", "write_stub"]

# the annotation of `on`: the places that away_to() accepts
_ON = "str | Hosts | OneHost | Supervisor"
_SOURCES = (".cpp", ".cc", ".cxx", ".C")
_LIBRARIES = (".so", ".dylib", ".dll")
_VALUE, _READER, _WRITER, _BARRIER = 0, 1, 2, 3  # weft_role of component_abi.h
# the attributes of a Component, which are no names for processes
_TAKEN = {"path", "compiler", "processes", "_capsule", "_source"}
_THREADS, _POOL = 1, 4  # the values of Kind::thread and Kind::pooled in process.hpp


class ComponentError(WeftError):
    """Raised if a C++ exception left a process of a component. The attributes are the names of the
    component and its process, the type of the exception, and its message.
    """

    def __init__(self, component: str, process: str, type: str, message: str) -> None:
        text = f"process {process} of component {component}: {type or 'an exception'}"
        super().__init__(f"{text}: {message}" if message else text)
        self.component = component  #: the name of the component
        self.process = process  #: the name that the component gave the process
        self.type = type  #: the type of the C++ exception, such as `std::runtime_error`
        self.message = message  #: the exception's what()

    def __reduce__(self) -> Any:
        return type(self), (self.component, self.process, self.type, self.message)


def _failed(component: str, process: str, type: str, text: str) -> ComponentError:
    # WEFT_THROWN_AT separates the message from the stack.
    message, _, stack = text.partition("\x1e")
    error = ComponentError(component, process, type, message)
    return _native_stack.through(error, stack) if stack else error


_native._set_component_error(_failed)


class Component(ModuleType):
    """A loaded component: a module with a process function for each of its processes."""

    _capsule: Any
    _source: tuple[Path, tuple[str, ...]] | None  # the source, if it was built from one, and flags
    path: str  #: the path of the library
    compiler: str  #: the compiler that built it, and its version
    processes: tuple[str, ...]  #: the names of the processes
    __all__: list[str]

    def __repr__(self) -> str:
        return f"<component {self.__name__} of {self.path}: {', '.join(self.processes)}>"


def _found(path: str | os.PathLike[str]) -> Path:
    """Returns the file at a path, or, for a name, the file where a module of that name would be.

    Raises:
        BadUse: nothing of that name exists.
    """
    parts = path.split(".") if isinstance(path, str) else []
    named = bool(parts) and all(part.isidentifier() for part in parts)
    if not named or f".{parts[-1]}" in (*_SOURCES, *_LIBRARIES) or Path(path).exists():
        return Path(path)
    where: Sequence[str] = sys.path
    for i in range(1, len(parts)):  # the packages above the name are not imported here
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:i]), where)
        if spec is None or spec.submodule_search_locations is None:
            raise BadUse(
                f"load: there is no component {path!r}: {'.'.join(parts[:i])} is not a package that can be imported"
            )
        where = spec.submodule_search_locations
    for folder in where:
        for suffix in (*_LIBRARIES, *_SOURCES):
            if (file := Path(folder) / (parts[-1] + suffix)).is_file():
                return file
    looked = ", ".join(folder or "." for folder in where)
    raise BadUse(
        f"load: there is no component {path!r}: no {parts[-1]}.so and no {parts[-1]}.cpp in {looked}; "
        "give the path of its library or of its source"
    )


def load(
    path: str | os.PathLike[str],
    *,
    debug: bool = False,
    flags: tuple[str, ...] = (),
    types: tuple[type, ...] = (),
) -> Component:
    """Loads the component in a library. A C++ source is built first, if it or a file that it
    includes has changed.

    A name without a suffix, such as "filter" or "package.filter", is looked for where Python would
    look for a module of that name: first its library, then its source. Loading a library again
    gives another module over the same code.

    Args:
        path: the path of the library or the source, or a name.
        debug, flags: for the compiler, only with a source: see build().
        types: dataclasses or NamedTuples of the program, for aggregates of the component
            (WEFT_FIELDS). For the component's other aggregates the module contains dataclasses,
            under their names.

    Raises:
        BadUse: there is no such file or name; the library is not a component; it was built for
            another version of the component ABI; its declaration is not valid; it has no aggregate
            like one of `types`; or the source does not compile (the message contains the compiler's
            message).
    """
    file = _found(path)
    if not file.exists():
        raise BadUse(
            f"load: there is no file {file}; give a component's library, or its source to build it"
        )
    if file.is_dir():
        raise BadUse(f"load: {file} is a directory; give a component's library, or its source")
    source = None
    if file.suffix in _SOURCES:
        source = file, tuple(flags)
        file = build(file, debug=debug, flags=flags)
    elif flags or debug:
        raise BadUse(f"load: flags and debug are for the compiler, and {file} is built already")
    library = str(file.resolve())
    capsule, name, doc, compiler, declared = _native._component_open(library)
    _check_names(name, declared)
    aggregates = _aggregates(name, declared, types)
    made = Component(name, doc)
    made._capsule = capsule
    made._source = source
    made.path = library
    made.compiler = compiler
    made.processes = tuple(entry[0] for entry in declared)
    made.__file__ = library
    # help() shows the names in `__all__`.
    made.__all__ = [*made.processes, *(class_.__name__ for class_ in aggregates)]
    for class_ in aggregates:
        setattr(made, class_.__name__, class_)
    for number, entry in enumerate(declared):
        setattr(made, entry[0], _factory(made, library, number, entry))
    return made


def write_stub(component: Component, folder: str | os.PathLike[str] = ".") -> Path:
    """Writes the stub file of a component, NAME.pyi, into a folder, and returns its path. A type
    checker uses it where the program says

        if TYPE_CHECKING:
            import filter
        else:
            filter = weft.native.load("filter.cpp")

    Raises:
        BadUse: `component` is not a component, there is no such folder, the file to be replaced is
            not a stub of a component, or the stub cannot be written.
    """
    if not isinstance(component, Component):
        raise BadUse(f"write_stub: expected what weft.native.load returns, got {component!r}")
    if not Path(folder).is_dir():
        raise BadUse(f"write_stub: there is no folder {folder}")
    path = Path(folder) / f"{component.__name__}.pyi"
    try:
        if path.exists() and "weft.native.write_stub" not in path.read_text(
            encoding="utf-8", errors="replace"
        ):
            raise BadUse(f"write_stub: {path} is there, and was not written by it: move it away")
        path.write_text(stub_of(component), encoding="utf-8")
    except OSError as error:
        raise BadUse(f"write_stub: cannot write {path}: {error.strerror}") from None
    return path


def _check_names(component: str, declared: list[Any]) -> None:
    """Raises BadUse for names that Python cannot use. The error names the process that has such a
    name.
    """
    seen: set[str] = set()
    for process, _, _, _, parameters, _ in declared:
        names = [p[0] for p in parameters]
        for n in (process, *names):
            if not n.isidentifier() or keyword.iskeyword(n):
                raise BadUse(
                    f"load: component {component}, process {process}: {n!r} is not a name in Python; give another"
                )
        for n in names:
            if names.count(n) > 1 or n in ("on", "cpu"):
                what = "taken by load() itself" if n in ("on", "cpu") else "there twice"
                raise BadUse(
                    f"load: component {component}, process {process}: the argument {n!r} is {what}; give it another name"
                )
        for one, other in itertools.pairwise(parameters):
            if one[4] and not other[4]:
                raise BadUse(
                    f"load: component {component}, process {process}: the argument {one[0]!r} has a default and {other[0]!r}, which comes "
                    'after it, has none. (In .argument("name", "text") the text is what help() says of it; a text as the default '
                    'is std::string("text"))'
                )
        if process in seen or process in _TAKEN or process.startswith("__"):
            raise BadUse(
                f"load: component {component}: the name {process!r} is taken; give that process another"
            )
        seen.add(process)


def _aggregates(component: str, declared: list[Any], own: tuple[type, ...]) -> list[type]:
    """Returns the classes of a component's aggregates. Classes in `own`, which the program has
    given, are used first.
    """
    types = {
        text: name
        for entry in declared
        for parameter in entry[4]
        for text, name, _, _ in _native._native_aggregates(parameter[5])
    }
    for class_ in own:
        text = type_text(class_)
        if text in types:
            continue
        has = sorted(_native._native_describe(t) for t in types) or ["none"]
        raise BadUse(
            f"load: component {component} has no aggregate {_native._native_describe(text)}; it has {', '.join(has)}"
        )
    taken = {*_TAKEN, *(entry[0] for entry in declared)}
    for name in types.values():
        if name in taken or list(types.values()).count(name) > 1:
            raise BadUse(
                f"load: component {component}: the name {name!r} of an aggregate is taken; give it another"
            )
    return [class_of(text) for text in types]


def _signature(capsule: Any, process: int, parameters: list[Any], on: str) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    ends = {_READER: "Reader[{}]", _WRITER: "Writer[{}]", _BARRIER: "Barrier"}
    made = [
        inspect.Parameter(
            name,
            kind,
            default=_native._component_default(capsule, process, i)
            if has_default
            else inspect.Parameter.empty,
            annotation=ends.get(role, "{}").format(type_),
        )
        for i, (name, role, type_, _, has_default, _) in enumerate(parameters)
    ]
    only = inspect.Parameter.KEYWORD_ONLY
    made.append(inspect.Parameter("on", only, default=on, annotation=_ON))
    made.append(inspect.Parameter("cpu", only, default=None, annotation="int | None"))
    return inspect.Signature(made, return_annotation="Process")


def _doc(doc: str, where: str, parameters: list[Any]) -> str:
    lines = [doc or "A process of a native component."]
    if any(text for _, _, _, text, _, _ in parameters):
        lines += ["", "Parameters:"]
        lines += [f"    {name}: {text}" for name, _, _, text, _, _ in parameters if text]
    lines += ["", f"Declared at {where}."]
    return "\n".join(lines)


def _cpu(cpu: object) -> int:
    if cpu is None:
        return -1
    from weft._hosts.host import cpus_of_this_process  # imported late: most components name no CPU

    usable = cpus_of_this_process()
    if not isinstance(cpu, int) or cpu not in usable:
        raise BadUse(f"cpu={cpu!r}: this program may use the CPUs {sorted(usable)}")
    return cpu


# A check replaces this function (weft._checking): it refuses a process that is not on the pool.
def _made(name: str, on: Any, capsule: Any, number: int, given: tuple[Any, ...], cpu: Any) -> Any:
    return _native._component_call(capsule, number, given, cpu)


def _factory(made: Component, library: str, number: int, entry: Any) -> Callable[..., Any]:
    capsule, component = made._capsule, made.__name__
    name, doc, file, line, parameters, coroutine = entry
    signature = _signature(capsule, number, parameters, "pool" if coroutine else "thread")

    def factory(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() of component {component}: {error}") from None
        bound.apply_defaults()
        *values, on, cpu = bound.arguments.values()
        if getattr(on, "_way", "") == "board":
            return on.placed_component(made, name, signature, parameters)(*values)
        if isinstance(on, str) and on not in ("thread", "pool", "process", "processes"):
            raise BadUse(
                f"{name}(on={on!r}): a native process runs on='thread', on='pool', on='process' (an OS process of its own), "
                "on weft.processes.Hosts, on one of them, or with a weft.processes.Supervisor"
            )
        if on == "pool" and not coroutine:
            raise BadUse(
                f"{name}(on='pool'): it is a function, which waits where it stands and would hold up all that share its thread; "
                "on the pool run coroutines (weft/component_tasks.hpp)"
            )
        if on == "pool" and cpu is not None:
            raise BadUse(f"{name}(cpu={cpu!r}): on the pool it shares its thread; say on='thread'")
        given = tuple(values)
        here = _made(name, on, capsule, number, given, _cpu(cpu))
        ends = [v for v, p in zip(values, parameters, strict=True) if p[1] in (_READER, _WRITER)]
        if on == "pool":
            return _native.ProcessFunction(here, name, _POOL)(*ends)
        call: Any = _native_hosts.Call(here, library, component, number, name, given, _cpu(cpu))
        if on != "thread":
            from weft._hosts.processes import away_to

            call = away_to(call, "processes" if on == "process" else on)
        return _native.ProcessFunction(call, name, _THREADS)(*ends)

    def on(where: Any) -> Any:
        if getattr(where, "_way", "") == "board":  # the source is compiled for the board now
            return where.placed_component(made, name, signature, parameters)
        return functools.partial(factory, on=where)

    factory.on = on  # type: ignore[attr-defined]
    factory.__name__ = factory.__qualname__ = name
    factory.__module__ = component
    factory.__doc__ = _doc(doc, f"{file}:{line}", parameters)
    factory.__signature__ = signature  # type: ignore[attr-defined]
    factory.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return factory
