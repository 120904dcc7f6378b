"""docs/traits.md is what the trait table says."""

from pathlib import Path

from gradcheck_plus.report.traits_page import page
from gradcheck_plus.traits import TRAITS

PAGE = Path(__file__).parents[2] / "docs" / "traits.md"


def test_the_page_is_current() -> None:
    """If this fails: python -m gradcheck_plus.report.traits_page > docs/traits.md."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_names_every_trait_once_in_its_table() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]

    assert [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")] == list(TRAITS)
