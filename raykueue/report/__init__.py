"""Result records and their views."""
