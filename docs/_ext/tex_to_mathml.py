"""Formulas as MathML, which browsers draw and read aloud by themselves: no script, no network, no
image.
"""

from __future__ import annotations

from re import sub
from xml.etree import ElementTree

from latex2mathml.converter import Converter

PARTS = {
    "mfrac": 2,
    "mroot": 2,
    "msub": 2,
    "msup": 2,
    "msubsup": 3,
    "mover": 2,
    "munder": 2,
    "munderover": 3,
}


def to_mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, to be displayed "inline" or as a "block".

    Raises
    ------
    ValueError
        If something of the formula would be lost, or drawn as another letter.
    """
    if tex.count("{") != tex.count("}"):
        raise ValueError("braces do not match")
    # the form in which latex2mathml knows these letters
    braced = sub(r"\\math(bb|cal) (\w)", r"\\math\1{\2}", tex)
    try:
        formula = ElementTree.fromstring(Converter(xmlns="", display=display).convert(braced))
    except Exception as error:  # latex2mathml's errors have no common class and no text
        raise ValueError(type(error).__name__) from error
    for node in formula.iter():
        if "\\" in (node.text or "") or node.get("mathvariant", "normal") != "normal":
            raise ValueError(f"{node.text} cannot be converted")
        if len(node) != PARTS.get(node.tag, len(node)):
            raise ValueError(f"a part of {node.tag} is missing")
        if node.tag == "mrow":
            _set_spaces(node)
    return ElementTree.tostring(formula, encoding="unicode")


def _set_spaces(row: ElementTree.Element) -> None:
    """Leave the spaces that TeX leaves: thin ones around a function's name, none around a slash or
    after a sign.
    """
    for before, node, after in zip([None, *row], row, [*row[1:], None], strict=False):
        text = node.text or ""
        follows_operator = before is None or (before.tag == "mo" and before.text not in (")", "]"))
        if node.tag == "mo" and text in ("/", ".", ":"):
            node.attrib.update(lspace="0", rspace="0")
        elif node.tag == "mo" and text in ("+", "-", "−") and follows_operator:
            node.set("form", "prefix")
        elif node.tag in ("mi", "mo") and len(text) > 1 and text.isalpha():
            opens = after is not None and after.text in ("(", "[")
            node.tag = "mo"
            node.attrib.update(
                lspace="0" if follows_operator else "0.167em", rspace="0" if opens else "0.167em"
            )
