from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib

import pytest

from discreet import plots
from discreet.errors import InvalidParameter

CHART = plots.profile({"steep": ([0, 1, 2], [0.5, 0.01, 1e-4]), "flat": ([0, 1, 2], [0.5, 0.2, 0.1])}, title="Two")


def png_chunks(data: bytes) -> dict[bytes, bytes]:
    """Read a PNG by hand: chunks of length, name, content, checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (checksum,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert checksum == zlib.crc32(name + content)
        chunks[name] = chunks.get(name, b"") + content
        at += 12 + size
    return chunks


def test_a_png_is_a_picture_with_ink_on_it(tmp_path):
    plots.save(CHART, tmp_path / "chart.png")
    chunks = png_chunks((tmp_path / "chart.png").read_bytes())
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    assert (width, height) > (900, 600), "two pixels to one of the chart"
    assert len(set(zlib.decompress(chunks[b"IDAT"]))) > 50, "blank paper has few different bytes"


def test_an_svg_has_the_lines_the_labels_and_the_axes(tmp_path):
    plots.save(CHART, tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    for part in ("<svg", "<path", "Two", "steep", "flat", "privacy loss ε (nats)", "δ (probability)", "#0072B2"):
        assert part.lower() in drawn.lower()


@pytest.mark.long
def test_a_page_needs_no_network(tmp_path):
    plots.save(CHART, tmp_path / "chart.HTML")
    page = (tmp_path / "chart.HTML").read_text()
    assert "steep" in page
    assert 'src="http' not in page


def test_json_is_the_chart_itself(tmp_path):
    plots.save(CHART, str(tmp_path / "chart.json"))
    assert json.loads((tmp_path / "chart.json").read_text()) == json.loads(CHART.to_json())


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.png.exe", ".png"])
def test_another_suffix_is_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(InvalidParameter, match=r"\.png, \.svg, \.html, \.json"):
        plots.save(CHART, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["discreet", "discreet.plots", "discreet.statistics.guarantee_charts"])
def test_altair_is_loaded_only_to_draw(module):
    loaded = f"import {module}, sys; print([m for m in ('altair', 'vl_convert', 'pandas') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
