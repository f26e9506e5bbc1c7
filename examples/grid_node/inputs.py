"""The input files: frames of two phasor measurement units, and a recorded disturbance, in realistic
sizes.

A line is hit at `FAULT`: the voltage of both stations sags for `LASTS` seconds, that of station 50
far more; the frequency swings. The tests compute the written values again by the same functions,
and from them the node's results.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

NOMINAL = 230_940.0  # volts from a phase to earth, of a 400 kV line
SOC = 1_790_000_000  # the frames begin at this second
FAULT, LASTS = 4.0, 0.8  # the beginning of the fault, and how long it lasts, in seconds
# The share of the voltage that remains at each station during the fault. Stations are named by
# their rates.
DEPTH = {50: 0.62, 60: 0.93}
NOISE = 0.002
FRAME = struct.Struct(">HHHIIH12f2f")


def times(rate: int, seconds: float) -> np.ndarray:
    """Returns the times at which frames were measured, to the microsecond."""
    return np.floor(np.arange(round(rate * seconds)) * 1e6 / rate) / 1e6


def volts(station: int, at: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng([seed, station]).normal(0, NOISE, len(at))
    hit = (at >= FAULT) & (at < FAULT + LASTS)
    return np.where(hit, DEPTH[station], 1.0) + noise


def hertz(at: np.ndarray) -> np.ndarray:
    after = np.maximum(at - FAULT, 0)
    return 50 - 0.4 * np.exp(-after / 3) * np.sin(2 * after) * (after > 0)


def crc_ccitt(data: bytes) -> int:
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def is_broken(k: int) -> bool:
    """Returns whether a byte of the frame was changed on the line, as happens to every 500th
    frame."""
    return k % 500 == 499


def write_frames(path: Path, station: int, seconds: float, seed: int) -> int:
    """Writes one station's frames; returns their number."""
    at = times(station, seconds)
    level, frequency = volts(station, at, seed) * NOMINAL, hertz(at)
    out = bytearray(b"\0 not yet a frame \xaa\x01")  # a node can begin to listen at any byte
    for k, t in enumerate(at):
        phasors = []
        for phase in range(3):
            phasors += [level[k], -2 * np.pi * phase / 3]
        for phase in range(3):
            phasors += [1000.0, -2 * np.pi * phase / 3 - 0.3]
        second, micro = divmod(round(t * 1e6), 1_000_000)
        frame = FRAME.pack(
            0xAA01, FRAME.size + 2, station, SOC + second, micro, 0, *phasors, frequency[k], 0.0
        )
        frame += struct.pack(">H", crc_ccitt(frame))
        if is_broken(k):
            frame = frame[:20] + bytes([frame[20] ^ 0xFF]) + frame[21:]
        out += frame
    path.write_bytes(out)
    return len(at)


RATE = 6400  # samples a second of the record
PEAK = 32_000  # the peak of a sample, which has 16 bits


def wave(seconds: float, seed: int) -> np.ndarray:
    """Returns the voltage of phase A at the faulty line, sample by sample."""
    at = np.arange(round(RATE * seconds)) / RATE
    hit = (at >= seconds / 4) & (at < seconds / 4 + 0.2)
    level = np.where(hit, 0.3, 1.0) * NOMINAL * np.sqrt(2)
    noise = np.random.default_rng([seed, RATE]).normal(0, NOISE * NOMINAL, len(at))
    return level * np.sin(2 * np.pi * 50 * at) + noise


def write_record(path: Path, seconds: float, seed: int) -> int:
    """Writes a disturbance as a COMTRADE record of 1999 (`path` without suffix: .cfg and .dat,
    binary); returns the number of samples.
    """
    scale = 1.5 * NOMINAL / PEAK
    voltage = wave(seconds, seed)
    n = len(voltage)
    shift = round(RATE / 50 / 3)
    channels = [np.roll(voltage, k * shift) for k in range(3)] + [
        np.full(n, 1000.0 * (k + 1)) for k in range(3)
    ]
    names = ["VA", "VB", "VC", "IA", "IB", "IC"]
    lines = ["GRID NODE,EXAMPLE,1999", "6,6A,0D"]
    for k, name in enumerate(names):
        unit, a = ("V", scale) if k < 3 else ("A", 0.1)
        lines.append(f"{k + 1},{name},{name[1]},,{unit},{a:.9g},0,0,-{PEAK},{PEAK},1,1,P")
    lines += ["50", "1", f"{RATE},{n}"]
    second, micro = divmod(round(seconds / 4 * 1e6), 1_000_000)
    lines += ["24/09/2026,11:33:20.000000", f"24/09/2026,11:33:{20 + second}.{micro:06d}"]
    lines += ["BINARY", "1"]
    path.with_suffix(".cfg").write_text("\r\n".join(lines) + "\r\n", encoding="ascii")
    table = np.zeros(n, dtype=[("n", "<u4"), ("t", "<u4"), ("v", "<i2", 6)])
    table["n"] = np.arange(1, n + 1)
    table["t"] = np.arange(n) * 1_000_000 // RATE
    for k, samples in enumerate(channels):
        table["v"][:, k] = np.round(samples / (scale if k < 3 else 0.1))
    path.with_suffix(".dat").write_bytes(table.tobytes())
    return n
