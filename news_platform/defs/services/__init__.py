"""The processes of Dagster as we start them: its UI for allowed hosts only, and all of `dev`."""
