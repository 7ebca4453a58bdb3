"""What a worker process imports, and nobody else: the job, with the language model loaded.

Loading takes a second, many on a busy machine. A worker's start has a deadline of its own, so done
here, at import, it is on no page's account. Pages make many objects and hardly a cycle: what is
loaded is never looked through for garbage, and the rest seldom.
"""

import gc

from news_platform.source_records.snapshot import segment_job
from news_platform.text.language import detect

__all__ = ["segment_job"]

detect("ready")
gc.freeze()
gc.set_threshold(50_000)
