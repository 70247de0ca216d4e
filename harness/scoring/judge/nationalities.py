"""Countries and their adjectives: "German" and "Germany" answer a question for a nationality or a country alike."""

from __future__ import annotations

import re
from functools import lru_cache

_ASKS = re.compile(
    r"\b(?:nationality|nationalities|citizenship"
    r"|(?:which|what) country (?:is|was|are|were|did|do|does)\b.*\b(?:from|born))\b"
)
_TABLE = """afghan afghanistan, albanian albania, algerian algeria, american america, argentine argentina, argentinian
argentina, armenian armenia, australian australia, austrian austria, azerbaijani azerbaijan, bangladeshi bangladesh,
belarusian belarus, belgian belgium, bolivian bolivia, bosnian bosnia, brazilian brazil, british britain, bulgarian
bulgaria, cambodian cambodia, cameroonian cameroon, canadian canada, chilean chile, chinese china, colombian colombia,
croatian croatia, cuban cuba, cypriot cyprus, czech czechia, danish denmark, dutch netherlands, ecuadorian ecuador,
egyptian egypt, english england, estonian estonia, ethiopian ethiopia, finnish finland, french france, georgian georgia,
german germany, ghanaian ghana, greek greece, hungarian hungary, icelandic iceland, indian india, indonesian indonesia,
iranian iran, iraqi iraq, irish ireland, israeli israel, italian italy, jamaican jamaica, japanese japan, jordanian
jordan, kazakh kazakhstan, kenyan kenya, latvian latvia, lebanese lebanon, lithuanian lithuania, malaysian malaysia,
mexican mexico, moroccan morocco, nigerian nigeria, norwegian norway, pakistani pakistan, peruvian peru, filipino
philippines, polish poland, portuguese portugal, romanian romania, russian russia, scottish scotland, senegalese
senegal, serbian serbia, singaporean singapore, slovak slovakia, slovenian slovenia, somali somalia, spanish spain,
swedish sweden, swiss switzerland, syrian syria, thai thailand, tunisian tunisia, turkish turkey, ukrainian ukraine,
uruguayan uruguay, venezuelan venezuela, vietnamese vietnam, welsh wales"""
COUNTRIES = dict(pair.split() for pair in _TABLE.split(","))
_ADJECTIVES = re.compile(rf"\b(?:{'|'.join(COUNTRIES)})\b", re.IGNORECASE)
_AMERICA = re.compile(r"\b(?:the )?(?:united states(?: of america)?|u\.s\.(?:a\.?)?|usa\b)", re.IGNORECASE)
_BRITAIN = re.compile(r"\b(?:the )?(?:united kingdom|great britain|u\.k\.|uk\b)", re.IGNORECASE)


@lru_cache(maxsize=1 << 12)
def asks_nationality(question: str) -> bool:
    """Whether a question asks for a nationality, or for the country that somebody is from."""
    return bool(_ASKS.search(question.lower()))


def with_countries(text: str) -> str:
    """The text with countries for their adjectives: "He is German" -> "He is Germany"."""
    text = _BRITAIN.sub("Britain", _AMERICA.sub("America", text))
    return _ADJECTIVES.sub(lambda word: COUNTRIES[word[0].lower()].title(), text)
