"""Languages as file names of subtitles give them: en, eng, English, pt-BR. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Language", "find_language"]


@dataclass(frozen=True, slots=True)
class Language:
    """A language.

    Attributes:
        tag: of BCP 47.
        name: in English.
    """

    tag: str
    name: str


# Two letters (ISO 639-1), three letters (639-2, both kinds where they differ), English name.
_TABLE: Final = """
ar ara Arabic|bg bul Bulgarian|bn ben Bengali|bs bos Bosnian|ca cat Catalan|cs cze ces Czech
da dan Danish|de ger deu German|el gre ell Greek|en eng English|es spa Spanish|et est Estonian
eu baq eus Basque|fa per fas Persian|fi fin Finnish|fr fre fra French|gl glg Galician
he heb Hebrew|hi hin Hindi|hr hrv Croatian|hu hun Hungarian|id ind Indonesian|is ice isl Icelandic
it ita Italian|ja jpn Japanese|ko kor Korean|lt lit Lithuanian|lv lav Latvian|mk mac mkd Macedonian
ml mal Malayalam|ms may msa Malay|nb nob Norwegian|nl dut nld Dutch|no nor Norwegian|pl pol Polish
pt por Portuguese|ro rum ron Romanian|ru rus Russian|sk slo slk Slovak|sl slv Slovenian
sq alb sqi Albanian|sr srp Serbian|sv swe Swedish|ta tam Tamil|te tel Telugu|th tha Thai
tr tur Turkish|uk ukr Ukrainian|ur urd Urdu|vi vie Vietnamese|zh chi zho Chinese
"""
_REGIONS: Final = {"br": "Brazil", "pt": "Portugal", "mx": "Mexico", "tw": "Taiwan", "cn": "China"}


def _by_word() -> dict[str, Language]:
    found: dict[str, Language] = {}
    for row in _TABLE.replace("\n", "|").strip("|").split("|"):
        *codes, name = row.split()
        language = Language(codes[0], name)
        found |= dict.fromkeys([*codes, name.casefold()], language)
    return found


_BY_WORD: Final = _by_word()


def find_language(words: Sequence[str]) -> Language | None:
    """The language that one of these words names, and the region if the next word does.

    The first counts that names one; "hi" is Hindi only where it stands alone, since beside another
    language it says that the subtitles are for the hard of hearing.
    """
    for at, word in enumerate(words):
        language = _BY_WORD.get(word.casefold())
        if language is None:
            continue
        region = words[at + 1].casefold() if at + 1 < len(words) else ""
        if region in _REGIONS and len(word) == 2:
            return Language(
                f"{language.tag}-{region.upper()}", f"{language.name} ({_REGIONS[region]})"
            )
        return language
    return None
