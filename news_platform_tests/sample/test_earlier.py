"""The earlier survey is a finished one, and differs from what the outlet answers now."""

import json
from hashlib import sha256

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.sample.build import World
from news_platform.sample.research import earlier_survey, research_files
from news_platform.sample.rules import robots
from news_platform.web.robots import Robots

FOLDER = "country=ma/category=news/date=2025-11-01"


def test_its_facts_promise_the_files_that_lie_beside_them() -> None:
    files = earlier_survey()
    folder = f"{FOLDER}/almarsa.example"
    facts = DomainMetadata.model_validate_json(files[f"{folder}/domain_metadata.json"])
    assert facts.files == {
        name: sha256(files[f"{folder}/{name}"]).hexdigest() for name in ("robots.txt",)
    }
    assert facts.final and files[f"{folder}/domain_metadata.json.success"] == b""
    research = json.loads(research_files()[f"{FOLDER}/raw_0001.json"])
    assert [record["domain_id"] for record in research["records"]] == [facts.domain_id]


def test_three_crawlers_were_barred_since() -> None:
    before = Robots.parse(earlier_survey()[f"{FOLDER}/almarsa.example/robots.txt"]).ai_policies()
    now = Robots.parse(robots("marsa").body).ai_policies()
    changed = {bot for bot in now if now[bot].policy != before[bot].policy}
    assert changed == {"GPTBot", "Google-Extended", "OAI-SearchBot"}


def test_the_world_holds_it_beside_the_research(world: World) -> None:
    held = {path for path in world.files if path.startswith("surveyed/")}
    assert held == {f"surveyed/{path}" for path in earlier_survey()}
