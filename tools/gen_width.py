#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints src/tui/term/width_table.def: how many cells a code point takes, from the Unicode data of this Python."""
import unicodedata


def kind(cp):
    ch = chr(cp)
    category = unicodedata.category(ch)
    if cp < 0x20 or 0x7F <= cp < 0xA0 or category in ("Cf", "Zl", "Zp", "Cs") or 0xFE00 <= cp <= 0xFE0F or \
            0xE0000 <= cp <= 0xE0FFF or cp in (0x115F, 0x1160, 0x3164, 0xFFA0, 0x034F, 0x17B4, 0x17B5) or \
            0xFFF0 <= cp <= 0xFFF8 or (cp & 0xFFFE) == 0xFFFE or 0xFDD0 <= cp <= 0xFDEF:
        return "WIDTH_ESCAPE"
    if category in ("Mn", "Me") or 0x1160 < cp <= 0x11FF or 0xD7B0 <= cp <= 0xD7FF:
        return "WIDTH_MARK"
    if unicodedata.east_asian_width(ch) in "WF" or 0x1F3FB <= cp <= 0x1F3FF:
        return "WIDTH_WIDE"
    return None


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Made by tools/gen_width.py from Unicode %s; do not edit. What is not listed takes one cell. */" %
          unicodedata.unidata_version)
    start, current = 0, None
    for cp in range(0x110001):
        k = kind(cp) if cp <= 0x10FFFF else None
        if k != current:
            if current:
                print("{0x%05x, 0x%05x, %s}," % (start, cp - 1, current))
            start, current = cp, k


main()
