"""Run the command line by `python -m news_platform.cli`."""

from news_platform.cli.main import run

if __name__ == "__main__":
    run()
