"""Pages for people that are generated from the project's own data and from results: `raykueue docs`."""
