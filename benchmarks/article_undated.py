"""Pages that state no day of publication, by id: an extractor must not invent one for them."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

# Documentation, service and listing pages that were looked at and state no day of publication; of
# some only a version, a course or the last change has a day.
UNDATED = re.findall(
    r"\S+",
    "0029 0053 0062 0066 0076 0077 0082 0084 0087 0088 0102 0112 0117 0132 "
    "0135 0148 0169 0193 0194 0216 0220 0225 0235 0239 0242 0247 0264 0274 "
    "0282 0288 0302 0311 0326 0337 0340 0349 0369 0374 0376 0377 0423 0424 "
    "0465 0470 0498 0499 0633 0638 0639 0641 0642 0644 0645 0647 0648 0649 "
    "0650 0651 0652 0653 0654 0661 0662 0663 0664 0665 0666 0667 0668 0669 "
    "0671 0672 0673 0674 0675 0677 0678 0679 0681 0682 0683 0684 0685 0687 "
    "0689 0690 0692 0694 0695 0696 0697 0699 0700 0701 0702 0703 0707 0708 "
    "0709 0710 0712 0715 0717 0719 0767 0847 1054 1056 1087 1371 1435 1442 "
    "1520 1647 1788 2393 2660 2831 2832 2835 2836 2837 2838 2839 2840 2841 "
    "2842 2844 2845 2847 2848 2849 2852 2853 2854 2855 2856 2857 2858 2859 "
    "2860 2861 2865 2866 2869 2870 2871 2872 2873 2874 2876 2879 2897 2909 "
    "2911 2913 2914 2917 2918 2920 2922 2925 ",
)


def iter_undated_pages(pages: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield the key, URL and HTML of each page; `pages` is the folder of that name."""
    for key in UNDATED:
        label = json.loads((pages / "truth" / f"{key}.json").read_text())
        html = gzip.decompress((pages / "html" / f"{key}.html.gz").read_bytes())
        yield key, label.get("url") or "", html
