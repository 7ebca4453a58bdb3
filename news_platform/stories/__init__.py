"""Stories: articles in, events that many outlets and languages report out, with their timelines."""
