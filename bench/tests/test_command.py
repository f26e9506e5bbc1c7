"""Tests the command as a whole, over fake programs: its output, the results that it keeps, and its
status."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from fakes import Folder, bench_text, candidate
from harness import build, machine, show
from harness.result import check_schema
from harness.targets import Candidate, load

RATIO = 'name = "a ÷ b"\ntop = "a"\nbottom = "b"\nby = "min"\nreach = { first = 0.5 }'


class Whole(Folder):
    def two(
        self, a: str = "print('ns 4 5')", b: str = "print('ns 10 12')", **entries: object
    ) -> None:
        self.program("a", a)
        self.program("b", b)
        self.define(bench_text("x", [candidate("a"), candidate("b")], RATIO, **entries))

    def test_the_last_line_is_the_result(self):
        self.two()
        status, out, _ = self.run_bench("x", "--json")
        result = self.last_json(out)
        self.assertEqual(status, 0)
        self.assertEqual(check_schema(result), [])
        self.assertEqual(
            (result["bench"], result["ratio"], result["met"]), ("x", {"a ÷ b": 0.4}, True)
        )
        self.assertEqual(result["command"], "./run bench x --json")
        self.assertEqual(
            json.loads((self.root / "out/bench/x.json").read_text(encoding="utf-8")), result
        )

    def test_the_table_names_programs_figures_and_verdict(self):
        self.two()
        _, out, _ = self.run_bench("x")
        for word in ("a (peer)", "b (peer)", "a ÷ b", "0.4", "≤ 0.5", "reach of first met"):
            self.assertIn(word, out)

    def test_without_rich_the_table_is_plain(self):
        self.two(a="print('ns 9')")
        with mock.patch.object(show, "RICH", False):
            status, out, _ = self.run_bench("x")
        self.assertEqual(status, 0)
        for word in ("a (peer)", "a ÷ b", "0.9", "NOT MET", "0.9 is above 0.5"):
            self.assertIn(word, out)

    def test_not_met_is_status_0_and_1_with_check(self):
        self.two(a="print('ns 9')")
        self.assertEqual(self.run_bench("x")[0], 0)
        self.assertEqual(self.run_bench("x", "--check")[0], 1)

    def test_every_run_is_a_process_and_the_order_is_interleaved(self):
        log = self.root / "log"
        for name in "ab":
            self.program(name, f"open({str(log)!r}, 'a').write('{name}')\nprint('ns 1')")
        self.define(bench_text("x", [candidate("a"), candidate("b")], RATIO, rounds=3))
        self.run_bench("x")
        self.assertEqual(log.read_text(encoding="ascii"), "ababab")
        log.unlink()
        self.run_bench("x", "--runs", "2")
        self.assertEqual(log.read_text(encoding="ascii"), "abab")

    def test_programs_get_their_arguments(self):
        self.two(a="import sys; print('ns', *sys.argv[1:])")
        self.assertEqual(self.last_json(self.run_bench("x", "--json")[1])["ns"]["a"], 3.0)

    def test_another_amount_is_kept_beside_the_usual_one(self):
        self.two(a="import sys; print('ns', sys.argv[2])")
        usual = self.last_json(self.run_bench("x", "--json")[1])
        _, out, _ = self.run_bench("x", "--per", "1024", "--json")
        more = self.last_json(out)
        self.assertIn("of work 1024, in place of 5", " ".join(out.split()))
        self.assertEqual(more["ns"]["a"], 1024.0)
        self.assertEqual(more["command"], "./run bench x --json --per 1024")
        for name, result in (("x.json", usual), ("x.per-1024.json", more)):
            kept = json.loads((self.root / "out/bench" / name).read_text(encoding="utf-8"))
            self.assertEqual(kept, result)

    def test_quick_is_marked_and_does_not_replace_what_is_kept(self):
        self.two()
        self.run_bench("x")
        before = (self.root / "out/bench/x.json").read_text(encoding="utf-8")
        self.two(a="print('ns 8')")
        _, out, _ = self.run_bench("x", "--quick", "--json")
        result = self.last_json(out)
        self.assertTrue(result["quick"])
        self.assertEqual(result["command"], "./run bench x --json --quick")
        self.assertIn("not for comparing", out)
        self.assertEqual((self.root / "out/bench/x.json").read_text(encoding="utf-8"), before)

    def test_a_failing_program_is_told_and_the_others_are_measured(self):
        self.two(a="raise SystemExit('the network broke')")
        status, out, _ = self.run_bench("x", "--json")
        result = self.last_json(out)
        self.assertEqual(status, 1)
        self.assertEqual(result["failed"], ["a"])
        self.assertIn("the network broke", result["reasons"]["a"])
        self.assertEqual(result["ns"], {"a": None, "b": 10.0})

    def test_a_hanging_program_is_ended_and_told(self):
        self.two(a="import signal; signal.pause()", timeout=1)
        status, out, _ = self.run_bench("x", "--json")
        self.assertEqual(status, 1)
        self.assertIn("gave no result within 1 s", self.last_json(out)["reasons"]["a"])

    def test_all_benches_run_if_none_is_named(self):
        self.program("a", "print('ns 1')")
        self.define(bench_text("x", [candidate("a")]), bench_text("y", [candidate("a")]))
        _, out, _ = self.run_bench("--json")
        kept = sorted(p.name for p in (self.root / "out/bench").iterdir())
        self.assertEqual(kept, ["x.json", "y.json"])
        self.assertEqual(self.last_json(out)["bench"], "y")

    def test_another_milestone(self):
        self.two()
        result = self.last_json(self.run_bench("x", "--json", "--milestone", "later")[1])
        self.assertEqual((result["milestone"], result["reach"]), ("later", {}))


class MissingThings(Folder):
    def one(self, more: str) -> tuple[int, dict, str]:
        self.program("a", "print('ns 1')")
        self.program("b", "print('ns 1')")
        self.define(bench_text("x", [candidate("a"), candidate("b", more=more)], RATIO))
        status, out, err = self.run_bench("x", "--json")
        return status, self.last_json(out), err

    def test_a_module_that_is_not_installed(self):
        status, result, err = self.one('needs = ["module:no_such_module"]\n')
        self.assertEqual((status, result["met"], result["ratio"]), (0, False, {"a ÷ b": None}))
        self.assertIn("no_such_module is not installed (pip install", result["reasons"]["b"])
        self.assertIn("b skipped:", err)

    def test_a_command_that_is_not_installed(self):
        status, result, _ = self.one('needs = ["no-such-command"]\n')
        self.assertEqual((status, result["met"]), (0, False))
        self.assertIn("apt-get install no-such-command", result["reasons"]["b"])

    def test_a_program_that_a_candidate_starts_itself(self):
        self.program("a", "print('ns 1')")
        self.program("b", "import os; print('ns', len(os.environ['BENCH_HELPER']))")
        needs = 'needs = ["program:cpp/helper.cpp"]\n'
        self.define(bench_text("x", [candidate("a"), candidate("b", more=needs)], RATIO))
        built = []

        def build_it(_: build.Builder, c: Candidate) -> list[str]:
            built.append(c.source)
            return ["/a/path"]

        with mock.patch.object(build.Builder, "_cpp", build_it):
            status, out, _ = self.run_bench("x", "--json")
        result = self.last_json(out)
        self.assertEqual((status, built), (0, ["cpp/helper.cpp"]))
        self.assertEqual(result["ns"], {"a": 1.0, "b": 7.0})

    def test_go_that_is_not_installed(self):
        (self.bench / "peers").mkdir()
        go = 'name = "b"\nkind = "go"\nsource = "peers"\nargs = []\npeer = true'
        self.program("a", "print('ns 1')")
        self.define(bench_text("x", [candidate("a"), go], RATIO))
        with mock.patch.object(build.shutil, "which", lambda name: None):
            status, out, _ = self.run_bench("x", "--json")
        self.assertEqual(status, 0)
        self.assertIn(
            "skipped: go is not installed (apt-get install golang-go)",
            self.last_json(out)["reasons"]["b"],
        )

    def test_too_little_memory(self):
        with mock.patch.object(machine, "free_mb", lambda: 100):
            status, result, _ = self.one("memory_mb = 4000\n")
        self.assertEqual(status, 0)
        self.assertEqual(
            result["reasons"]["b"], "skipped: needs 4000 MB of memory, 100 MB are free"
        )

    def test_too_few_cpus(self):
        _, result, _ = self.one("cpus = 4096\n")
        self.assertIn("needs 4096 CPUs", result["reasons"]["b"])

    def test_a_source_that_is_not_there_is_an_error(self):
        self.program("a", "print('ns 1')")
        self.define(bench_text("x", [candidate("a"), candidate("b")], RATIO))
        status, out, _ = self.run_bench("x", "--json")
        self.assertEqual((status, self.last_json(out)["failed"]), (1, ["b"]))

    def test_our_library_that_is_not_there_is_an_error(self):
        (self.bench / "b.cpp").write_text("int main() {}", encoding="utf-8")
        ours = 'name = "b"\nkind = "cpp"\nsource = "b.cpp"\nargs = []'
        self.program("a", "print('ns 1')")
        self.define(bench_text("x", [candidate("a"), ours], RATIO))
        with mock.patch.object(build.shutil, "which", lambda name: f"/usr/bin/{name}"):
            status, out, _ = self.run_bench("x", "--json")
        self.assertEqual(status, 1)
        self.assertIn(
            "cpp/include/weft/weft.hpp does not exist", self.last_json(out)["reasons"]["b"]
        )

    def test_a_peer_on_the_users_path_is_found(self):
        peer = self.root / "peer"
        peer.mkdir()
        (peer / "a_peer_of_its_own.py").write_text("ns = 3", encoding="utf-8")
        self.program("a", "import a_peer_of_its_own as p; print('ns', p.ns)")
        self.program("b", "print('ns 6')")
        self.define(bench_text("x", [candidate("a"), candidate("b")], RATIO))
        with mock.patch.dict(build.os.environ, {"PYTHONPATH": str(peer)}):
            status, out, _ = self.run_bench("x", "--json")
        self.assertEqual(status, 0)
        self.assertEqual(self.last_json(out)["ratio"], {"a ÷ b": 0.5})

    def test_a_program_that_does_not_build_says_where(self):
        builder = build.Builder(self.bench, self.root / ".build", lambda text: None)
        with self.assertRaisesRegex(build.Broken, "failed: x.cpp:3: error: no"):
            builder._run(
                ["sh", "-c", "echo quiet; echo 'x.cpp:3: error: no'; exit 2"], self.root, {}
            )

    def test_what_does_not_build_is_tried_once(self):
        (self.bench / "b.cpp").write_text("int main() {}", encoding="utf-8")
        ours = 'kind = "cpp"\nsource = "b.cpp"\nargs = []\npeer = true'
        both = [f'name = "{name}"\n{ours}' for name in "ab"]
        candidates = self.load(bench_text("x", both, RATIO)).benches["x"].candidates
        tried = []

        def fail(argv, cwd, env):
            tried.append(argv[0])
            raise build.Broken("no")

        builder = build.Builder(self.bench, self.root / ".build", lambda text: None)
        with (
            mock.patch.object(builder, "_run", fail),
            mock.patch.object(build.shutil, "which", lambda name: f"/usr/bin/{name}"),
        ):
            for c in candidates:
                with self.assertRaises(build.Broken):
                    builder.program(c)
        self.assertEqual(tried, ["cmake"])

    def test_what_does_not_build_is_told_without_paths_of_this_machine(self):
        builder = build.Builder(self.bench, self.root / ".build", lambda text: None)
        expected = f"echo '{self.root}/bench/../cpp/x.hpp:3: error: no'; exit 2"
        with self.assertRaises(build.Broken) as caught:
            builder._run(["sh", "-c", expected], self.root, {})
        self.assertEqual(str(caught.exception), "sh -c failed: cpp/x.hpp:3: error: no")


class Usage(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.program("a", "print('ns 1')")
        self.define(bench_text("x", [candidate("a")]))

    def test_a_bench_that_does_not_exist(self):
        status, out, err = self.run_bench("zz")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("there is no bench 'zz'; there are: x", err)

    def test_bad_options(self):
        for args, word in (
            (["--runs", "0"], "at least 1"),
            (["--runs", "many"], "invalid int"),
            (["--no-run"], "--report"),
            (["--report", "--quick"], "leave --quick out"),
            (["--per", "0", "x"], "at least 1"),
            (["--per", "10"], "names of benches"),
            (["--per", "10", "x", "--report"], "leave --per out"),
        ):
            with self.subTest(args):
                status, _, err = self.run_bench(*args)
                self.assertEqual(status, 2)
                self.assertIn(word, err)

    def test_definitions_that_are_wrong(self):
        (self.bench / "targets.toml").write_text("[bench", encoding="utf-8")
        status, _, err = self.run_bench("x")
        self.assertEqual(status, 2)
        self.assertIn("targets.toml", err)

    def test_the_list_runs_nothing(self):
        status, out, _ = self.run_bench("--list")
        self.assertEqual(status, 0)
        self.assertIn("r (by min): ≤ 1 (first)", out)
        self.assertFalse((self.root / "out").exists())


class Report(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.program("a", "print('ns 1.5 2')")
        self.program("b", "print('ns 10')\nprint('bytes 248')")
        self.define(
            bench_text("x", [candidate("a"), candidate("b")], RATIO),
            bench_text("y", [candidate("a")]),
        )

    def text(self, page: str = "RESULTS.md") -> str:
        return (self.bench / page).read_text(encoding="utf-8")

    def test_measures_and_writes(self):
        status, _, err = self.run_bench("--report")
        self.assertEqual(status, 0)
        self.assertIn("RESULTS.md", err)
        for line in (
            "| x | a ÷ b | min | 0.15 | ≤ 0.5 | met |",
            "| y | r | min | 1.5 | ≤ 1 | NOT MET |",
        ):
            self.assertIn(line, self.text("TARGETS.md"))
            self.assertNotIn(line, self.text())
        for line in (
            "`./run bench x --json`",
            "| b (peer) | 10 | 10 | 10 | 248 |",
            "2 interleaved rounds",
        ):
            self.assertIn(line, self.text())
        self.assertIn("python ", self.text())
        self.assertNotIn(str(self.root), self.text())

    def headlines(self) -> None:
        path = self.bench / "targets.toml"
        lines = [
            ("ours; theirs", "x", "a", "b", "min", "ns"),
            ("late; theirs", "x", "a", "b", "p50", "ns"),
            ("bytes; theirs", "x", "a", "b", "max", "bytes"),  # the candidate `a` prints no bytes
        ]
        text = "".join(
            f'[[headline]]\nwhat = "{w}"\nbench = "{n}"\ntop = "{t}"\nbottom = "{o}"\nby = "{by}"\nof = "{of}"\n'
            for w, n, t, o, by, of in lines
        )
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    def test_it_opens_with_the_figures_a_reader_wants_and_their_picture(self):
        self.headlines()
        self.run_bench("--report")
        opening = self.text().partition("\n## x")[0]
        self.assertRegex(opening, r"Measured at commit ([0-9a-f]{12}( and changes)?|unknown)\.")
        self.assertIn("- ours: 1.5 ns; theirs: 10 ns, 6.67 times as long.\n", opening)
        self.assertIn("- late: 1.5 ns; theirs: 10 ns, 6.67 times as long (median).\n", opening)
        self.assertIn("- Not measured: bytes; theirs.\n", opening)
        self.assertIn("](plots/headline.svg)", opening)
        self.assertIn("figures are within what was asked", self.text("TARGETS.md"))
        picture = (self.bench / "plots/headline.svg").read_text(encoding="utf-8")
        root = ElementTree.fromstring(picture)
        bars = [e for e in root.iter() if e.tag.endswith("rect")][1:]
        self.assertEqual(len(bars), 2)
        self.assertIn("smaller is better", picture)

    def test_results_of_several_commits_are_named_each(self):
        self.run_bench()
        kept = self.root / "out/bench/x.json"
        kept.write_text(
            json.dumps({**json.loads(kept.read_text(encoding="utf-8")), "commit": "feedbeef"}),
            encoding="utf-8",
        )
        self.run_bench("--report", "--no-run")
        self.assertIn("Measured at 2 commits", self.text())
        self.assertIn("Commit: feedbeef.", self.text())

    def test_what_is_kept_by_another_version_is_not_reported(self):
        self.run_bench()
        kept = self.root / "out/bench/x.json"
        result = json.loads(kept.read_text(encoding="utf-8"))
        del result["commit"]
        kept.write_text(json.dumps(result), encoding="utf-8")
        _, _, err = self.run_bench("--report", "--no-run")
        self.assertIn("x.json is of another version", err)
        self.assertIn("| x | not measured |", self.text("TARGETS.md"))

    def test_a_bench_that_was_not_measured_here_keeps_its_result(self):
        self.run_bench("--report")
        results = self.bench / "results"
        self.assertEqual(sorted(p.name for p in results.iterdir()), ["x.json", "y.json"])
        for path in (self.root / "out/bench").iterdir():
            path.unlink()  # this file is missing in a fresh checkout too
        self.program("a", "print('ns 4 5')")
        self.run_bench("x", "--report")
        self.assertIn("| x | a ÷ b | min | 0.4 | ≤ 0.5 | met |", self.text("TARGETS.md"))
        self.assertIn("| y | r | min | 1.5 | ≤ 1 | NOT MET |", self.text("TARGETS.md"))
        kept = json.loads((results / "x.json").read_text(encoding="utf-8"))
        self.assertEqual(kept["ns"], {"a": 4.0, "b": 10.0})

    def test_a_quick_result_is_not_put_among_the_results(self):
        self.run_bench("x", "--quick")
        self.run_bench("--report", "--no-run")
        self.assertEqual(list((self.bench / "results").iterdir()), [])

    def test_from_what_is_kept(self):
        self.run_bench("x")
        self.assertEqual(self.run_bench("--report", "--no-run")[0], 0)
        self.assertIn("| x | a ÷ b | min | 0.15 |", self.text("TARGETS.md"))
        self.assertIn("| y | not measured |", self.text("TARGETS.md"))


class Ours(unittest.TestCase):
    """The project's own definitions can be listed and reported without measuring anything."""

    def test_listing(self):
        all_ = load(Path(__file__).resolve().parent.parent / "targets.toml")
        listing = show.listing(all_)
        for bench in all_.benches.values():
            self.assertIn(bench.title, listing)
        self.assertIn("| cpp-ring | not measured |", show.asked(all_, {}))


class Numbers(unittest.TestCase):
    def test_how_a_figure_is_shown(self):
        for value, text in (
            (None, "–"),
            (0.0371, "0.0371"),
            (9.14, "9.14"),
            (123.4, "123"),
            (28_345.6, "28,346"),
        ):
            with self.subTest(value):
                self.assertEqual(show.number(value), text)


if __name__ == "__main__":
    unittest.main()
