#!/usr/bin/env python3
"""Turn a linked image into a file for a Pico: `image.py IN.elf OUT.uf2 [OUT.bin]`.

Reads the loadable segments of a 32-bit little-endian ELF file, fills in the checksum of the
second-stage boot code of a flash image (CRC-32 with polynomial 0x04c11db7, start 0xffffffff, not
reflected, over the first 252 bytes), and writes UF2 blocks of 256 bytes for the RP2040 (family
0xe48bff56). The optional .bin is the same memory as one block from the lowest address.
"""

import struct
import sys
from pathlib import Path

FLASH, FAMILY = 0x10000000, 0xE48BFF56


def segments(elf: bytes) -> list[tuple[int, bytes]]:
    """Returns (physical address, contents) of every loadable segment with contents, by address."""
    if elf[:6] != b"\x7fELF\x01\x01":
        raise SystemExit("image.py: not a 32-bit little-endian ELF file")
    (phoff,) = struct.unpack_from("<I", elf, 28)
    phentsize, phnum = struct.unpack_from("<HH", elf, 42)
    found = []
    for i in range(phnum):
        kind, offset, _, physical, filesz = struct.unpack_from("<5I", elf, phoff + i * phentsize)
        if kind == 1 and filesz:
            found.append((physical, elf[offset : offset + filesz]))
    if not found:
        raise SystemExit("image.py: nothing to load in this ELF file")
    return sorted(found)


def crc32_mpeg2(data: bytes) -> int:
    """Computes CRC-32/MPEG-2, which the boot ROM checks (RP2040 datasheet, 2.8.1.3.1)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc


def flat(parts: list[tuple[int, bytes]]) -> tuple[int, bytes]:
    """Returns one block from the lowest address. Gaps are zero; the checksum of the boot code is
    filled in.
    """
    base = parts[0][0]
    memory = bytearray(max(a + len(d) for a, d in parts) - base)
    for address, data in parts:
        memory[address - base : address - base + len(data)] = data
    if base == FLASH:
        memory[252:256] = struct.pack("<I", crc32_mpeg2(bytes(memory[:252])))
    return base, bytes(memory)


def uf2(base: int, memory: bytes) -> bytes:
    count = (len(memory) + 255) // 256
    blocks = []
    for i in range(count):
        chunk = memory[i * 256 : (i + 1) * 256].ljust(256, b"\0")
        head = struct.pack(
            "<8I", 0x0A324655, 0x9E5D5157, 0x2000, base + i * 256, 256, i, count, FAMILY
        )
        blocks.append(head + chunk.ljust(476, b"\0") + struct.pack("<I", 0x0AB16F30))
    return b"".join(blocks)


def main(argv: list[str]) -> None:
    if len(argv) not in (3, 4):
        raise SystemExit(__doc__)
    with Path(argv[1]).open("rb") as f:
        base, memory = flat(segments(f.read()))
    with Path(argv[2]).open("wb") as f:
        f.write(uf2(base, memory))
    if len(argv) == 4:
        with Path(argv[3]).open("wb") as f:
            f.write(memory)


if __name__ == "__main__":
    main(sys.argv)
