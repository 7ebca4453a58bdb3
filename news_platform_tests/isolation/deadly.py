"""A target module that ends any process which imports it."""

import os

os._exit(7)
