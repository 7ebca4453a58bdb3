"""Write the JSON Schemas of the survey's messages and files; a test keeps them up to date.

Run `python docs/schemas/export.py`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.research_datasets import (
    DomainQueueMessage,
    EnhancedResearchDataset,
    SeedQueueMessage,
)

FOLDER = Path(__file__).parent
MODELS: tuple[type[BaseModel], ...] = (
    EnhancedResearchDataset,
    SeedQueueMessage,
    DomainQueueMessage,
    DomainMetadata,
)


def schemas() -> Mapping[str, str]:
    """Return the text of every schema by its file name."""
    return {
        f"{model.__name__}.json": json.dumps(model.model_json_schema(), indent=2) + "\n"
        for model in MODELS
    }


def main() -> None:
    """Write all schemas."""
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
