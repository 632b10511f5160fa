"""Small programs that stand for kode-ls on other systems: each prints `kode-ls VERSION` and ends.

Rule: those for Linux run. Those for Windows and macOS have the headers of a program alone, for tools that read the machine.
"""

import struct

BASE = 0x400000


def elf(machine: str, version: str) -> bytes:
    """A static program for Linux on `x86-64` or `arm64`."""
    text = f"kode-ls {version}\n".encode()
    if machine == "x86-64":
        number = 62
        # write(1, text, length), exit(0); the text follows the 33 bytes of code.
        code = b"\xb8\x01\0\0\0" b"\xbf\x01\0\0\0" + b"\x48\x8d\x35" + struct.pack("<I", 16)
        code += b"\xba" + struct.pack("<I", len(text)) + b"\x0f\x05" b"\xb8\x3c\0\0\0" b"\x31\xff" b"\x0f\x05"
    else:
        number = 183
        length = 0xD2800002 | len(text) << 5
        # The same, with the text 28 bytes behind the second instruction.
        words = [0xD2800020, 0x100000E1, length, 0xD2800808, 0xD4000001, 0xD2800000, 0xD2800BA8, 0xD4000001]
        code = struct.pack("<8I", *words)
    size = 120 + len(code) + len(text)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, number, 1, BASE + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
    return header + code + text


def pe(version: str) -> bytes:
    """The headers of a program for Windows on x86-64."""
    return b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", 0x8664) + version.encode()


def mach_o(machine: str, version: str) -> bytes:
    """The header of a program for macOS on `x86-64` or `arm64`."""
    return b"\xcf\xfa\xed\xfe" + struct.pack("<I", {"x86-64": 0x01000007, "arm64": 0x0100000C}[machine]) + version.encode()
