"""units: numbers as they are written, exactly, and the integers that the model makes of them."""
import math
import re
from fractions import Fraction

DTYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1}

UNITS = {
    "time": {"ps": Fraction(1, 10**12), "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000),
             "s": Fraction(1)},
    "size": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 2**10, "MB": 2**20, "GB": 2**30},
    "rate": {"B/s": 1, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12},
    "clock": {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9},
    "length": {"um": Fraction(1, 10**6), "mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1)},
}
# What a bare number of a key stands in.
SUFFIXES = {"ns": ("time", "ns"), "bytes": ("size", "B"), "kb": ("size", "KiB"), "mb": ("size", "MiB"),
            "gb": ("size", "GiB"), "gbs": ("rate", "GB/s"), "ghz": ("clock", "GHz"), "mm": ("length", "mm")}


def number(text):
    text = text.replace("_", "")
    return Fraction(int(text, 16)) if text.lower().startswith("0x") else Fraction(text)


def quantity(key, text):
    """A value in the base unit of its key's dimension: seconds, bytes, bytes/s, Hz, metres."""
    dimension, unit = SUFFIXES[key.rsplit("_", 1)[1]]
    found = re.fullmatch(r"(0x[0-9a-fA-F_]+|[0-9_.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z/]*)", text)
    return number(found[1]) * UNITS[dimension][found[2] or unit]


def half_up(value):
    return math.floor(value + Fraction(1, 2))


def ceil_div(a, b):
    return -(-a // b)


def round64(size):
    return ceil_div(size, 64) * 64


def ps_of(key, text):
    return half_up(quantity(key, text) * 10**12)


def rate_of(key, text):
    """Bytes/s, or None when there is no limit."""
    return None if text in ("~", "null", "") else half_up(quantity(key, text))


def move_ps(size, rate):
    return 0 if rate is None else ceil_div(size * 10**12, rate)


def slower(*rates):
    """The least of some rates, of which None is infinite."""
    return min((rate for rate in rates if rate is not None), default=None)


def cycles_ps(cycles, khz):
    return ceil_div(cycles * 10**9, khz)
