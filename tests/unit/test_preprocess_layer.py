"""A text layer is believed until the shapes of its glyphs speak against it."""

from __future__ import annotations

import pymupdf
import pytest

from preprocess.fonts import facts_of_page
from preprocess.glyphs import read_glyphs
from preprocess.layer import Layer, agreement, is_unreadable
from preprocess.shapes import Doubt, speak_against
from tests import pdfs
from tests.fonts import CHINESE, LATIN, mapped_pdf

ENGLISH = "Total exposure 1,482,930.55 as of 2024-06-30, and 8,812,345.67 is due"
DIGITS = dict(zip("0123456789", "7390182564", strict=True))
SWAPPED = {"3": "8", "8": "3"}


def looked_at(data: bytes) -> Doubt:
    """How the glyphs of the first font of a file speak: against it, digits among them, all."""
    page = pymupdf.open(stream=data, filetype="pdf")[0]
    glyphs = {glyph.char: glyph for line in read_glyphs(page).visible for glyph in line.glyphs}
    return speak_against(page.get_displaylist(), {char: glyph for char, glyph in glyphs.items() if char.isalnum()})


def names_of(page: pymupdf.Page) -> set[str]:
    return {font for line in read_glyphs(page).visible for font, _ in line.fonts}


@pytest.mark.parametrize("font", LATIN)
def test_an_honest_font_has_no_glyph_against_it(font: str) -> None:
    assert looked_at(mapped_pdf(ENGLISH, font)).digits == 0
    assert not looked_at(mapped_pdf(ENGLISH, font)).is_serious


def test_digits_that_are_mapped_to_other_digits_speak_against_their_font() -> None:
    assert looked_at(mapped_pdf(ENGLISH, "helv", DIGITS)).digits >= 8
    assert looked_at(mapped_pdf(ENGLISH, "tiro", SWAPPED)).is_serious


def test_chinese_characters_that_are_mapped_to_others_speak_against_their_font() -> None:
    honest = "截至报告期末贷款余额为人民币1,234,567.89万元"
    others = dict(zip(honest[:12], honest[3:12] + honest[:3], strict=True))
    assert not looked_at(mapped_pdf(honest, CHINESE)).is_serious
    assert looked_at(mapped_pdf(honest, CHINESE, others)).is_serious


def test_chinese_characters_that_are_mapped_to_strangers_speak_against_their_font() -> None:
    printed, claimed = "贷款余额截至报告期末", "芠慳宦鞛槮硬訟踪粿嵱"
    assert looked_at(mapped_pdf(printed, CHINESE, dict(zip(printed, claimed, strict=True)))).is_serious


def test_a_map_that_moves_every_character_by_one_is_glanced_at_and_found_out() -> None:
    moved = {char: chr(ord(char) + 1) for char in ENGLISH}
    page = pymupdf.open(stream=mapped_pdf(ENGLISH, "helv", moved), filetype="pdf")[0]
    (facts,) = facts_of_page(page, names_of(page)).values()
    assert facts.look > 0
    assert looked_at(mapped_pdf(ENGLISH, "helv", moved)).is_serious


def test_fonts_with_a_standard_encoding_are_not_looked_at() -> None:
    page = pymupdf.open(stream=pdfs.text_pdf(ENGLISH), filetype="pdf")[0]
    assert {facts.look for facts in facts_of_page(page, names_of(page)).values()} == {0}


def test_a_page_whose_characters_have_no_meaning_is_unreadable() -> None:
    page = pymupdf.open(stream=mapped_pdf(ENGLISH, "helv", {}, keep_map=False), filetype="pdf")[0]
    assert is_unreadable(read_glyphs(page).visible)
    page = pymupdf.open(stream=pdfs.text_pdf(ENGLISH), filetype="pdf")[0]
    assert not is_unreadable(read_glyphs(page).visible)


def test_ocr_is_not_asked_about_scripts_that_it_does_not_know() -> None:
    """It reads Cyrillic as Latin letters that look alike, and would prove an honest layer false."""
    assert agreement("Выручка 1,234.50", "BbIpyuka 1,234.50") == (1.0, 1.0)
    assert agreement("Выручка 1,234.50", "BbIpyuka 7,890.12")[1] < 0.87


def test_a_minus_that_is_mapped_to_a_control_character_makes_its_number_unreliable() -> None:
    page = pymupdf.open(stream=mapped_pdf("Loss -1,250.40", "helv", {"-": "\x03"}, simple=True), filetype="pdf")[0]
    layer, lines = Layer(), read_glyphs(page).visible
    assert not layer.lies(page, lines)
    assert layer.unreliable(lines) == ["-1,250.40"]


def test_readings_agree_by_their_letters_and_by_their_digits() -> None:
    assert agreement("Amount １,２３４ due", "amount 1,234 DUE") == (1.0, 1.0)
    whole, digits = agreement("Total exposure at default 3,169,407.88", "Total exposure at default 1,482,930.55")
    assert whole > 0.7 > digits
