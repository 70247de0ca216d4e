"""Names are readable and distinct."""

import pytest

from lm_eval_rag.tasks.ruleqa import names


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("<James_Welch_(writer)>", "James Welch (writer)"),
        ("<En_la_mente__del_asesino>", "En la mente del asesino"),
        (r"<Take_the_\u0022A\u0022_Train>", 'Take the "A" Train'),
    ],
)
def test_yago_entities(raw: str, name: str) -> None:
    assert names.plain(raw) == name


def test_yago_relations() -> None:
    assert names.camel("<isAffiliatedTo>") == "is affiliated to"
    assert names.camel("<owns>") == "owns"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Teacher-GB", "Teacher"),
        ("harry redknapp/comments", "harry redknapp"),
        ('"George ""Gabby"" Hayes"', 'George "Gabby" Hayes'),
        ('"babe" didrickson zaharias', '"babe" didrickson zaharias'),
        ("Waffen-SS", "Waffen-SS"),
        ("St.\xa0Louis", "St. Louis"),
    ],
)
def test_labels_without_leftovers(raw: str, name: str) -> None:
    assert names.tidy(raw) == name


@pytest.mark.parametrize(
    ("raw", "name", "category"),
    [
        ("concept_personus_jon_garland", "jon garland", "person US"),
        ("concept_writer_v__s__naipaul", "v s naipaul", "writer"),
        ("concept_person_jean001", "jean", "person"),
        ("concept_date_n2003", "2003", "date"),
        ("concept_country_uae_", "uae", "country"),
        ("concept_chemical__", "chemical", "chemical"),
        ("concept_televisionstation_cbs58", "cbs58", "television station"),
        ("81", "81", ""),
    ],
)
def test_nell_entities(raw: str, name: str, category: str) -> None:
    assert names.nell_entity(raw) == (name, category)


@pytest.mark.parametrize(
    ("glued", "words"),
    [
        ("agriculturalproductgrowinginstateorprovince", "agricultural product growing in state or province"),
        ("teamplaysincity", "team plays in city"),
        ("animalistypeofanimal", "animal is type of animal"),
        ("politicianusholdsoffice", "politician US holds office"),
        ("sportschoolincountry", "sport school in country"),
        ("xyzzy", "xyzzy"),
    ],
)
def test_glued_words(glued: str, words: str) -> None:
    assert names.segment(glued) == words


def test_freebase_relations_are_as_short_as_keeps_them_apart() -> None:
    paths = [
        "/people/person/place_of_birth",
        "/film/film/genre",
        "/tv/tv_program/genre",
        "/award/award_category/winners./award/award_honor/award_winner",
        "/people/person/spouse_s./people/marriage/spouse",
        "/soccer/football_team/current_roster./sports/sports_team_roster/position",
        "/american_football/football_team/current_roster./sports/sports_team_roster/position",
    ]
    assert list(names.freebase_relations(dict(enumerate(paths))).values()) == [
        "place of birth",
        "film genre",
        "TV program genre",
        "winners award winner",
        "spouses",
        "soccer football team current roster position",
        "american football team current roster position",
    ]


def test_even_paths_that_read_alike_get_two_names() -> None:
    told = names.freebase_relations({0: "/a/b_c/d", 1: "/a/b/c_d"})
    assert len(set(told.values())) == 2


def test_descriptions_are_cut() -> None:
    assert names.short("county in New York, United States of America") == "county in New York"
    assert names.short("one two three four five six seven eight nine") == "one two three four five six seven eight"


def test_names_that_collide_are_told_apart() -> None:
    given = {5: "Drama", 1: "drama", 2: "London", 3: "Forward", 4: "Forward", 6: "Forward (2)"}
    hints = {5: "film genre", 1: "film genre"}
    assert names.unique(given, lambda id: hints.get(id, "")) == {
        1: "drama (film genre)",
        2: "London",
        3: "Forward",
        4: "Forward (2)",
        5: "Drama (film genre) (2)",
        6: "Forward (2) (2)",
    }
    assert names.unique({}) == {}
