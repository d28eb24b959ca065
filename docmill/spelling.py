"""One spelling for what print writes in several ways: the copy of a text that is searched and compared.

Ligatures, full-width forms, compatibility ideographs and radicals that stand for whole characters (fonts map 长 to ⻓)
are the same word to a reader. What is shown and cited stays as printed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: Radicals that Unicode does not decompose, with the characters that they look like.
_RADICALS: Final = str.maketrans(
    "⺁⺄⺆⺈⺌⺍⺓⺗⺙⺝⺟⺠⺢⺤⺧⺨⺩⺪⺫⺬⺮⺯⺱⺲⺵⺷⺸⺺⺼⺾⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻏⻐⻑⻒⻓⻔⻖⻗⻘⻙⻚⻛⻜⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻬⻮⻰",
    "厂乙冂刀小小幺心攵月母民水爪牛犬玉疋目示竹糸网网网羊羊聿肉艹虎衣西西见角言讠贝足车辶阝钅长长长门阝雨青韦页风飞食食饣首首马骨鬼鱼鸟卤麦黄齐齿龙",
)
_RADICAL: Final = re.compile(f"[{''.join(map(chr, _RADICALS))}]")


def search_copy(text: str) -> str:
    """The text in one spelling; its length may differ."""
    # Rare, and a translation looks at every character, ten times as slowly as the search.
    whole = text.translate(_RADICALS) if _RADICAL.search(text) else text
    return unicodedata.normalize("NFKC", whole)
