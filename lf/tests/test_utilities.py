"""Tests of the utilities that programs name by /lib/c/reactor-c/, as they come with upstream's
runtime: those of this package have the same names and meaning."""

from __future__ import annotations

import array
import os
import subprocess
import wave
from pathlib import Path

import pytest
from conftest import Write, model

from weft_lf import build as building
from weft_lf.build import Wanted, build, includes
from weft_lf.errors import LfError

UTILITIES = Path(building.__file__).with_name("util")
PROGRAM = """target C { keepalive: true, files: ["/lib/c/reactor-c/include/core/utils/vector.h",
  "/lib/c/reactor-c/core/utils/vector.c", "/lib/c/reactor-c/util/initialize_from_file.h",
  "/lib/c/reactor-c/util/initialize_from_file.c", "/lib/c/reactor-c/util/wave_file_reader.h",
  "/lib/c/reactor-c/util/wave_file_reader.c", "/lib/c/reactor-c/util/sensor_simulator.h",
  "/lib/c/reactor-c/util/sensor_simulator.c", "/lib/c/reactor-c/util/audio_loop.h",
  "/lib/c/reactor-c/util/audio_loop_linux.c"] }
preamble {=
  #include "vector.c"
  #include "initialize_from_file.c"
  #include "wave_file_reader.c"
  #include "sensor_simulator.c"
  #include "audio_loop_linux.c"
=}
main reactor {
  physical action key: char*
  state text: string = ""
  reaction(startup) -> key {=
    vector_t v = vector_new(0);
    for (size_t i = 1; i <= 100; i++) vector_push(&v, (void *)i);
    void *more[] = {(void *)101, (void *)102};
    vector_pushall(&v, more, 2);
    for (int i = 0; i < 200; i++) vector_vote(&v);
    LF_TEST(vector_pop(&v) == (void *)102 && vector_size(&v) == 101, "vector");
    LF_TEST(*vector_at(&v, 99) == (void *)100 && *vector_at(&v, 200) == 0, "at");
    LF_TEST(vector_size(&v) == 201, "size");
    vector_free(&v);

    const char *rows = LF_SOURCE_DIRECTORY "/rows.csv";
    double a = 0, b = 0;
    int n = 0, m = 0;
    LF_TEST(lf_initialize_double(rows, ',', 1, &a, &b, NULL) == 2 && a == 1.5 && b == -2, "double");
    LF_TEST(lf_initialize_int(rows, ',', 2, &n, &m, NULL) == 1 && n == 7, "int");
    LF_TEST(lf_initialize_string(rows, ',', 3, &self->text, NULL) == 1, "string");
    LF_TEST(!strcmp(self->text, "a b"), "%s", self->text);
    LF_TEST(lf_initialize_int(rows, ',', 0, &n, NULL) == -1, "no number");
    LF_TEST(lf_initialize_int(rows, ',', 9, &n, NULL) == -1, "no row");
    LF_TEST(lf_initialize_int("nothing.csv", ',', 0, &n, NULL) == -1, "no file");

    lf_waveform_t *wave = read_wave_file(LF_SOURCE_DIRECTORY "/two.wav");
    LF_TEST(wave && wave->length == 3 && wave->num_channels == 1, "wave");
    LF_TEST(wave->waveform[1] == -2, "samples");
    lf_start_audio_loop(lf_time_logical());
    lf_play_audio_waveform(wave, 2, lf_time_logical());
    lf_play_audio_waveform(NULL, 0.5f, lf_time_logical());
    lf_stop_audio_loop();
    free(wave->waveform), free(wave);
    LF_TEST(!read_wave_file(rows), "no wave");

    const char *lines[] = {"press x"};
    start_sensor_simulator(lines, 1, 2, 0, LOG_LEVEL_INFO);
    LF_TEST(register_sensor_key('\\0', key) == 0 && register_sensor_key('\\0', key) == 1, "keys");
    LF_TEST(register_sensor_key('\\t', key) == 2 && register_sensor_key('y', 0) == 3, "no keys");
    show_tick("*");
    show_tick(".");
    show_tick("!");
  =}
  reaction(key) {=
    lf_print("key %c", *key->value);
    if (*key->value == 'x') lf_request_stop();
  =}
  reaction(shutdown) {= end_sensor_simulator(); =}
}
"""


