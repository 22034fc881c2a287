"""How well a colour is seen on another."""

SHARES = {"red": 0.2126, "green": 0.7152, "blue": 0.0722}


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, ``#rrggbb``, from 1 to 21, as WCAG defines it."""
    bright, dim = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    luminance = 0.0
    for share, part in zip(SHARES.values(), bytes.fromhex(colour.removeprefix("#")), strict=True):
        luminance += share * _linear(part / 255)
    return luminance


def _linear(part: float) -> float:
    """Return how bright a part of a colour is, of how its file encodes it."""
    if part <= 0.04045:
        return part / 12.92
    return ((part + 0.055) / 1.055) ** 2.4
