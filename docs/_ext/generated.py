"""Parts of the reference that are made from the code: configuration keys, the command line,
docstrings.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mdpu.pipeline.cli import _parser
from mdpu.pipeline.config import BASE_FILES, load_yaml, merge, schema
from mdpu.pipeline.files import resource
from mdpu.pipeline.show import available_kinds, load_kind

Schema = Mapping[str, Any]
LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


class ConfigurationKeys(SphinxDirective):
    """``configuration-keys``: every key of the schema, with what it takes, its default and its
    meaning.
    """

    def run(self) -> list[nodes.Node]:
        """Return one section for each key of the top level."""
        return self.parse_text_to_nodes(
            "\n".join(configuration_page()), allow_section_headings=True
        )


class CommandLine(SphinxDirective):
    """``command-line``: every command with its arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return one section for each command."""
        return self.parse_text_to_nodes(command_line_page(), allow_section_headings=True)


def command_line_page() -> str:
    """Return the help of each command in Markdown."""
    (commands,) = (action for action in _parser()._actions if isinstance(action.choices, Mapping))
    return "\n".join(
        f"## {name}\n\n```text\n{own.format_help()}```\n" for name, own in commands.choices.items()
    )


# -- configuration ---------------------------------------------------------------------------------


def configuration_page() -> Iterator[str]:
    """Yield the lines of the page: a heading for each key of the top level, below it the keys that
    it holds.
    """
    content = with_options(schema())
    defaults = reduce(merge, (load_yaml(resource(name)) for name in BASE_FILES))
    for key, value in content["properties"].items():
        first, *others = key_rows(key, value, defaults.get(key), content["$defs"])
        yield f"## {key}\n"
        yield f"{first[1]}\n"
        for name, text in others:
            yield f"`{name}`\n: {text}\n"


def with_options(content: Schema) -> Schema:
    """Return the schema with the options of every kind of experiment, which the kinds themselves
    define.
    """
    content, options = copy.deepcopy(content), {}
    for name in available_kinds():
        for key, value in load_kind(name).options.items():
            options[key] = {**value, "title": f"Of the kind `{name}`. {value['title']}"}
    experiment = content["properties"]["definitions"]["properties"]["experiments"][
        "additionalProperties"
    ]
    experiment["properties"]["options"]["properties"] = options
    return content


def key_rows(key: str, value: Schema, default: Any, defs: Schema) -> Iterator[tuple[str, str]]:
    """Yield each key with what is said of it: this one, and those inside it."""
    whole = resolved(value, defs)
    meaning = whole.get("title", "")
    if key.startswith("definitions") and (repeated := repeats(value)):
        yield key, f"{meaning} Holds the keys of `{repeated}`.".strip()
        return
    taken = taken_values(whole, defs)
    shown = (
        "" if default is None or isinstance(default, dict) else f"Default: `{as_yaml(default)}`."
    )
    if said := " ".join(part for part in (meaning, taken and f"Takes {taken}.", shown) if part):
        yield key, said
    inside = default if isinstance(default, Mapping) else {}
    for inner, below in properties(whole, defs).items():
        yield from key_rows(f"{key}.{inner}", below, inside.get(inner), defs)
    if isinstance(others := whole.get("additionalProperties"), Mapping):
        yield from key_rows(f"{key}.<name>", others, None, defs)


def repeats(value: Schema) -> str:
    """Return which part of the protocol a key repeats, or an empty text."""
    parts = [value, *value.get("anyOf", [])]
    names = {part.get("$ref", "").rsplit("/", 1)[-1] for part in parts}
    return (
        "protocol" if "protocol" in names else "protocol.reporting" if "reporting" in names else ""
    )


def as_yaml(value: Any) -> str:
    """Return a value as YAML on one line."""
    return (
        yaml.safe_dump(value, default_flow_style=True, width=1000)
        .removesuffix("\n")
        .removesuffix("\n...")
    )


def resolved(value: Schema, defs: Schema) -> Schema:
    """Return what a reference refers to; keys beside it win."""
    if "$ref" not in value:
        return value
    return {
        **resolved(defs[value["$ref"].rsplit("/", 1)[1]], defs),
        **{k: v for k, v in value.items() if k != "$ref"},
    }


def properties(value: Schema, defs: Schema) -> dict[str, Schema]:
    """Return the keys that a mapping may hold, those of all its alternatives."""
    found = dict(value.get("properties", {}))
    for part in (*value.get("allOf", []), *value.get("anyOf", [])):
        for key, inner in properties(resolved(part, defs), defs).items():
            found.setdefault(key, inner)
    return found


def taken_values(value: Schema, defs: Schema) -> str:
    """Return in words what a key takes."""
    value = resolved(value, defs)
    if "const" in value or "enum" in value:
        return " or ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    if "anyOf" in value:
        return ", or ".join(
            dict.fromkeys(filter(None, (taken_values(part, defs) for part in value["anyOf"])))
        )
    kinds = value.get("type", [])
    if kinds == "object" or not kinds:
        return ""
    if kinds == "array":
        return f"a list of {taken_values(value['items'], defs)}"
    words = {
        "string": "text",
        "integer": "an integer",
        "number": "a number",
        "boolean": "true or false",
        "null": "null",
    }
    text = " or ".join(words[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    limits = [f"{word} {value[limit]:,}" for limit, word in LIMITS.items() if limit in value]
    return " ".join([text, " and ".join(limits)]).strip()


# -- docstrings ------------------------------------------------------------------------------------


def escape_priors(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Escape pi_+ and the like outside of code, where reStructuredText would read a link."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        parts[::2] = [re.sub(r"(pi|mean)_(?=[+-])", r"\1\\_", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def skip_inherited(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool:
    """Leave out the methods that scikit-learn adds to route metadata."""
    return skip or bool(re.fullmatch(r"set_\w+_request", name))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("configuration-keys", ConfigurationKeys)
    app.add_directive("command-line", CommandLine)
    app.connect("autodoc-process-docstring", escape_priors)
    app.connect("autodoc-skip-member", skip_inherited)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