def test_vector_rows_waves_sound_and_keys(write: Write, tmp_path: Path) -> None:
    """The utilities work in one program, whose standard input contains the keys."""
    path = write(PROGRAM)
    (tmp_path / "rows.csv").write_bytes(b'a,b\n1.5, -2\n 7\r\n"a b",\n')
    with wave.open(str(tmp_path / "two.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(44100)
        file.writeframes(b"\1\0\xfe\xff\3\0")
    built = build(model(path), Wanted(quick=True))
    assert built.program is not None and built.warnings == []
    ran = subprocess.run(
        [str(built.program)],
        input="ax",
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_LF_AUDIO": f"cat >{tmp_path}/heard"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "press x\n*.\n!\nkey a\nkey x\n"
    lines = [line.rpartition("/")[2] for line in ran.stderr.splitlines()]
    assert lines == [
        'rows.csv, row 0: "a" is no number',
        "rows.csv has no row 9",
        "ERROR: nothing.csv cannot be read",
        "rows.csv: it is no wave file",
    ]
    samples = array.array("h", (tmp_path / "heard").read_bytes())
    assert len(samples) % 4410 == 0
    assert [s for s in samples if s] == [16382 + 2, -4, 6]  # the tick and the note, twice as loud


SET = """target C
preamble {=
#include "hashset/hashset.h"
#include "hashset/hashset_itr.h"
=}
main reactor {
  reaction(startup) {=
    static char own[4096];
    static bool in[4096];
    hashset_t set = hashset_create(0);
    size_t size = 0;
    uint32_t random = 12345;
    for (int round = 0; round < 100000; round++) {
      random = random * 1664525 + 1013904223;
      size_t i = (random >> 8) % (round < 50000 ? 4096 : 64);
      bool add = random >> 31;
      int done = add ? hashset_add(set, &own[i]) : hashset_remove(set, &own[i]);
      LF_TEST(done == (in[i] != add), "round %d", round);
      size += add && !in[i], size -= !add && in[i];
      in[i] = add;
      LF_TEST(hashset_is_member(set, &own[i]) == add && hashset_num_items(set) == size, "member");
    }
    LF_TEST(hashset_add(set, NULL) == -1 && hashset_add(set, (void *)1) == -1, "no items");
    LF_TEST(!hashset_remove(set, NULL) && !hashset_is_member(set, (void *)1), "no members");
    hashset_itr_t it = hashset_iterator(set);
    LF_TEST(!hashset_iterator_value(it), "before the first");
    size_t seen = 0;
    for (; hashset_iterator_has_next(it); seen++) {
      LF_TEST(hashset_iterator_next(it) >= 0, "next");
      char *item = hashset_iterator_value(it);
      LF_TEST(in[item - own], "item");
      in[item - own] = false;
    }
    LF_TEST(seen == size && size > 1000 && hashset_iterator_next(it) == -1, "%zu seen", seen);
    free(it);
    size_t slots = 0; // A program may look at the slots itself.
    for (size_t i = 0; i < set->capacity; i++) slots += (uintptr_t)set->items[i] > 1;
    LF_TEST(slots == size, "slots");
    hashset_destroy(set);
    hashset_destroy(NULL);
  =}
}
"""


def test_a_set_of_pointers(write: Write) -> None:
    """A program includes the hash set without naming any file, as upstream. The set agrees with an
    array of flags: first it grows, then items are added and removed again and again."""
    built = build(model(write(SET)), Wanted(quick=True))
    assert built.program is not None and built.warnings == []
    ran = subprocess.run([str(built.program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", sorted(UTILITIES.glob("*.c")), ids=lambda p: p.stem)
def test_each_is_a_file_of_its_own_too(path: Path) -> None:
    """Each utility also compiles without a program around it."""
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(path)]
    ran = subprocess.run([*command, *includes(UTILITIES)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_cmake_code_adds_each() -> None:
    for path in UTILITIES.glob("*.cmake"):
        added = path.read_text().rpartition("/")[2].split(")")[0]
        assert (UTILITIES / added).suffix == ".c" and (UTILITIES / added).exists()


def test_what_is_not_here_is_told(write: Write) -> None:
    path = write('target C { files: "/lib/c/reactor-c/util/nothing.c" }\nmain reactor { }\n')
    with pytest.raises(LfError, match=r"nothing\.c' is not here") as caught:
        build(model(path), Wanted(compile=False))
    assert "vector.c" in str(caught.value.problems[0].hint)
