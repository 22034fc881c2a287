"""What ``snakemake --report`` offers: every table and figure, with caption, category and labels."""

import json
import re

import pytest

from mdpu.pipeline.plan import PARTS

pytestmark = pytest.mark.slow

SHOWN = ("tables/*", "figures/*", "sheets/*/*", "*.csv", "report.html")


def embedded(page: str, name: str) -> dict:
    """Return a variable of the page's script."""
    start = re.search(rf"\bvar {name} ?= ?(?=\{{)", page)
    assert start is not None
    return json.JSONDecoder().raw_decode(page, start.end())[0]


def to_show(results) -> set[str]:
    """Return the tables and figures in a folder of results."""
    return {
        f"results/tiny/{file.relative_to(results)}"
        for pattern in SHOWN
        for file in results.glob(pattern)
    }


def test_it_offers_every_table_and_figure_with_a_caption_and_a_category(
    finished, tmp_path, monkeypatch
):
    """Proxies that lead nowhere stand for a machine without a network."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    finished.snakemake("--report", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    offered = embedded(page, "results")
    categories = embedded(page, "categories")
    assert set(offered) == to_show(finished.results)
    assert set(categories) == {PARTS["paper"], "Runs", "Data", "Evaluation", "Report"}
    listed = [file for group in categories.values() for files in group.values() for file in files]
    assert sorted(listed) == sorted(offered)
    for file, facts in offered.items():
        assert facts["data_uri"].startswith("data:"), file
        assert set(facts["labels"]) == {"Shown", "Format"}, file
        assert facts["labels"]["Format"] == file.rpartition(".")[2].upper(), file
        words = re.sub(r"<[^>]+>", " ", facts["caption"])
        assert len(words.split()) > 5, file
        assert "{{" not in words, file
        assert "system-message" not in facts["caption"], (
            f"{file}: docutils could not read its caption"
        )
