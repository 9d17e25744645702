"""What the scripts in ci/ share. Standard library only: some of them run before anything is installed."""
