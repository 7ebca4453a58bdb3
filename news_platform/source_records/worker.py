"""The entry module of worker processes: the job, with the language model already loaded.

Only worker processes import it. Loading the model takes a second, on a busy machine several;
starting a worker has its own deadline, so loading at import does not count against a page's.
Segmenting creates many objects and hardly any cycles: what is loaded here is excluded from garbage
collection, which then runs rarely.
"""

import gc

from news_platform.source_records.segment import segment_job
from news_platform.text.language import COMMON_LANGUAGES, detect

__all__ = ["segment_job"]

detect("ready")
detect("ready", COMMON_LANGUAGES)
gc.freeze()
gc.set_threshold(50_000)
