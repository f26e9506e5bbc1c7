"""Tests the output of tools/image.py against the UF2 and RP2040 documents, and its messages for
unusable input. Usage: image.py FLASH.elf TOOL
"""

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

elf, tool = Path(sys.argv[1]), sys.argv[2]
passed = failed = 0


def check(name: str, ok: bool) -> None:
    global passed, failed
    passed, failed = passed + ok, failed + (not ok)
    if not ok:
        print("FAIL", name)


def crc(data: bytes) -> int:
    """Returns the CRC-32/MPEG-2 by its definition on a big integer: without a table, and without
    the loop of the tool."""
    value = int.from_bytes(data, "big") << 32 ^ 0xFFFFFFFF << 8 * len(data)
    for bit in range(8 * len(data) + 31, 31, -1):
        if value >> bit & 1:
            value ^= 0x104C11DB7 << bit - 32
    return value


with tempfile.TemporaryDirectory() as folder:
    out, flat = Path(folder, "x.uf2"), Path(folder, "x.bin")
    subprocess.run([sys.executable, tool, elf, out, flat], check=True)
    memory, blocks = flat.read_bytes(), out.read_bytes()
    check("whole blocks", len(blocks) % 512 == 0 and len(blocks) // 512 == -(-len(memory) // 256))
    for i in range(len(blocks) // 512):
        b = blocks[512 * i : 512 * (i + 1)]
        head = struct.unpack_from("<8I", b)
        good = head == (
            0x0A324655,
            0x9E5D5157,
            0x2000,
            0x10000000 + 256 * i,
            256,
            i,
            len(blocks) // 512,
            0xE48BFF56,
        )
        check(
            f"block {i}",
            good
            and b[508:] == struct.pack("<I", 0x0AB16F30)
            and b[32:288] == memory[256 * i : 256 * (i + 1)].ljust(256, b"\0"),
        )
    check("boot code's checksum", struct.unpack_from("<I", memory, 252)[0] == crc(memory[:252]))
    check("the check of the check: CRC of 123456789", crc(b"123456789") == 0x0376E6E7)
    stack, reset = struct.unpack_from("<2I", memory, 256)
    check(
        "vectors behind it",
        stack == 0x20042000 and 0x10000100 < reset < 0x10001000 and reset & 1 == 1,
    )
    bad = Path(folder, "bad.elf")
    bad.write_bytes(b"not an ELF file at all")
    answer = subprocess.run([sys.executable, tool, bad, out], capture_output=True, text=True)
    check(
        "not an ELF file",
        answer.returncode != 0 and "ELF" in answer.stderr and "Traceback" not in answer.stderr,
    )
    answer = subprocess.run([sys.executable, tool], capture_output=True, text=True)
    check("usage", answer.returncode != 0 and "image.py" in answer.stderr)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
